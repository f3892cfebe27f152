"""Many rounds counted at once, from columns of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopwise.agreement import count_partition, distinct, partitions
from stopwise.live.counters.pairs import pair_number
from stopwise.live.counters.tally import Tally
from stopwise.problem import IntArray


def count_columns(
    count: int,
    depths: IntArray,
    where: Sequence[IntArray],
    columns: Sequence[Any],
) -> Tally:
    """The counters of many rounds whose outputs stand in columns; every stage answered.

    >>> rows, outputs = [np.array([0, 1]), np.array([1])], [np.array([5, 5]), np.array([7])]
    >>> count_columns(2, np.array([0, 1]), rows, outputs).disagreed
    [1]
    """
    delta = Tally(count)
    values, at = delta.values, delta.layout
    size = len(depths)
    values[at.rounds] = size
    for stage, times in enumerate(np.bincount(depths, minlength=count).tolist()):
        values[at.lengths + stage] = values[at.stops + stage] = times
    codes = np.full((size, count), -1, dtype=np.int64)
    for stage, (rows, column) in enumerate(zip(where, _coded(columns), strict=True)):
        codes[rows, stage] = column
    for partition, times in distinct(partitions(codes)):
        added = count_partition(partition)
        for i, j, differs in added.pairs:
            values[at.seen + pair_number(i, j)] += times
            values[at.disagreed + pair_number(i, j)] += times * differs
        values[at.switched] += times * added.switched
        values[at.switched_twice] += times * added.switched_twice
    return delta


def _coded(columns: Sequence[Any]) -> list[IntArray]:
    """The outputs of all stages as codes, equal where the outputs are."""
    _, codes = np.unique(np.concatenate([*columns]), return_inverse=True)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return np.split(codes.ravel(), ends)
