"""Bounds on a share from counts, and how many rows would bring a bound below a threshold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from stopwise.costs import FloatArray


def share_bounds(
    disagreed: ArrayLike, seen: ArrayLike, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bound on a probability, each wrong with a chance of at most `tail`.

    These are the Clopper-Pearson bounds, quantiles of Beta(S, F + 1) and Beta(S + 1, F). They hold
    for every true value, and they lie outside the credible bounds of the uniform prior, quantiles
    of Beta(S + 1, F + 1): the level is kept as a confidence level and as a credible one.

    >>> low, high = share_bounds(0, 100, 0.05)
    >>> float(low), round(float(high), 4)     # 1 - 0.05^(1/100)
    (0.0, 0.0295)
    """
    from scipy.special import betainccinv, betaincinv

    s = np.asarray(disagreed, dtype=np.float64)
    n = np.asarray(seen, dtype=np.float64)
    f = n - s
    # Parameters of 0 stand for a point mass at the end; 1 only keeps the function defined there.
    low = np.where(s > 0, betaincinv(np.maximum(s, 1e-9), f + 1, tail), 0.0)
    high = np.where(f > 0, betainccinv(s + 1, np.maximum(f, 1e-9), tail), 1.0)
    return np.asarray(low), np.asarray(high)


def rows_needed(share: float, threshold: float, tail: float, unsure: float = 0.0) -> int | None:
    """About how many rows make the upper bound of this share fall below the threshold.

    None where no number would, because the share itself does not lie below.

    Args:
        unsure: how far below the threshold its own lower bound would lie with one row, where it is
            measured too; that falls with the square root of the rows.

    >>> rows_needed(0.0, 0.0295, 0.05)
    101
    >>> rows_needed(0.1, 0.1, 0.05) is None
    True
    """
    if share >= threshold:
        return None
    if threshold >= 1 and unsure <= 0:
        return 0

    def enough(rows: int) -> bool:
        bound = threshold - unsure / math.sqrt(rows)
        return bool(share_bounds(share * rows, rows, tail)[1] < bound)

    most = 1
    while not enough(most):
        most *= 2
        if most > 10**15:
            return None
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most
