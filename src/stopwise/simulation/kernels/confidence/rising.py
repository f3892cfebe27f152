"""How deep the confidence-bound rules are sure to come, and for how long.

Pairs before that depth do move; but bounds show that for so many rounds, whatever the outputs, all
earlier stages are passed over, and these many grow with the evidence.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import SLACK
from stopwise.simulation.kernels.confidence.following import looks_for
from stopwise.simulation.kernels.pairs import A, B, Pairs, X
from stopwise.simulation.kernels.patterns import Tables


@njit(cache=True, nogil=True)
def bulk_cost(tables: Tables, depth: int) -> int:
    """How many ordinary rounds take as long as counting the outputs of many at once."""
    return 16 + tables.prefix_start[depth + 1] - tables.prefix_start[depth]


@njit(cache=True, nogil=True, error_model="numpy")
def sure_base(
    pairs: Pairs,
    depth: int,
    round: int,
    rounds: int,
    alpha: float,
    two_sided: bool,
    frozen: bool,
) -> int:
    """The stage up to `depth` that all these rounds come as far as, whatever is output.

    A pair up to `depth` has up to n more observations, from none to all of them disagreements,
    while the clock runs on; both ends of its bound are compared. For the two-sided rule the stage
    itself must also stay on the right side of all earlier ones; 0 if it might not. If `frozen`,
    that only has to hold while no round goes beyond `depth`, so that pairs beyond it stay as they
    are.
    """
    early, late = alpha * math.log(round), alpha * math.log(round + rounds)
    for i in range(depth + 1):
        passed_over, surely_low = False, True
        for j in range(i + 1, len(pairs) if frozen and i < depth else depth + 1):
            disagreed, seen = pairs[i, j, A], pairs[i, j, A] + pairs[i, j, B]
            more = rounds if j <= depth else 0
            least = disagreed / (seen + more) + math.sqrt(early / (seen + more))
            if seen > 0.0 and pairs[i, j, X] < least * (1.0 - SLACK):
                passed_over = True
                break
        if two_sided and not passed_over:
            for j in range(i):
                x, disagreed, seen = pairs[j, i, X], pairs[j, i, A], pairs[j, i, A] + pairs[j, i, B]
                most = (disagreed + rounds) / (seen + rounds) + math.sqrt(late / seen)
                least = disagreed / (seen + rounds) + math.sqrt(early / (seen + rounds))
                if not (seen > 0.0 and x < least * (1.0 - SLACK)):
                    surely_low = False
                if seen > 0.0 and x > most * (1.0 + SLACK):
                    passed_over = True
        if i == depth or not passed_over:
            return i if surely_low or i == len(pairs) - 1 else 0
    return 0


@njit(cache=True, nogil=True)
def _rounds_that_fail(pairs: Pairs, depth: int, round: int, alpha: float, most: int) -> int:
    """For how many rounds every stage before `depth` fails against another up to it, surely."""
    root = math.sqrt(alpha * math.log(round))
    for i in range(depth):
        longest = 0.0
        for j in range(i + 1, depth + 1):
            x, seen = pairs[i, j, X], pairs[i, j, A] + pairs[i, j, B]
            if x <= 0.0:
                longest = np.inf
            elif seen > 0.0:
                longest = max(longest, looks_for(x, pairs[i, j, A], root) - seen - 1.0)
        most = min(most, int(min(longest, float(most))))
    return most


@njit(cache=True, nogil=True)
def _rounds_to(
    tables: Tables,
    pairs: Pairs,
    base: int,
    round: int,
    tried: int,
    alpha: float,
    two_sided: bool,
    frozen: bool,
) -> int:
    """For how many rounds, up to `tried`, all come as far as `base`; 0 if not worth a bulk."""
    if base == 0:
        return 0 * tried
    rounds, cost = tried, bulk_cost(tables, base)
    if sure_base(pairs, base, round, rounds, alpha, two_sided, frozen) < base:
        rounds = max(_rounds_that_fail(pairs, base, round, alpha, tried), tried // 4)
        while (
            rounds > cost and sure_base(pairs, base, round, rounds, alpha, two_sided, frozen) < base
        ):
            rounds //= 4
    return rounds if rounds > cost else 0


@njit(cache=True, nogil=True)
def rise_to(
    tables: Tables,
    pairs: Pairs,
    depth: int,
    t: int,
    tried: int,
    grid: NDArray[np.int64],
    at: int,
    alpha: float,
    two_sided: bool,
    may_hug: bool,
) -> tuple[int, int, bool]:
    """A base to rise to, for how many rounds (0 if there is none), and whether only while frozen.

    It is `depth`, unless that is sure for a short while only, which ends before the next round of
    the grid. Then the rule may be about to stop earlier, and hug that boundary; or it comes here
    for want of evidence on a deeper stage, which it does not get by stopping here.
    """
    budget = min(tried, grid[-1] - t)
    ever, frozen = depth < 0, depth >= 0  # typed, see `run_one`
    rounds = _rounds_to(tables, pairs, depth, t + 1, budget, alpha, two_sided, ever)
    if rounds == budget or t + rounds >= grid[at]:
        return depth, rounds, ever
    if may_hug:
        least = 4 * rounds + bulk_cost(tables, depth)
        base = sure_base(pairs, depth, t + 1, least, alpha, two_sided, ever)
        longer = _rounds_to(tables, pairs, base, t + 1, grid[-1] - t, alpha, two_sided, ever)
        if longer > least:
            return base, longer, ever
    if depth < len(pairs) - 1:
        longer = _rounds_to(tables, pairs, depth, t + 1, budget, alpha, two_sided, frozen)
        if longer > rounds:
            return depth, longer, frozen
    return depth, rounds, ever
