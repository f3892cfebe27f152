"""How deep the confidence-bound rules are sure to come, and for how many rounds.

Pairs before that depth do change; but bounds show that for a number of rounds, whatever the
outputs, no earlier stage is stopped at, and that number grows with the evidence.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import SLACK, ConfidenceSettings, looks_to_pass
from stopwise.simulation.kernels.pairs import A, B, Pairs, X
from stopwise.simulation.kernels.patterns import Tables


@njit(cache=True, nogil=True)
def bulk_cost(tables: Tables, depth: int) -> int:
    """How many ordinary rounds take as long as counting the outputs of many at once."""
    return 16 + tables.prefix_start[depth + 1] - tables.prefix_start[depth]


@njit(cache=True, nogil=True, error_model="numpy")
def surely_reaches(
    pairs: Pairs, depth: int, round: int, rounds: int, settings: ConfidenceSettings, frozen: bool
) -> bool:
    """Whether all of these rounds come as far as `depth`, whatever is output.

    A pair up to `depth` has up to n more observations, from none to all of them disagreements,
    while the clock runs on; both ends of its bound are compared. For the two-sided rule the stage
    itself must also stay on the right side of all earlier ones. If `frozen`, that only has to hold
    while no round goes beyond `depth`, so that pairs beyond it stay as they are.
    """
    early, late = settings.alpha * math.log(round), settings.alpha * math.log(round + rounds)
    last = len(pairs) - 1
    for i in range(depth):
        passed_over = False
        for j in range(i + 1, (last if frozen else depth) + 1):
            disagreed, seen = pairs[i, j, A], pairs[i, j, A] + pairs[i, j, B]
            more = rounds if j <= depth else 0
            least = disagreed / (seen + more) + math.sqrt(early / (seen + more))
            if seen > 0.0 and pairs[i, j, X] < least * (1.0 - SLACK):
                passed_over = True
                break
        if settings.two_sided and not passed_over:
            for j in range(i):
                disagreed, seen = pairs[j, i, A], pairs[j, i, A] + pairs[j, i, B]
                most = (disagreed + rounds) / (seen + rounds) + math.sqrt(late / seen)
                passed_over |= seen > 0.0 and pairs[j, i, X] > most * (1.0 + SLACK)
        if not passed_over:
            return False
    if settings.two_sided and depth < last:
        for j in range(depth):
            disagreed, seen = pairs[j, depth, A], pairs[j, depth, A] + pairs[j, depth, B]
            least = disagreed / (seen + rounds) + math.sqrt(early / (seen + rounds))
            if not (seen > 0.0 and pairs[j, depth, X] < least * (1.0 - SLACK)):
                return False
    return True


@njit(cache=True, nogil=True)
def _rounds_that_fail(pairs: Pairs, depth: int, round: int, alpha: float, most: int) -> int:
    """For how many rounds every stage before `depth` surely fails against another up to it."""
    clock = alpha * math.log(round)
    for i in range(depth):
        longest = 0.0
        for j in range(i + 1, depth + 1):
            seen = pairs[i, j, A] + pairs[i, j, B]
            if seen > 0.0:
                needed = looks_to_pass(pairs[i, j, X], pairs[i, j, A], clock)
                longest = max(longest, needed - seen - 1.0)
        most = min(most, int(min(longest, float(most))))
    return most


@njit(cache=True, nogil=True)
def _rounds_to(
    tables: Tables,
    pairs: Pairs,
    depth: int,
    round: int,
    most: int,
    settings: ConfidenceSettings,
    frozen: bool,
) -> int:
    """For how many rounds, up to `most`, all come as far as `depth`; 0 if not worth a bulk."""
    if depth == 0:
        return 0 * most
    rounds, cost = most, bulk_cost(tables, depth)
    if not surely_reaches(pairs, depth, round, rounds, settings, frozen):
        rounds = max(_rounds_that_fail(pairs, depth, round, settings.alpha, most), most // 4)
        while rounds > cost and not surely_reaches(pairs, depth, round, rounds, settings, frozen):
            rounds //= 4
    return rounds if rounds > cost else 0


@njit(cache=True, nogil=True)
def sure_rounds(
    tables: Tables,
    pairs: Pairs,
    depth: int,
    t: int,
    most: int,
    grid: NDArray[np.int64],
    at: int,
    settings: ConfidenceSettings,
) -> tuple[int, bool]:
    """For how many rounds after t all come as far as `depth`, and whether only while frozen.

    If that is sure for a short while only, which ends before the next round of the grid, the rule
    may come here for want of evidence on a deeper stage, which it does not get by stopping here.
    """
    most = min(most, grid[-1] - t)
    ever, frozen = depth < 0, depth >= 0  # typed, see `run_one`
    rounds = _rounds_to(tables, pairs, depth, t + 1, most, settings, ever)
    if rounds < most and t + rounds < grid[at] and depth < len(pairs) - 1:
        longer = _rounds_to(tables, pairs, depth, t + 1, most, settings, frozen)
        if longer > rounds:
            return longer, frozen
    return rounds, ever
