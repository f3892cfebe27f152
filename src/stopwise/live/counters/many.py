"""Many rounds counted at once, from columns of outputs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from stopwise.agreement import (
    Increments,
    count_partition,
    count_prefix,
    distinct,
    partitions,
)
from stopwise.live.counters.tally import Tally
from stopwise.live.pairs import pair_number
from stopwise.problem import IntArray

_FEW_STAGES = 4
"""Up to this many, which pairs of a round differ fits into a small number."""


def count_columns(
    stage_count: int,
    depths: IntArray,
    codes: IntArray,
) -> Tally:
    """The counters of many rounds whose outputs are coded; every stage that was called answered.

    Args:
        stage_count: how many stages the cascade has.
        depths: of every round.
        codes: a row for each round, a column for each stage: equal where the outputs are, -1 where
            the stage was not called. Rounds of one stage are not looked at.

    >>> count_columns(2, np.array([0, 1]), np.array([[5, -1], [5, 7]])).disagreed
    [1]
    """
    delta = Tally(stage_count)
    values, at = delta.values, delta.layout
    values[at.rounds] = len(depths)
    for stage, times in enumerate(np.bincount(depths, minlength=stage_count).tolist()):
        values[at.lengths + stage] = values[at.stops + stage] = times
    deep = depths > 0
    if not deep.all():
        depths, codes = depths[deep], codes[deep]
    for added, times in _increments(depths, codes):
        for i, j, differs in added.pairs:
            values[at.seen + pair_number(i, j)] += times
            values[at.disagreed + pair_number(i, j)] += times * differs
        values[at.switched] += times * added.switched
        values[at.switched_twice] += times * added.switched_twice
    return delta


def _increments(depths: IntArray, codes: IntArray) -> Iterable[tuple[Increments, int]]:
    """What rounds add, each different one once, with how many rounds add it."""
    width = codes.shape[1]
    if width > _FEW_STAGES:
        for partition, times in distinct(partitions(codes)):
            yield count_partition(partition), times
        return
    # A digit for the depth, then one for each pair: whether it differs.
    keys, place = depths.copy(), width
    for j in range(width):
        for i in range(j):
            keys += place * (codes[:, i] != codes[:, j])
            place *= 2
    for key, times in enumerate(np.bincount(keys).tolist()):
        if times:
            yield _of_key(key, width), times


@lru_cache(maxsize=1024)
def _of_key(key: int, width: int) -> Increments:
    differing, depth = divmod(key, width)
    return count_prefix(range(depth + 1), lambda i, j: bool(differing >> pair_number(i, j) & 1))
