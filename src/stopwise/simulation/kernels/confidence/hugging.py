"""A confidence-bound rule that hugs its boundary: when one pair alone decides, and what it saw.

The rule comes as far as a base and stops there, or looks deeper because one pair fails. Which looks
are made is a matter of that pair only (see `following`), from one round of the grid to the next.
How often the other pairs disagreed in these looks is drawn at the end.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import SLACK, first_failing_round
from stopwise.simulation.kernels.confidence.following import (
    follow,
    looks_for,
    rises,
    rounds_to_spare,
)
from stopwise.simulation.kernels.confidence.rising import bulk_cost
from stopwise.simulation.kernels.pairs import A, B, Pairs, X, observe_many
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import State, split
from stopwise.simulation.kernels.stream import write_counts


@njit(cache=True, nogil=True, error_model="numpy")
def hugged_stage(
    pairs: Pairs,
    base: int,
    depth: int,
    t: int,
    cut: int,
    most: int,
    alpha: float,
    two_sided: bool,
) -> int:
    """The deeper stage that alone decides between a stop at `base` and a look at `depth`, or -1.

    Over so many looks and up to the cut, whatever is output: all other pairs of `base` pass, and
    a round that goes on stops at `depth`. (That all rounds come as far as `base` is known.)
    """
    early, late, last = alpha * math.log(t + 1), alpha * math.log(cut), len(pairs) - 1
    found = -1
    for i in range(base, depth + 1):
        passed_over = False
        for j in range(i + 1, last + 1):
            x, disagreed, seen = pairs[i, j, X], pairs[i, j, A], pairs[i, j, A] + pairs[i, j, B]
            if seen == 0.0:
                return -1
            more = most if j <= depth else 0
            highest = (disagreed + more) / (seen + more) + math.sqrt(late / seen)
            lowest = disagreed / (seen + more) + math.sqrt(early / (seen + more))
            surely_passes = x > highest * (1.0 + SLACK)
            if i == base and not surely_passes:
                if found >= 0 or j > depth:
                    return -1
                found = j
            if i == depth and not surely_passes:
                return -1
            passed_over = passed_over or x < lowest * (1.0 - SLACK)
        if two_sided and i > base:
            for j in range(i):
                x, disagreed, seen = pairs[j, i, X], pairs[j, i, A], pairs[j, i, A] + pairs[j, i, B]
                highest = (disagreed + most) / (seen + most) + math.sqrt(late / seen)
                lowest = disagreed / (seen + most) + math.sqrt(early / (seen + most))
                if i == depth and depth < last and not x < lowest * (1.0 - SLACK):
                    return -1
                passed_over = passed_over or x > highest * (1.0 + SLACK)
        if base < i < depth and not passed_over:
            return -1
    return found


@njit(cache=True, nogil=True)
def share_of_disagreements(tables: Tables, depth: int, i: int, j: int) -> float:
    """How often the outputs of stages i and j differ in rounds that stop at `depth`."""
    total = differ = 0.0
    for k in range(tables.prefix_start[depth], tables.prefix_start[depth + 1]):
        total += tables.prefix_p[k]
        stands_for = tables.prefix_class[k]
        if tables.outputs[stands_for, i] != tables.outputs[stands_for, j]:
            differ += tables.prefix_p[k]
    return differ / total


@njit(cache=True, nogil=True)
def deal(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    depth: int,
    i: int,
    j: int,
    looks: int,
    differed: int,
) -> None:
    """Count the outputs of looks at `depth` of which we know how often stages i and j differed."""
    start, end = tables.prefix_start[depth], tables.prefix_start[depth + 1]
    classes, dealt = np.empty(end - start, dtype=np.int64), np.empty(end - start, dtype=np.int64)
    weights = np.empty(end - start)
    for differ, total in ((True, differed), (False, looks - differed)):
        count = 0
        for k in range(start, end):
            stands_for = tables.prefix_class[k]
            if (tables.outputs[stands_for, i] != tables.outputs[stands_for, j]) == differ:
                classes[count], weights[count] = stands_for, tables.prefix_p[k]
                count += 1
        split(rng, total, weights[:count], dealt[:count])
        for k in range(count):
            if dealt[k]:
                observe_many(pairs, tables.outputs, classes[k], depth, dealt[k])


@njit(cache=True, nogil=True)
def hug(
    tables: Tables,
    pairs: Pairs,
    base: int,
    depth: int,
    t: int,
    sure_until: int,
    alpha: float,
    two_sided: bool,
    strict: bool,
    bulks: NDArray[np.float64],
    grid: NDArray[np.int64],
    at: int,
    counts: NDArray[np.int64],
    table: NDArray[np.int64],
    state: State,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Take the rounds after t, for as long as one pair decides, if that is sure to spare looks.

    All rounds until `sure_until` come as far as `base`, and the next one goes on to `depth`. Looks
    are observed and all rounds counted. Returns the round that is over (t if it was not worth it)
    and the place in the grid.
    """
    cost = bulk_cost(tables, depth)
    until = min(sure_until, 2 * t)
    most = until - t
    stage = hugged_stage(pairs, base, depth, t, until, 0 * t, alpha, two_sided)
    while stage >= 0 and hugged_stage(pairs, base, depth, t, until, most, alpha, two_sided) < 0:
        most //= 4
    if stage < 0 or most <= cost:
        return t, at
    x, disagreed = pairs[base, stage, X], pairs[base, stage, A]
    seen = disagreed + pairs[base, stage, B]
    if not x > 0.0 or not rises(x, seen + most, alpha, t):
        return t, at
    if looks_for(x, disagreed, math.sqrt(alpha * math.log(until))) - seen <= cost:
        return t, at
    p = share_of_disagreements(tables, depth, base, stage)
    all_looks = all_differed = 0 * t
    while t < until and all_looks < most:
        cut, left = min(grid[at], until), most - all_looks
        reserve = rounds_to_spare(seen, x, p, t, cut, left)
        looks, differed, now = follow(
            seen, disagreed, x, p, alpha, strict, t, cut, left, reserve, bulks, state, rng
        )
        seen, disagreed = seen + looks, disagreed + differed
        all_looks, all_differed = all_looks + looks, all_differed + differed
        counts[depth] += looks
        counts[base] += now - t - looks
        t = now
        # Rounds of the grid before the next look.
        due = first_failing_round(x, disagreed, seen, alpha, strict, t + 1, until + 1)
        while at < len(grid) and grid[at] < due:
            counts[base] += grid[at] - t
            t = grid[at]
            write_counts(table, at, counts)
            at += 1
        if due > until:
            counts[base] += until - t
            t = until
    deal(tables, pairs, rng, depth, base, stage, all_looks, all_differed)
    return t, at
