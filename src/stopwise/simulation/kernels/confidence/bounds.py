"""The confidence bound of one pair, and the round in which it reaches the threshold."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from stopwise.simulation.kernels.rules import upper_bound

# Comparisons that hold by less than this are not relied upon.
SLACK = 1e-12


class ConfidenceSettings(NamedTuple):
    """The settings of USS-UCB or Algorithm 2.

    Attributes:
        alpha: width of the bounds.
        two_sided: whether a stage is also tested against the earlier ones (USS-UCB).
        strict: whether a threshold must be above its bound (USS-UCB), or may be equal to it
            (Algorithm 2).
        first_counts_last_only: whether the first round counts only pairs with the last stage
            (Algorithm 2).
    """

    alpha: float
    two_sided: bool
    strict: bool
    first_counts_last_only: bool


@njit(cache=True, nogil=True)
def passes(threshold: float, bound: float, strict: bool) -> bool:
    """Whether a pair passes: its threshold is above the bound, or equal to it unless strict."""
    return threshold > bound if strict else threshold >= bound


@njit(cache=True, nogil=True, error_model="numpy")
def first_failing_round(
    threshold: float,
    disagreed: float,
    seen: float,
    alpha: float,
    strict: bool,
    earliest: int,
    latest: int,
) -> int:
    """The first round from `earliest` on in which a pair that is not seen again fails.

    At most `latest`. Its bound reaches the threshold when alpha ln t = N (threshold - D/N)^2. That
    gives the round but for rounding, which the comparison settles where it could matter.
    """
    distance = threshold - disagreed / seen
    if not distance > 0.0:  # nothing seen is no distance either
        return earliest
    logarithm = seen * distance * distance / alpha
    crossing = math.exp(min(logarithm, 40.0))
    round = min(max(int(crossing) + 1, earliest), latest)
    doubt = 1e-14 * crossing * (1.0 + logarithm) * (1.0 + threshold / distance)
    if round - 1 + doubt < crossing < round - doubt:
        return round
    while round > earliest and not passes(
        threshold, upper_bound(disagreed, seen, alpha * math.log(round - 1)), strict
    ):
        round -= 1
    while round < latest and passes(
        threshold, upper_bound(disagreed, seen, alpha * math.log(round)), strict
    ):
        round += 1
    return round


@njit(cache=True, nogil=True, error_model="numpy")
def looks_to_pass(threshold: float, disagreed: float, scaled_log: float) -> float:
    """How often a pair with this many disagreements must have been seen to pass.

    The larger solution of threshold N - D = sqrt(scaled_log N). More disagreements only raise it.
    """
    if not threshold > 0.0:
        return np.inf
    root = math.sqrt(scaled_log)
    solution = (root + math.sqrt(root * root + 4.0 * threshold * disagreed)) / (2.0 * threshold)
    return solution * solution
