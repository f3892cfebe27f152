"""Logistic regression with a penalty, by Newton's method: a handful of columns, a few hundred rows.

The promise does not rest on it: poor estimates cost calls, never the promise.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from stopwise.costs import FloatArray

_MOST_STEPS = 30
_LONGEST_STEP = 5.0


def fit_logistic(
    columns: FloatArray, outcomes: FloatArray, penalty: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """Weights that make the outcomes likely, each held back by its penalty on the square.

    >>> x = np.array([[1.0, -1.0], [1.0, 1.0]] * 50)
    >>> weights = fit_logistic(x, x[:, 1] > 0, np.array([0.01, 1.0]))
    >>> bool(abs(weights[0]) < 1e-6 and weights[1] > 2)
    True
    """
    y = np.asarray(outcomes, dtype=np.float64)
    weights = np.zeros(columns.shape[1]) if start is None else start.copy()
    for _ in range(_MOST_STEPS):
        chance = expit(columns @ weights)
        slope = columns.T @ (chance - y) + penalty * weights
        curve = (columns.T * (chance * (1 - chance))) @ columns + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        largest = float(np.abs(step).max())
        weights = weights - step * min(1.0, _LONGEST_STEP / max(largest, 1e-12))
        if largest < 1e-6:
            break
    return weights


def risks(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """Chances, kept off 0 and 1.

    >>> risks(np.array([[1.0]]), np.array([0.0]))
    array([0.5])
    """
    return np.asarray(np.clip(expit(columns @ weights), 1e-6, 1 - 1e-6))
