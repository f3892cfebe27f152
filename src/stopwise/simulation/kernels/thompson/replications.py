"""Replications of the Thompson policies, exact in law, at a cost that grows with looks, not rounds.

Time goes in *blocks*. A block has a depth limit d and a budget of n rounds beyond stage one. Pairs
of stages up to d are only counted in it: whatever their outputs turn out to be, n observations can
move their tails no further than known bounds. Pairs that reach beyond d are followed exactly.
Together that bounds every depth's probability from below, and a round is one of three kinds:

- *shallow*: under the bound of a depth up to d. Many in a row are drawn in bulk.
- *deep*: under the bound of a depth beyond d. An ordinary round; the exact pairs are stepped.
- *unsure*: the rest. The counted pairs are evaluated and the depth is drawn in proportion to the
  true probability less its bound. Rare: blocks are cut so short that the bounds are tight.

A tempered rule counts every observation `temper` times (a whole number): as many steps of the
recurrences, and bounds over as many observations.

This is thinning, and exact. With d = 0 nothing needs bounds: a stop at the first stage teaches
nothing, and the number of such rounds in a row is geometric.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import (
    ABOVE,
    BELOW,
    Pairs,
    anchor_due,
    cheap_bounds,
    dear_bounds,
    new_pairs,
    observe,
    observe_many,
    refresh,
)
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import (
    State,
    draw,
    keep_words,
    next_uniform,
    skip,
    split,
    uniform,
    words_of,
)
from stopwise.simulation.kernels.stream import (
    class_of,
    count_classes,
    rows_met,
    write_counts,
)
from stopwise.simulation.kernels.thompson.looks import run_looks
from stopwise.simulation.kernels.thompson.walks import (
    JUMP_WALK,
    depth_distribution,
    fill_depths,
)

# A block beyond the first stage costs about as much as this many ordinary rounds.
_BLOCK_COST = 48
# Rounds between two attempts at such a block, doubled (up to 2^_MOST_PATIENCE) while they fail.
_PATIENCE = 32
_MOST_PATIENCE = 5
# Bounds are taken back by this much, so that rounding can never lift one above the truth.
_SLACK = 1e-11
# A pair has made up its mind once its smaller tail is below this.
_SETTLED = 1e-3
# Shallow depths less likely than this join the unsure rounds, so that bulks need not be split.
_RARE = 1e-9


@njit(cache=True, nogil=True)
def _bound_shallow(pairs: Pairs, walk: int, limit: int, rounds: int, bounds: Pairs) -> None:
    """Bound the tails of pairs up to the limit over so many rounds.

    On the step walk a stage that surely fails against one deeper stage goes on whatever the others
    say, so undecided pairs of such a stage need no (expensive) bounds.
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
                below, above = dear_bounds(pairs, i, j, rounds)
            bounds[i, j, BELOW] = below * (1.0 - _SLACK)
            bounds[i, j, ABOVE] = above * (1.0 - _SLACK)


@njit(cache=True, nogil=True)
def _deal_rows(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    shallow: NDArray[np.float64],
    t: int,
    rounds: int,
    counts: NDArray[np.int64],
    share: NDArray[np.int64],
    temper: int,
) -> None:
    """Shallow rounds of a round-robin stream.

    The rows are known and each takes its depth independently, so every class splits on its own.
    """
    for k in range(len(tables.outputs)):
        met = rows_met(tables, k, t, rounds)
        if met:
            split(rng, met, shallow, share)
            for depth in range(len(shallow)):
                counts[depth] += share[depth]
                if depth and share[depth]:
                    observe_many(pairs, tables.outputs, k, depth, share[depth] * temper)


