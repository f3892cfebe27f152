"""How far the next block of a Thompson replication may go, and for how many rounds."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import (
    ABOVE,
    BELOW,
    Pairs,
    cheap_bounds,
    exact_bounds,
)
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.thompson.parts import ShallowBounds
from stopwise.simulation.kernels.thompson.settings import JUMP_WALK, ThompsonSettings
from stopwise.simulation.kernels.thompson.walks import depth_distribution

# A block beyond the first stage costs about as much as this many ordinary rounds.
_BLOCK_COST = 48
# Bounds are taken back by this much, so that rounding can never lift one above the truth.
_SLACK = 1e-11
# A pair has made up its mind once its smaller tail is below this.
_SETTLED = 1e-3


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def plan_block(
    tables: Tables,
    settings: ThompsonSettings,
    pairs: Pairs,
    bounds: ShallowBounds,
    chances: NDArray[np.float64],
    remaining: int,
    tried: NDArray[np.int64],
) -> tuple[int, int]:
    """The depth limit of the next block, and its budget: 0 where looks one by one are quicker.

    `tried` holds, for every limit, the budget to try next; `remaining` is how many rounds are left.
    What bounds the block is left in `bounds`. Inlined where it is called.
    """
    tails, low = bounds.tails, bounds.low
    limit = _choose_limit(pairs, chances)
    budget = tried[limit]
    worth_it = False
    if limit > 0:
        beyond = 1.0 - chances[0]
        for _ in range(3):
            _bound_shallow(pairs, settings.walk, limit, budget * settings.temper, tails)
            depth_distribution(tails, pairs, limit, settings.walk, low)
            unsure = 1.0
            for k in range(len(low)):
                unsure -= low[k]
            expected = min(budget / beyond, remaining)
            tight = unsure * expected <= 0.5
            if tight:
                break
            budget = max(budget // 4, 1)
        tried[limit] = max(2 * budget, 16)
        spared = 0.0
        for k in range(1, limit + 1):
            spared += chances[k]
        worth_it = tight and expected * spared > _cost(tables, limit)
    return limit, budget if worth_it else 0 * budget


@njit(cache=True, nogil=True)
def _cost(tables: Tables, limit: int) -> int:
    """How many ordinary rounds take as long as a block up to this limit."""
    if len(tables.rows):
        return _BLOCK_COST + len(tables.outputs) * (limit + 1)
    return _BLOCK_COST + tables.prefix_start[limit + 1] - tables.prefix_start[1]


@njit(cache=True, nogil=True)
def _bound_shallow(pairs: Pairs, walk: int, limit: int, rounds: int, bounds: Pairs) -> None:
    """Bound the tails of pairs up to the limit over a number of rounds.

    On the step walk a stage that surely fails against one deeper stage goes on whatever the others
    say, so undecided pairs of such a stage need no exact bounds.
    """
    for i in range(limit):
        settled = False
        for j in range(i + 1, len(pairs)):
            if j <= limit:
                below, above = cheap_bounds(pairs, i, j, rounds)
                bounds[i, j, BELOW], bounds[i, j, ABOVE] = below, above
            else:
                above = pairs[i, j, ABOVE]
            settled = settled or above > 1.0 - _SETTLED
        for j in range(i + 1, limit + 1):
            below, above = bounds[i, j, BELOW], bounds[i, j, ABOVE]
            if below + above == 0.0 and (walk == JUMP_WALK or not settled):
                below, above = exact_bounds(pairs, i, j, rounds)
            bounds[i, j, BELOW] = below * (1.0 - _SLACK)
            bounds[i, j, ABOVE] = above * (1.0 - _SLACK)


@njit(cache=True, nogil=True)
def _choose_limit(pairs: Pairs, depths: NDArray[np.float64]) -> int:
    """A depth limit for the next block; 0 where nothing would be gained.

    A pair can be bounded over many rounds once it has made up its mind, and need not be where its
    stage surely fails against another. Among the depths that this allows, take the first within
    which nearly all rounds fall.
    """
    most = len(pairs) - 1
    for i in range(most):
        settled = False
        for j in range(i + 1, len(pairs)):
            settled = settled or pairs[i, j, ABOVE] > 1.0 - _SETTLED
        for j in range(i + 1, most + 1):
            if not settled and min(pairs[i, j, BELOW], pairs[i, j, ABOVE]) > _SETTLED:
                most = j - 1
                break
    return _first_covering(depths, most)


@njit(cache=True, nogil=True)
def _first_covering(depths: NDArray[np.float64], most: int) -> int:
    total = 0.0
    for k in range(1, most + 1):
        total += depths[k]
    limit, beyond = most, 0.0
    while limit > 0 and beyond + depths[limit] <= 0.1 * total:
        beyond += depths[limit]
        limit -= 1
    return limit
