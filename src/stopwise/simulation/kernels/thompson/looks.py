"""Looks one by one: the loop that most of the time of a Thompson replication goes into.

It is mostly written out in one piece. A helper that takes an array, inlined or not, may have numba
count the references to that array on every call, which costs as much as half a look; it does not
for helpers that take numbers, nor where an inlined one makes no calls and has one way out. And what
cannot be predicted (which outputs agree) must not be a branch.
"""

from __future__ import annotations

from numba import njit

from stopwise.simulation.kernels.pairs import ABOVE, BELOW, Pairs, anchor_due, observe
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import (
    RandomState,
    keep_words,
    next_uniform,
    skip,
    words_of,
)
from stopwise.simulation.kernels.stream import class_of, report_passed
from stopwise.simulation.kernels.thompson.parts import DepthReport
from stopwise.simulation.kernels.thompson.settings import STEP_WALK, ThompsonSettings


@njit(cache=True, nogil=True, error_model="numpy")
def run_looks(
    tables: Tables,
    settings: ThompsonSettings,
    pairs: Pairs,
    report: DepthReport,
    state: RandomState,
    most_looks: int,
    t: int,
    at: int,
) -> tuple[int, int]:
    """A block with depth limit 0: skip to the next look beyond the first stage, step, repeat."""
    grid, counts, table = report.grid, report.counts, report.table
    walk, temper = settings.walk, settings.temper
    float_outputs, rows, cumulative = tables.float_outputs, tables.rows, tables.cumulative
    by_rows = len(rows) > 0
    last, horizon = len(pairs) - 1, grid[-1]
    words = words_of(state)
    deeper, until = t - counts[0], grid[at]
    for _look in range(most_looks):
        going_on, passed = 0.0, 1.0
        for j in range(1, last + 1):
            going_on += passed * pairs[0, j, ABOVE]
            passed *= pairs[0, j, BELOW]
        words, skipped, left = skip(words, going_on, horizon - t)
        t += skipped
        if t >= until:
            counts[0] = t - deeper
            at = report_passed(grid, at, t, counts, table, 0)
            if t >= horizon:
                break
            until = grid[at]

        # Where the walk ends, given that it goes on; `left` is uniform on (0, going_on).
        if walk == STEP_WALK:
            depth, whole = 1, going_on
            while depth < last:
                stop = whole
                for j in range(depth + 1, last + 1):
                    stop *= pairs[depth, j, BELOW]
                if left < stop:
                    break
                depth += 1
                if depth < last:
                    words, left = next_uniform(words)
                    whole = 1.0
        else:
            depth, to = 0, -1
            while to != 0 and depth < last:
                # The nearest stage that fails: chances are dealt out along one uniform number.
                passed, to = 1.0, 0
                for j in range(depth + 1, last + 1):
                    here = passed * pairs[depth, j, ABOVE]
                    if left < here:
                        to = j
                        break
                    left -= here
                    passed *= pairs[depth, j, BELOW]
                if to == 0 and depth == 0:
                    to = last  # rounding at the very end of the first deal
                depth = max(depth, to)
                words, left = next_uniform(words)
        if by_rows:
            k = rows[t % len(rows)]
        else:
            words, u = next_uniform(words)
            k = class_of(cumulative, u)
        for _ in range(temper):
            if observe(pairs, float_outputs, k, depth, 0):
                anchor_due(pairs, depth, 0)
        counts[depth] += 1
        deeper += 1
        t += 1
    counts[0] = t - deeper
    # A look at a round of the grid ends it; within the loop it is written at the next look.
    if t >= grid[at]:
        at = report_passed(grid, at, t, counts, table, 0)
    keep_words(state, words)
    return t, at
