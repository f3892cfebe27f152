"""A block: rounds that stop early are drawn in bulk, under lower bounds on every depth's chance."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import Pairs, anchor_due, observe, observe_many, refresh
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import (
    RandomState,
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
    report_passed,
    rows_met,
)
from stopwise.simulation.kernels.thompson.parts import DepthReport, ShallowBounds
from stopwise.simulation.kernels.thompson.settings import ThompsonSettings
from stopwise.simulation.kernels.thompson.walks import depth_distribution, fill_depths

# Shallow depths less likely than this join the unsure rounds, so that bulks need not be split.
_RARE = 1e-9


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def run_block(
    tables: Tables,
    settings: ThompsonSettings,
    pairs: Pairs,
    bounds: ShallowBounds,
    chances: NDArray[np.float64],
    report: DepthReport,
    state: RandomState,
    rng: np.random.Generator,
    limit: int,
    budget: int,
    t: int,
    at: int,
) -> tuple[int, int]:
    """Run until `budget` rounds went beyond stage one, for which the bounds hold, or one is unsure.

    Returns the round that is over and the next place in the grid. Inlined where it is called: a
    short block takes little longer to run than its arrays to hand over.

    Each turn of the loop has two steps. First a bulk: one geometric number says how many rounds
    stop at a shallow depth, at `limit` or before, for sure; they are dealt out over these depths
    and counted. Then the round after it, which goes deeper, or of which the bounds cannot say.

    Args:
        tables: the classes of patterns, and the stream that rounds take theirs from.
        settings: of the rule.
        pairs: what was seen, with the tails that the rule asks for.
        bounds: lower bounds on the chance of every depth, as long as the block lasts.
        chances: room for a distribution of the depth.
        report: where depth counts go at every round of the grid.
        state: of the numbers drawn here.
        rng: of the numbers drawn by NumPy.
        limit: the deepest depth that is drawn in bulk.
        budget: rounds beyond stage one that the bounds allow for.
        t: the round that is over.
        at: the next place in the grid.
    """
    grid, counts, table = report.grid, report.counts, report.table
    low = bounds.low
    float_outputs, rows, cumulative = tables.float_outputs, tables.rows, tables.cumulative
    walk, temper = settings.walk, settings.temper
    stages, by_rows, horizon = len(pairs), len(rows) > 0, grid[-1]
    share = np.zeros(limit + 1, dtype=np.int64)
    uncounted = np.zeros(limit + 1, dtype=np.int64)
    unsure = False
    words = words_of(state)
    while t < horizon and budget > 0 and not unsure:
        # How many rounds in a row are shallow for sure, and no more than the bounds allow for.
        fill_depths(bounds.tails, pairs, limit, walk, low)
        main, shallow, mixed = _shallow_part(low, limit)
        mixed |= by_rows
        most = min(budget, horizon - t)
        if not by_rows and low[0] > 0.0:
            # With stops at stage one among them, more rounds than the budget fit into it.
            beyond = max((shallow - low[0]) / shallow, 1e-12)
            most = int(min(max(most, 0.5 * budget / beyond), horizon - t))
        words, bulk, left = skip(words, 1.0 - shallow, most)
        bulk_ends_otherwise = bulk < most
        # Deal them out over the shallow depths, in parts that end at rounds of the grid.
        while bulk > 0 and budget > 0:
            part = bulk
            if mixed:
                part = min(bulk, grid[at] - t)
                if by_rows:
                    _deal_rows(tables, pairs, rng, temper, low[: limit + 1], t, part, share)
                else:
                    split(rng, part, low[: limit + 1], share)
                    if part - share[0] > budget:
                        keep_words(state, words)
                        part = _cut_short(share, part, budget, state)
                        words = words_of(state)
                        bulk_ends_otherwise = False
                for k in range(limit + 1):
                    counts[k] += share[k]
                    uncounted[k] += share[k]
                budget -= part - share[0]
            else:
                counts[main] += part
                uncounted[main] += part
                if main:
                    budget -= part
            t += part
            bulk -= part
            if t >= grid[at]:
                at = report_passed(grid, at, t, counts, table, main)
        if not bulk_ends_otherwise or bulk > 0:
            continue
        # The round after the bulk is deep, or unsure; `left` says which.
        depth = limit + 1
        while depth < stages and left >= low[depth]:
            left -= low[depth]
            depth += 1
        if depth == stages:
            unsure = True
            _count_shallow(tables, pairs, rng, uncounted, temper)
            words, u = next_uniform(words)
            depth = _unsure_depth(pairs, walk, low, chances, u)
        if by_rows:
            k = rows[t % len(rows)]
        else:
            words, u = next_uniform(words)
            k = class_of(cumulative, u)
        for _ in range(temper):
            if observe(pairs, float_outputs, k, depth, limit):
                anchor_due(pairs, depth, limit)
        counts[depth] += 1
        budget -= 1
        t += 1
        if t >= grid[at]:
            at = report_passed(grid, at, t, counts, table, depth)
    _count_shallow(tables, pairs, rng, uncounted, temper)
    keep_words(state, words)
    return t, at


@njit(cache=True, nogil=True, inline="always")
def _shallow_part(low: NDArray[np.float64], limit: int) -> tuple[int, float, bool]:
    """The likeliest depth up to the limit, the chance of all of them, and whether there are more.

    Rare ones are struck out of `low`.
    """
    main = 0
    for k in range(1, limit + 1):
        if low[k] > low[main]:
            main = k
    shallow, mixed = 0.0, False
    for k in range(limit + 1):
        if k != main and low[k] < _RARE:
            low[k] = 0.0
        elif k != main:
            mixed = True
        shallow += low[k]
    return main, shallow, mixed


@njit(cache=True, nogil=True)
def _deal_rows(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    temper: int,
    shallow: NDArray[np.float64],
    t: int,
    rounds: int,
    share: NDArray[np.int64],
) -> None:
    """Deal the shallow rounds of a round-robin stream out over their depths, into `share`.

    Its rows are known and each takes its depth independently, so every class splits on its own and
    its outputs are counted here.
    """
    share[:] = 0
    of_class = np.empty(len(shallow), dtype=np.int64)
    for k in range(len(tables.outputs)):
        met = rows_met(tables, k, t, rounds)
        if met:
            split(rng, met, shallow, of_class)
            for depth in range(len(shallow)):
                share[depth] += of_class[depth]
                if depth and of_class[depth]:
                    observe_many(pairs, tables.outputs, k, depth, of_class[depth] * temper)


@njit(cache=True, nogil=True)
def _cut_short(share: NDArray[np.int64], rounds: int, budget: int, state: RandomState) -> int:
    """Keep of the dealt rounds only those up to the `budget`-th that goes beyond stage one.

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


@njit(cache=True, nogil=True, inline="always")
def _count_shallow(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    uncounted: NDArray[np.int64],
    temper: int,
) -> None:
    """Draw the outputs of shallow rounds (those of a round-robin stream are counted already)."""
    for k in range(1, len(uncounted)):
        if uncounted[k] and not len(tables.rows):
            count_classes(tables, pairs, rng, k, uncounted[k], temper)
            uncounted[k] = 0


@njit(cache=True, nogil=True)
def _unsure_depth(
    pairs: Pairs,
    walk: int,
    low: NDArray[np.float64],
    chances: NDArray[np.float64],
    u: float,
) -> int:
    """A depth in proportion to its true probability less its bound."""
    refresh(pairs)
    depth_distribution(pairs, pairs, 0, walk, chances)
    for k in range(len(chances)):
        chances[k] = max(chances[k] - low[k], 0.0)
    return draw(chances, u)
