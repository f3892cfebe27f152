"""Many rounds counted at once, from columns of outputs."""

from __future__ import annotations

import numpy as np

from stopwise.agreement import count_partition, distinct, partitions
from stopwise.live.counters.tally import Tally
from stopwise.live.pairs import pair_number
from stopwise.problem import IntArray


def count_columns(
    stage_count: int,
    depths: IntArray,
    codes: IntArray,
) -> Tally:
    """The counters of many rounds whose outputs are coded; every stage that was called answered.

    Args:
        stage_count: how many stages.
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
    called = codes if deep.all() else codes[deep]
    for partition, times in distinct(partitions(called)):
        added = count_partition(partition)
        for i, j, differs in added.pairs:
            values[at.seen + pair_number(i, j)] += times
            values[at.disagreed + pair_number(i, j)] += times * differs
        values[at.switched] += times * added.switched
        values[at.switched_twice] += times * added.switched_twice
    return delta
