"""One pair decides: every round comes as far as the last stage but one.

Such a round stops there, or looks at the last stage because the pair of the two fails. So only this
pair is followed, one look after the other; which outputs the other stages gave in these looks is
drawn at the end, given how many of the looks disagreed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import (
    ConfidenceSettings,
    first_failing_round,
    looks_to_pass,
    passes,
)
from stopwise.simulation.kernels.pairs import A, B, Pairs, X, observe_many
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import (
    RandomState,
    binomial,
    keep_words,
    next_uniform,
    split,
    words_of,
)
from stopwise.simulation.kernels.rules import upper_bound
from stopwise.simulation.kernels.stream import report_passed

# From this many looks on, one binomial number is quicker than looks one by one.
_MANY = 32


@njit(cache=True, nogil=True, error_model="numpy")
def follow_last_pair(
    tables: Tables,
    pairs: Pairs,
    settings: ConfidenceSettings,
    t: int,
    until: int,
    grid: NDArray[np.int64],
    at: int,
    counts: NDArray[np.int64],
    table: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
) -> int:
    """Take all rounds after t up to `until`; returns the next place in the grid.

    Looks are observed. Rounds that stop before the last stage are only counted: their outputs are
    for the caller to draw.
    """
    last = len(pairs) - 1
    base, alpha, strict = last - 1, settings.alpha, settings.strict
    threshold, disagreed = pairs[base, last, X], pairs[base, last, A]
    seen = disagreed + pairs[base, last, B]
    p = _share_that_differs(tables)
    before, differed_before = counts[last], disagreed
    # The bound only rises with the clock: what fails at an earlier one fails now.
    clock = alpha * math.log(t + 1)
    fell_behind = True
    words = words_of(state)
    while t < until:
        if passes(threshold, upper_bound(disagreed, seen, clock), strict):
            due = first_failing_round(threshold, disagreed, seen, alpha, strict, t + 1, until + 1)
            counts[base] += due - 1 - t
            t = due - 1
            if t >= grid[at]:
                at = report_passed(grid, at, t, counts, table, base)
            if t == until:
                break
            clock = alpha * math.log(due)
        looks = 1
        if fell_behind:  # only disagreements raise the number of looks that are due at once
            due_now = looks_to_pass(threshold, disagreed, clock) - seen - 1.0
            looks = int(min(due_now, float(min(until, grid[at]) - t)))
        if looks > _MANY:
            differed = binomial(rng, looks, p)
        else:
            looks = 1
            words, u = next_uniform(words)
            differed = 1 if u < p else 0
        fell_behind = looks > 1 or differed > 0
        seen += looks
        disagreed += differed
        counts[last] += looks
        t += looks
        if t >= grid[at]:
            at = report_passed(grid, at, t, counts, table, last)
    keep_words(state, words)
    _deal(tables, pairs, rng, counts[last] - before, int(disagreed - differed_before))
    return at


@njit(cache=True, nogil=True)
def _share_that_differs(tables: Tables) -> float:
    """How often the outputs of the last two stages differ."""
    last = tables.outputs.shape[1] - 1
    differ = total = 0.0
    for k in range(tables.prefix_start[last], tables.prefix_start[last + 1]):
        outputs = tables.outputs[tables.prefix_class[k]]
        total += tables.prefix_p[k]
        if outputs[last - 1] != outputs[last]:
            differ += tables.prefix_p[k]
    return differ / total


@njit(cache=True, nogil=True)
def _deal(
    tables: Tables, pairs: Pairs, rng: np.random.Generator, looks: int, differed: int
) -> None:
    """Count the outputs of looks at the last stage, of which the last two differed so often."""
    last = len(pairs) - 1
    start, end = tables.prefix_start[last], tables.prefix_start[last + 1]
    classes, dealt = np.empty(end - start, dtype=np.int64), np.empty(end - start, dtype=np.int64)
    weights = np.empty(end - start)
    for differ, number in ((True, differed), (False, looks - differed)):
        found = 0
        for k in range(start, end):
            stands_for = tables.prefix_class[k]
            outputs = tables.outputs[stands_for]
            if (outputs[last - 1] != outputs[last]) == differ:
                classes[found], weights[found] = stands_for, tables.prefix_p[k]
                found += 1
        split(rng, number, weights[:found], dealt[:found])
        for k in range(found):
            if dealt[k]:
                observe_many(pairs, tables.outputs, classes[k], last, dealt[k])
