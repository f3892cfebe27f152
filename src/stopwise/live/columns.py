"""Many rounds counted at once, from columns of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopwise.live.pairs import pair_number
from stopwise.live.tally import Tally
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
    size = len(depths)
    delta.rounds = size
    delta.lengths = np.bincount(depths, minlength=count).tolist()
    delta.stops = list(delta.lengths)
    full = []
    for rows, column in zip(where, columns, strict=True):
        spread = np.zeros(size, dtype=column.dtype)
        spread[rows] = column
        full.append(spread)
    switches = np.zeros(size, dtype=np.int64)
    for j in range(1, len(columns)):
        rows = where[j]
        for i in range(j):
            differs = full[i][rows] != columns[j]
            at = pair_number(i, j)
            delta.seen[at] = len(rows)
            delta.disagreed[at] = int(differs.sum())
            if i == j - 1:
                switches[rows] += differs
    long = switches[depths >= 2]
    delta.switched = int((long >= 1).sum())
    delta.switched_twice = int((long >= 2).sum())
    return delta
