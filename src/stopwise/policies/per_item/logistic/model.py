"""One logistic regression: fitted by scikit-learn, kept as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from stopwise.arrays import FloatArray
from stopwise.checks import StopwiseError


@dataclass(frozen=True)
class Model:
    """A chance between 0 and 1 as a function of numbers: 1 / (1 + exp(-(intercept + x . weights))).

    Without weights it is the same for all items.

    >>> Model(0.0, (1.0,)).chance(np.array([[0.0], [2.0]])).round(3)
    array([0.5  , 0.881])
    """

    intercept: float
    weights: tuple[float, ...] = ()

    def chance(self, matrix: FloatArray) -> FloatArray:
        """The chance of every row."""
        if not self.weights:
            return np.full(len(matrix), _logistic(np.asarray([self.intercept]))[0])
        return _logistic(matrix @ np.asarray(self.weights) + self.intercept)


def fit_model(matrix: FloatArray, target: FloatArray, strength: float) -> Model:
    """The regression of a chance, seen as 0, 1 or anything between.

    Args:
        matrix: a row of numbers per item.
        target: between 0 and 1; a share counts as that much of a yes and the rest of a no.
        strength: C of scikit-learn: the larger, the less weights are drawn to 0.

    >>> x = np.array([[-1.0], [1.0]] * 50)
    >>> model = fit_model(x, np.array([0.0, 1.0] * 50), strength=1.0)
    >>> model.chance(x[:2]).round(1)
    array([0., 1.])
    """
    mean = float(target.mean()) if len(target) else 0.5
    # Half a yes and half a no beside what was seen: no chance is ever quite 0 or 1.
    mean = (mean * len(target) + 0.5) / (len(target) + 1)
    if len(target) < 2 or target.max() - target.min() < 1e-9:
        if len(target) and target.max() == target.min() == 0:
            return Model(-40.0)  # the reference itself: it never differs
        return Model(float(np.log(mean / (1 - mean))))
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise StopwiseError(
            "per-item-logistic: scikit-learn is not installed; it needs"
            " pip install 'stopwise[sklearn]'"
        ) from None
    yes, no = target > 0, target < 1
    rows = np.concatenate([matrix[yes], matrix[no]])
    says = np.concatenate([np.ones(int(yes.sum())), np.zeros(int(no.sum()))])
    weight = np.concatenate([target[yes], 1 - target[no]])
    regression = LogisticRegression(C=strength, max_iter=500, tol=1e-5)
    regression.fit(rows, says, sample_weight=weight)
    weights = tuple(float(value) for value in regression.coef_[0])
    return Model(float(regression.intercept_[0]), weights)


def library() -> str:
    """The library that fits, with its version, as a rule notes it."""
    return f"scikit-learn {version('scikit-learn')}"


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -700, 700))))
