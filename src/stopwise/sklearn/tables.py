"""Rows and columns of arrays and frames, and what classifiers say of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stopwise.arrays import FloatArray, IntArray


class Said(NamedTuple):
    """What one classifier says of rows.

    Attributes:
        codes: its answers, as numbers of classes.
        confidences: how sure it is of each; not a number where it cannot say.
        shares: the probability of every class; None where it has none.
    """

    codes: IntArray
    confidences: FloatArray
    shares: FloatArray | None = None


def take_columns(X: Any, columns: list[int] | None) -> Any:
    """Some columns of an array or a frame; None for all.

    >>> take_columns(np.array([[1, 2, 3]]), [0, 2]).tolist()
    [[1, 3]]
    """
    if columns is None:
        return X
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array or a frame.

    >>> take_rows(np.array([[1], [2], [3]]), [0, 2]).tolist()
    [[1], [3]]
    """
    rows = np.asarray(rows)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def shares_of(estimator: Any, X: Any, classes: Any) -> FloatArray:
    """The class probabilities of a classifier, in the order of all classes.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([1, 1, 2, 2])
    >>> shares_of(GaussianNB().fit(X, y), X[:1], np.array([0, 1, 2])).round(2).tolist()
    [[0.0, 1.0, 0.0]]
    """
    shares = np.asarray(estimator.predict_proba(X))
    known = np.asarray(estimator.classes_)
    if np.array_equal(known, classes):
        return shares
    full = np.zeros((len(shares), len(classes)))
    full[:, np.searchsorted(classes, known)] = shares
    return full


def say(estimator: Any, X: Any, classes: Any) -> Said:
    """What a classifier says of rows, and how sure it is.

    Its probabilities say both: the answer is the likeliest class. Without them, the margin of its
    decision function says how sure it is; without that, nothing does.

    >>> from sklearn.svm import SVC
    >>> X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([1, 1, 2, 2])
    >>> said = say(SVC(kernel="linear").fit(X, y), np.array([[0.0], [2.6]]), np.array([1, 2]))
    >>> said.codes.tolist(), bool(said.confidences[0] > said.confidences[1])
    ([0, 1], True)
    """
    if hasattr(estimator, "predict_proba"):
        shares = shares_of(estimator, X, classes)
        codes = shares.argmax(axis=1)
        return Said(codes, shares[np.arange(len(shares)), codes], shares)
    codes = np.searchsorted(classes, estimator.predict(X))
    if not hasattr(estimator, "decision_function"):
        return Said(codes, np.full(len(codes), np.nan))
    margins = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if margins.ndim == 1:
        return Said(codes, np.abs(margins))
    top = np.sort(margins, axis=1)
    return Said(codes, top[:, -1] - top[:, -2])


def answer(estimator: Any, X: Any, classes: Any) -> Said:
    """What a classifier says of rows, without asking how sure it is.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([1, 1, 2, 2])
    >>> answer(GaussianNB().fit(X, y), X, np.array([1, 2])).codes.tolist()
    [0, 0, 1, 1]
    """
    codes = np.searchsorted(classes, estimator.predict(X))
    return Said(codes, np.full(len(codes), np.nan))
