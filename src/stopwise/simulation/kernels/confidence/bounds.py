"""The confidence bound of one pair, and the round in which it outgrows the threshold."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Comparisons that hold by less than this are not relied upon.
SLACK = 1e-12


@njit(cache=True, nogil=True, error_model="numpy")
def upper_bound(disagreed: float, seen: float, scaled_log: float) -> float:
    """`D/N + sqrt(alpha ln t / N)`; `scaled_log` is alpha ln t."""
    if seen == 0.0:
        return np.inf
    return disagreed / seen + math.sqrt(scaled_log / seen)


@njit(cache=True, nogil=True)
def passes(x: float, bound: float, strict: bool) -> bool:
    """Whether the threshold is above the bound; if not strict, or equal to it."""
    return x > bound if strict else x >= bound


@njit(cache=True, nogil=True, error_model="numpy")
def first_failing_round(
    x: float,
    disagreed: float,
    seen: float,
    alpha: float,
    strict: bool,
    earliest: int,
    latest: int,
) -> int:
    """The first round from `earliest` on in which a frozen pair fails; at most `latest`.

    Its bound reaches the threshold when alpha ln t = N (x - D/N)^2. That gives the round but for
    rounding, which the comparison settles where it could matter.
    """
    distance = x - disagreed / seen
    if not distance > 0.0:  # nothing seen is no distance either
        return earliest
    logarithm = seen * distance * distance / alpha
    crossing = math.exp(min(logarithm, 40.0))
    round = min(max(int(crossing) + 1, earliest), latest)
    doubt = 1e-14 * crossing * (1.0 + logarithm) * (1.0 + x / distance)
    if round - 1 + doubt < crossing < round - doubt:
        return round
    while round > earliest and not passes(
        x, upper_bound(disagreed, seen, alpha * math.log(round - 1)), strict
    ):
        round -= 1
    while round < latest and passes(
        x, upper_bound(disagreed, seen, alpha * math.log(round)), strict
    ):
        round += 1
    return round
