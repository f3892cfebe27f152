"""Replications of the confidence-bound rules, whose decision changes with the clock.

Given the evidence the decision is certain, so only the moment when it changes matters. While the
rule stops at one stage, its pairs with deeper stages are frozen and that moment has a closed form.
The pairs before it do change, but bounds show how long the rule is sure to come as far
(`sure_depths`). What is left are looks, taken one by one: so the time grows with the looks, and
linearly with the rounds where a rule needs ever more of them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import (
    ConfidenceSettings,
    first_failing_round,
    passes,
)
from stopwise.simulation.kernels.confidence.last_pair import follow_last_pair
from stopwise.simulation.kernels.confidence.sure_depths import bulk_cost, sure_rounds
from stopwise.simulation.kernels.pairs import A, B, Pairs, X, observe
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState
from stopwise.simulation.kernels.replications import runs_settings
from stopwise.simulation.kernels.rules import upper_bound
from stopwise.simulation.kernels.stream import (
    count_classes,
    count_rows,
    next_class,
    report_passed,
)

# Rounds between two attempts at a bulk, doubled (up to 2^_MOST_PATIENCE) while they fail.
_PATIENCE = 16
_MOST_PATIENCE = 4


@njit(cache=True, nogil=True)
def _passes(pairs: Pairs, i: int, j: int, scaled_log: float, strict: bool) -> bool:
    disagreed, seen = pairs[i, j, A], pairs[i, j, A] + pairs[i, j, B]
    return passes(pairs[i, j, X], upper_bound(disagreed, seen, scaled_log), strict)


@njit(cache=True, nogil=True)
def decide(pairs: Pairs, first: int, round: int, settings: ConfidenceSettings) -> int:
    """Where the rule stops, if it comes as far as stage `first`."""
    last = len(pairs) - 1
    if first >= last:
        return last
    scaled_log = settings.alpha * math.log(round)
    for i in range(first, last):
        chosen = True
        for j in range(i + 1, last + 1):
            if not _passes(pairs, i, j, scaled_log, settings.strict):
                chosen = False
                break
        if chosen and settings.two_sided:
            for j in range(i):
                if _passes(pairs, j, i, scaled_log, settings.two_sided):  # always strict
                    chosen = False
                    break
        if chosen:
            return i
    return last


@njit(cache=True, nogil=True)
def _stays(
    pairs: Pairs, stage: int, clock: float, t: int, until: int, settings: ConfidenceSettings
) -> int:
    """How many rounds after t, up to round `until`, pass at `stage` against all deeper ones.

    Its pairs are frozen until then. `clock` is alpha ln of a round that is over: the bounds only
    rise, so what fails then fails now, and needs no logarithm.
    """
    last = len(pairs) - 1
    for j in range(stage + 1, last + 1):
        if not _passes(pairs, stage, j, clock, settings.strict):
            return 0 * t  # 0, but of the type of t: see `run_one`
    change = until + 1
    for j in range(stage + 1, last + 1):
        disagreed, seen = pairs[stage, j, A], pairs[stage, j, A] + pairs[stage, j, B]
        change = first_failing_round(
            pairs[stage, j, X], disagreed, seen, settings.alpha, settings.strict, t + 1, change
        )
    return change - (t + 1)


@runs_settings(ConfidenceSettings)
@njit(cache=True, nogil=True)
def run_one(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: ConfidenceSettings,
    grid: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication; `table` receives the depth counts at every round of the grid.

    `base` is a depth that the rule is sure to come to until round `sure_until` (if `frozen`, or
    until a round goes deeper); rounds that stop there are counted in bulk when that ends.
    """
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    by_rows, last, horizon = len(rows) > 0, len(thresholds) - 1, grid[-1]
    pairs = np.zeros((last + 1, last + 1, 8))
    pairs[:, :, X] = thresholds
    counts = np.zeros(last + 1, dtype=np.int64)
    # Typed: a literal 0 would have the functions below compiled once more for that type alone.
    base = uncounted = t = at = horizon * 0
    sure_until, frozen, clock = horizon, False, 0.0
    most, failed, wait = 16 + horizon * 0, 0, 0
    while t < horizon:
        # 1. What was sure is no longer: count what was put off, and begin at the first stage.
        if t >= sure_until:
            if uncounted:
                count_classes(tables, pairs, rng, base, uncounted)
            base, uncounted, sure_until, frozen = horizon * 0, horizon * 0, horizon, False
        # 2. Rounds that pass at the sure depth, all at once.
        rounds = _stays(pairs, base, clock, t, sure_until, settings)
        if rounds > 0:
            counts[base] += rounds
            t += rounds
            clock = settings.alpha * math.log(t)
            if base > 0 and by_rows:
                count_rows(tables, pairs, base, t - rounds, rounds)
            elif base > 0:
                uncounted += rounds
            if t >= grid[at]:
                at = report_passed(grid, at, t, counts, table, base)
            continue
        if frozen:
            sure_until, frozen = t, False
            continue
        # 3. One pair alone decides: follow it for as long as that is so.
        if base == last - 1 and t > 0 and not by_rows:
            stopped_here = counts[base]
            at = follow_last_pair(
                tables, pairs, settings, t, sure_until, grid, at, counts, table, state, rng
            )
            if base > 0:
                uncounted += counts[base] - stopped_here
            t = sure_until
            continue
        # 4. A round that goes deeper: is its depth sure for long, so that a bulk pays? Finding out
        # takes time too; where it was in vain, some rounds pass before it is asked again.
        depth = decide(pairs, base + 1, t + 1, settings)
        if wait > 0:
            wait -= 1
        elif base == 0 and t > 0:
            rounds, frozen = sure_rounds(tables, pairs, depth, t, most, grid, at, settings)
            if rounds > 0:
                base, sure_until = depth, t + rounds
                most, failed = 2 * rounds, 0
                continue
            most = 2 * bulk_cost(tables, depth)
            wait = _PATIENCE << min(failed, _MOST_PATIENCE)
            failed += 1
        # 5. If not, one look.
        k = next_class(rows, cumulative, t, state)
        if t == 0 and settings.first_counts_last_only:
            _observe_last_only(pairs, outputs, k)
        else:
            observe(pairs, outputs, k, depth, last)
        counts[depth] += 1
        t += 1
        if t >= grid[at]:
            at = report_passed(grid, at, t, counts, table, depth)


@njit(cache=True, nogil=True)
def _observe_last_only(pairs: Pairs, outputs: NDArray[np.int32], k: int) -> None:
    """Count a round of class k that called all stages, but only the pairs with the last one."""
    last = len(pairs) - 1
    for i in range(last):
        pairs[i, last, A if outputs[k, i] != outputs[k, last] else B] += 1.0
