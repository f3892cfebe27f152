"""Replications of the confidence-bound rules, whose decision changes with the clock.

Given the evidence the decision is certain, so only the moment when it changes matters. While the
rule stops at one stage, its pairs with deeper stages are frozen and that moment has a closed form.
The pairs before it do move, but bounds show how long the rule is sure to come as far (`rising`).
Where it goes back and forth between two depths, on the boundary of one pair, that pair is followed
from one round of the grid to the next (`hugging`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import first_failing_round, passes, upper_bound
from stopwise.simulation.kernels.confidence.following import BULKS
from stopwise.simulation.kernels.confidence.hugging import hug
from stopwise.simulation.kernels.confidence.rising import bulk_cost, rise_to
from stopwise.simulation.kernels.pairs import A, B, Pairs, X, observe
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import State
from stopwise.simulation.kernels.stream import (
    count_classes,
    count_rows,
    next_class,
    write_counts,
)

# Rounds between two attempts at a bulk, doubled (up to 2^_MOST_PATIENCE) while they fail.
_PATIENCE = 16
_MOST_PATIENCE = 4


@njit(cache=True, nogil=True)
def _passes(pairs: Pairs, i: int, j: int, scaled_log: float, strict: bool) -> bool:
    disagreed, seen = pairs[i, j, A], pairs[i, j, A] + pairs[i, j, B]
    return passes(pairs[i, j, X], upper_bound(disagreed, seen, scaled_log), strict)


@njit(cache=True, nogil=True)
def decide(
    pairs: Pairs, first: int, round: int, alpha: float, two_sided: bool, strict: bool
) -> int:
    """The rule from stage `first` on: USS-UCB if two-sided and strict, Algorithm 2 if neither."""
    scaled_log = alpha * math.log(round)
    last = len(pairs) - 1
    for i in range(first, last):
        chosen = True
        for j in range(i + 1, last + 1):
            if not _passes(pairs, i, j, scaled_log, strict):
                chosen = False
                break
        if chosen and two_sided:
            strictly = two_sided  # that is, True: a literal would have it compiled once more
            for j in range(i):
                if _passes(pairs, j, i, scaled_log, strictly):
                    chosen = False
                    break
        if chosen:
            return i
    return last


@njit(cache=True, nogil=True)
def _first_change(
    pairs: Pairs, stage: int, round: int, after: int, alpha: float, strict: bool
) -> int:
    """The first round from `round` on in which `stage` fails against a deeper one; at most `after`.

    Its pairs are frozen until then.
    """
    change = after
    for j in range(stage + 1, len(pairs)):
        disagreed, seen = pairs[stage, j, A], pairs[stage, j, A] + pairs[stage, j, B]
        change = first_failing_round(
            pairs[stage, j, X], disagreed, seen, alpha, strict, round, change
        )
        if change == round:
            break
    return change


@njit(cache=True, nogil=True)
def run_one(
    tables: Tables,
    x: NDArray[np.float64],
    alpha: float,
    two_sided: bool,
    strict: bool,
    first_counts_last_only: bool,
    grid: NDArray[np.int64],
    state: State,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication; `table` receives the depth counts at every round of the grid.

    `base` is a depth that the rule is sure to arrive at until round `sure_until` (if `frozen`, or
    until a round goes deeper); rounds that stop there are counted in bulk, at the latest when that
    ends.
    """
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    by_rows = len(rows) > 0
    stages, horizon = len(x), grid[-1]
    last = stages - 1
    pairs = np.zeros((stages, stages, 8))
    for i in range(stages):
        for j in range(stages):
            pairs[i, j, X] = x[i, j]
    counts = np.zeros(stages, dtype=np.int64)
    # Typed: a literal 0 would have the functions below compiled once more for that type alone.
    base = uncounted = t = at = horizon * 0
    sure_until, frozen = horizon, False
    tried, failed, wait = 16 + horizon * 0, 0, 0
    bulks = np.empty((BULKS, 5))
    hugs_failed, hug_wait = 0, 0
    while t < horizon:
        if t >= sure_until:
            if uncounted:
                count_classes(tables, pairs, rng, base, uncounted)
                uncounted *= 0
            base, sure_until, frozen = horizon * 0, horizon, False
        depth = base
        rounds = _first_change(pairs, base, t + 1, sure_until + 1, alpha, strict) - (t + 1)
        if base == last:
            rounds = sure_until - t
        if rounds == 0 and frozen:
            sure_until, frozen = t, False
            continue
        if rounds == 0:
            depth = decide(pairs, base + 1, t + 1, alpha, two_sided, strict)
            rounds = 1
            if hug_wait > 0:
                hug_wait -= 1
            elif t > 0 and not by_rows:
                before, looks_before = t, counts[depth]
                t, at = hug(
                    tables, pairs, base, depth, t, sure_until, alpha, two_sided, strict,
                    bulks, grid, at, counts, table, state, rng,
                )  # fmt: skip
                if t > before:
                    if base > 0:
                        uncounted += t - before - (counts[depth] - looks_before)
                    hugs_failed = 0
                    continue
                hug_wait = _PATIENCE << min(hugs_failed, _MOST_PATIENCE)
                hugs_failed += 1
            if wait > 0:
                wait -= 1
            elif base == 0 and t > 0:
                rise, rounds, frozen = rise_to(
                    tables, pairs, depth, t, tried, grid, at, alpha, two_sided, not by_rows
                )
                if rounds > 0:
                    base, sure_until = rise, t + rounds
                    tried, failed = 2 * rounds, 0
                    if rise < depth:
                        hugs_failed, hug_wait = 0, 0
                    continue
                rounds = 1
                tried = 2 * bulk_cost(tables, depth)
                wait = _PATIENCE << min(failed, _MOST_PATIENCE)
                failed += 1
            k = next_class(rows, cumulative, t, state)
            if t == 0 and first_counts_last_only:
                for i in range(last):
                    pairs[i, last, A if outputs[k, i] != outputs[k, last] else B] += 1.0
            else:
                observe(pairs, outputs, k, depth, last)
        elif base > 0 and by_rows:
            count_rows(tables, pairs, base, t, rounds)
        elif base > 0:
            uncounted += rounds
        counts[depth] += rounds
        t += rounds
        while at < len(grid) and grid[at] <= t:
            write_counts(table, at, counts)
            table[at, depth] -= t - grid[at]
            at += 1


@njit(cache=True, nogil=True)
def run_many(
    tables: Tables,
    x: NDArray[np.float64],
    alpha: float,
    two_sided: bool,
    strict: bool,
    first_counts_last_only: bool,
    grid: NDArray[np.int64],
    states: NDArray[np.uint64],
    rng: np.random.Generator,
    result: NDArray[np.int64],
) -> None:
    """Replications one after the other, each with its own stream of uniforms."""
    for k in range(len(states)):
        run_one(
            tables, x, alpha, two_sided, strict, first_counts_last_only,
            grid, states[k], rng, result[k],
        )  # fmt: skip
