"""A confidence sequence for the mean of a finite list, sampled in random order without replacement.

The list is what one stage wins over another on the items on which they differ: +1, 0 or -1 each.
The method is testing by betting: against the claim "the mean is m" one bets, before each draw, that
the next value lies above (or below) what the claim leads one to expect of those still undrawn. If
the claim is true, the capital is a martingale that starts at 1, and by Ville's inequality it ever
reaches 1/a with a chance of at most a. So a claim whose capital once reached 1/a may be rejected
whenever one looks, and as often as one likes. Which part of the capital to bet is not known in
advance, so it is spread evenly over many parts, and each goes its own way: their average is a
martingale too. With values of two kinds only, these bets are likelihood ratios.
(The frame is that of Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", 2024, section 5 on sampling without replacement.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from stopwise.checks import fail
from stopwise.costs import FloatArray
from stopwise.logs.halving import last_that_holds

_HALVINGS = 40

_PARTS = np.geomspace(0.015, 0.97, 16)
"""Parts of the capital to bet."""


def log_capital(values: ArrayLike, size: int, mean: float) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the capital after each draw, of bets that the mean lies above, and below.

    Args:
        values: those drawn so far, each from -1 to 1, in the order in which they were drawn.
        size: length of the whole list.
        mean: the claim.

    >>> above, below = log_capital([1, 1, 1, 1, 1], 100, 0.0)
    >>> bool(above[-1] > 1), bool(below[-1] < 0)
    (True, True)
    """
    x = (np.asarray(values, dtype=np.float64) + 1) / 2
    if len(x) > size:
        raise fail("values", f"{len(x)} values", f"at most {size}, the size of the list")
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]]) if len(x) else x
    undrawn = size - np.arange(len(x))
    expected = (size * (mean + 1) / 2 - before) / undrawn
    return _one_side(x, expected), _one_side(1 - x, 1 - expected)


def _one_side(x: FloatArray, expected: FloatArray) -> FloatArray:
    """Bets that x lies above what is expected; infinite once the claim is impossible."""
    if not len(x):
        return x
    # An expectation outside [0, 1] cannot be met by what is left: the claim has been refuted, from
    # here on, by the side whose values exceed it (a sum too large already), not by the other.
    tiny = 1e-12
    refuted = np.maximum.accumulate((expected < -tiny) | ((expected < tiny) & (x > tiny)))
    safe = np.where(expected > tiny, expected, 1.0)
    gain = np.where(expected > tiny, x / safe - 1, 0.0)
    steps = np.log1p(_PARTS[:, None] * gain[None, :])
    paths = np.cumsum(steps, axis=1)
    top = paths.max(axis=0)
    result = top + np.log(np.exp(paths - top).mean(axis=0))
    return np.asarray(np.where(refuted, np.inf, result))


def mean_bounds(values: ArrayLike, size: int, alpha: float) -> tuple[float, float]:
    """Bounds on the mean of the whole list that hold at all times at once, with 1 - alpha.

    >>> low, high = mean_bounds([1] * 20, 400, 0.05)
    >>> round(low, 2), round(high, 2)
    (0.48, 1.0)
    >>> mean_bounds([1, -1, 1, 1], 4, 0.05)
    (0.5, 0.5)
    """
    drawn = np.asarray(values, dtype=np.float64)
    left = size - len(drawn)
    low = (float(drawn.sum()) - left) / size
    high = (float(drawn.sum()) + left) / size
    if not left:
        return low, high
    limit = math.log(2 / alpha)

    def too_low(mean: float) -> bool:
        return bool(len(drawn)) and log_capital(drawn, size, mean)[0].max() >= limit

    def too_high(mean: float) -> bool:
        return bool(len(drawn)) and log_capital(drawn, size, mean)[1].max() >= limit

    # The capital of "above" falls as the claim rises, so the claims it rejects are a low stretch.
    return (
        last_that_holds(too_low, low, high, times=_HALVINGS) if too_low(low) else low,
        last_that_holds(too_high, high, low, times=_HALVINGS) if too_high(high) else high,
    )


def first_rejection(
    values: ArrayLike, size: int, mean_above: float, mean_below: float, alpha: float
) -> tuple[int, int] | None:
    """When it is first known that the mean lies above the one claim, or below the other.

    Returns:
        (draws, +1 or -1), or None if neither is known at the end.

    >>> first_rejection([1] * 50, 400, 0.0, 0.0, 0.05)
    (9, 1)
    >>> first_rejection([1, -1] * 20, 400, 0.0, 0.0, 0.05) is None
    True
    """
    drawn = np.asarray(values, dtype=np.float64)
    if not len(drawn):
        return None
    limit = math.log(2 / alpha)
    sums = np.cumsum(drawn)
    left = size - np.arange(1, len(drawn) + 1)
    above = (log_capital(drawn, size, mean_above)[0] >= limit) | (
        sums - left > size * mean_above + 1e-9
    )
    below = (log_capital(drawn, size, mean_below)[1] >= limit) | (
        sums + left <= size * mean_below + 1e-9
    )
    either = above | below
    if not either.any():
        return None
    at = int(either.argmax())
    return at + 1, 1 if above[at] else -1
