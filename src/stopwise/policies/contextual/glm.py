"""Logistic regression by Newton's method (IRLS), for rules that need the plain likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stopwise.costs import FloatArray

RIDGE = 1e-3
"""Where the likelihood has no maximum (a plane parts all yes from all no), this makes one."""

_STEPS, _CLOSE = 50, 1e-10


def logistic(values: FloatArray | float) -> FloatArray:
    """mu(z) = 1 / (1 + exp(-z)), without overflow.

    >>> logistic(np.array([0.0, 800.0, -800.0])).round(3)
    array([0.5, 1. , 0. ])
    """
    held = np.clip(np.asarray(values, dtype=np.float64), -700.0, 700.0)
    return np.asarray(1 / (1 + np.exp(-held)))


def fit_logistic(
    contexts: FloatArray,
    yes: NDArray[np.bool_],
    start: FloatArray | None = None,
    ridge: float = RIDGE,
) -> FloatArray:
    """The weights that make what was seen most likely, but for a ridge that hardly shows.

    Args:
        contexts: a row of numbers per round.
        yes: what was seen.
        start: weights to begin with.

    >>> contexts = np.array([[1.0], [1.0], [1.0], [1.0]])
    >>> theta = fit_logistic(contexts, np.array([True, False, False, False]))
    >>> logistic(contexts @ theta).round(3)[0]
    np.float64(0.25)
    """
    x, y = np.asarray(contexts, dtype=np.float64), np.asarray(yes, dtype=np.float64)
    theta = np.zeros(x.shape[1]) if start is None else np.array(start, dtype=np.float64)
    value = _loss(x, y, theta, ridge)
    for _ in range(_STEPS):
        chance = logistic(x @ theta)
        gradient = x.T @ (chance - y) + ridge * theta
        curvature = (x * (chance * (1 - chance))[:, None]).T @ x + ridge * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6:  # the full step of Newton may overshoot far from the maximum
            tried = theta - size * step
            after = _loss(x, y, tried, ridge)
            if after <= value:
                break
            size /= 2
        else:
            break
        theta, gained, value = tried, value - after, after
        if gained <= _CLOSE * (1 + abs(value)):
            break
    return theta


def _loss(x: FloatArray, y: FloatArray, theta: FloatArray, ridge: float) -> float:
    z = x @ theta
    return float((np.logaddexp(0, z) - y * z).sum() + 0.5 * ridge * (theta @ theta))