@njit(cache=True, nogil=True)
def _cut_short(share: NDArray[np.int64], rounds: int, budget: int, state: State) -> int:
    """Keep of so many dealt rounds only those up to the `budget`-th that goes beyond stage one.

    Given how often each depth occurs, every order is equally likely. Returns the rounds kept.
    """
    left = share.copy()
    for depth in range(len(share)):
        share[depth] = 0
    kept = 0
    while budget > 0:
        at, depth = uniform(state) * (rounds - kept), 0
        while depth < len(left) - 1 and at >= left[depth]:
            at -= left[depth]
            depth += 1
        left[depth] -= 1
        share[depth] += 1
        kept += 1
        if depth:
            budget -= 1
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def _run_block(
    tables: Tables,
    pairs: Pairs,
    bounds: Pairs,
    walk: int,
    limit: int,
    budget: int,
    grid: NDArray[np.int64],
    t: int,
    at: int,
    counts: NDArray[np.int64],
    table: NDArray[np.int64],
    low: NDArray[np.float64],
    depths: NDArray[np.float64],
    state: State,
    rng: np.random.Generator,
    temper: int,
) -> tuple[int, int]:
    """Run until `budget` rounds went beyond stage one, for which the bounds hold, or one is unsure.

    Returns the round and the next row of the grid.
    """
    marks, rows, cumulative = tables.marks, tables.rows, tables.cumulative
    stages, by_rows, horizon = len(pairs), len(rows) > 0, grid[-1]
    share = np.zeros(limit + 1, dtype=np.int64)
    uncounted = np.zeros(limit + 1, dtype=np.int64)
    unsure = False
    words = words_of(state)
    while t < horizon and budget > 0 and not unsure:
        fill_depths(bounds, pairs, limit, walk, low)
        main = 0
        for k in range(1, limit + 1):
            if low[k] > low[main]:
                main = k
        shallow, split_needed = 0.0, by_rows
        for k in range(limit + 1):
            if k != main and low[k] < _RARE:
                low[k] = 0.0
            elif k != main:
                split_needed = True
            shallow += low[k]
        leaving = 1.0 - shallow
        # With stops at stage one among them, more rounds than the budget fit into it.
        most = min(budget, horizon - t)
        if not by_rows and low[0] > 0.0:
            beyond = max((shallow - low[0]) / shallow, 1e-12)
            most = int(min(max(most, 0.5 * budget / beyond), horizon - t))
        words, bulk, left = skip(words, leaving, most)
        event = bulk < most
        while bulk > 0 and budget > 0:
            part = bulk
            if split_needed:
                part = min(bulk, grid[at] - t)
                before = counts[0]
                if by_rows:
                    _deal_rows(tables, pairs, rng, low[: limit + 1], t, part, counts, share, temper)
                else:
                    split(rng, part, low[: limit + 1], share)
                    if part - share[0] > budget:
                        keep_words(state, words)
                        part = _cut_short(share, part, budget, state)
                        words = words_of(state)
                        event = False
                    for k in range(limit + 1):
                        counts[k] += share[k]
                        uncounted[k] += share[k]
                budget -= part - (counts[0] - before)
            else:
                counts[main] += part
                uncounted[main] += part
                if main:
                    budget -= part
            t += part
            bulk -= part
            while at < len(grid) and grid[at] <= t:
                write_counts(table, at, counts)
                table[at, main] -= t - grid[at]
                at += 1
        if not event or bulk > 0:
            continue
        depth = limit + 1
        while depth < stages and left >= low[depth]:
            left -= low[depth]
            depth += 1
        if depth == stages:
            unsure = True
            for k in range(1, limit + 1):
                if uncounted[k] and not by_rows:
                    count_classes(tables, pairs, rng, k, uncounted[k], temper)
                    uncounted[k] = 0
            refresh(pairs)
            depth_distribution(pairs, pairs, 0, walk, depths)
            for k in range(stages):
                depths[k] = max(depths[k] - low[k], 0.0)
            words, u = next_uniform(words)
            depth = draw(depths, u)
        if by_rows:
            k = rows[t % len(rows)]
        else:
            words, u = next_uniform(words)
            k = class_of(cumulative, u)
        for _ in range(temper):
            if observe(pairs, marks, k, depth, limit):
                anchor_due(pairs, depth, limit)
        counts[depth] += 1
        budget -= 1
        t += 1
        if grid[at] == t:
            write_counts(table, at, counts)
            at += 1
    for k in range(1, limit + 1):
        if uncounted[k] and not by_rows:
            count_classes(tables, pairs, rng, k, uncounted[k], temper)
    keep_words(state, words)
    return t, at


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


@njit(cache=True, nogil=True, error_model="numpy")
def run_one(
    tables: Tables,
    x: NDArray[np.float64],
    prior_disagreed: float,
    prior_agreed: float,
    walk: int,
    temper: int,
    grid: NDArray[np.int64],
    state: State,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication; `table` receives the depth counts at every round of the grid."""
    stages = len(x)
    pairs = new_pairs(x, prior_disagreed, prior_agreed)
    bounds = np.zeros_like(pairs)
    counts = np.zeros(stages, dtype=np.int64)
    depths, low = np.zeros(stages), np.zeros(stages)
    tried = np.full(stages, 64, dtype=np.int64)
    horizon = grid[-1]
    # Typed: a literal 0 would have the functions below compiled once more for that type alone.
    t = at = failed = horizon * 0
    while t < horizon:
        refresh(pairs)
        depth_distribution(pairs, pairs, 0, walk, depths)
        limit = _choose_limit(pairs, depths)
        worked = False
        if limit > 0:
            cost = _BLOCK_COST + tables.prefix_start[limit + 1] - tables.prefix_start[1]
            if len(tables.rows):
                cost = _BLOCK_COST + len(tables.outputs) * (limit + 1)
            beyond = 1.0 - depths[0]
            budget = tried[limit]
            for _ in range(3):
                _bound_shallow(pairs, walk, limit, budget * temper, bounds)
                depth_distribution(bounds, pairs, limit, walk, low)
                unsure = 1.0
                for k in range(stages):
                    unsure -= low[k]
                expected = min(budget / beyond, horizon - t)
                tight = unsure * expected <= 0.5
                if tight:
                    break
                budget = max(budget // 4, 1)
            tried[limit] = max(2 * budget, 16)
            spared = 0.0
            for k in range(1, limit + 1):
                spared += depths[k]
            worked = tight and expected * spared > cost
        if worked:
            failed = 0
            t, at = _run_block(
                tables, pairs, bounds, walk, limit, budget, grid,
                t, at, counts, table, low, depths, state, rng, temper,
            )  # fmt: skip
        else:
            looks = _PATIENCE << min(failed, _MOST_PATIENCE)
            failed += 1
            t, at = run_looks(tables, pairs, walk, looks, grid, t, at, counts, table, state, temper)


@njit(cache=True, nogil=True)
def run_many(
    tables: Tables,
    x: NDArray[np.float64],
    prior_disagreed: float,
    prior_agreed: float,
    walk: int,
    temper: int,
    grid: NDArray[np.int64],
    states: NDArray[np.uint64],
    rng: np.random.Generator,
    result: NDArray[np.int64],
) -> None:
    """Replications one after the other, each with its own stream of uniforms."""
    for k in range(len(states)):
        run_one(
            tables, x, prior_disagreed, prior_agreed, walk, temper,
            grid, states[k], rng, result[k],
        )  # fmt: skip
