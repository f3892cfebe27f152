"""What to do after every path, from the longest back: optimal stopping, with many ways on.

A *path* is the stages called so far, in their order. After a path, in situation z, with all numbers
in mistakes:

    stop          loss of the last answer, given z
    call j next   c_j + E[ value of the path with j | z ],  for every stage j behind the last

The lesser is chosen, and values are worked out from the longest paths back: optimal stopping, with
more than one way on. Nothing needs to be called on the way to a stage, so the first one is a choice
too; it is made by the rule's own measure on rows that the rule was not made from.
"""

from __future__ import annotations

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.costs import Costs, FloatArray
from stopwise.policies.per_item.alone.applying import follow
from stopwise.policies.per_item.alone.paths import KeyTable, StagePath, path_keys, paths
from stopwise.situations.binning import Binning
from stopwise.situations.keys import LEVELS
from stopwise.situations.leaning import Levels, StageRisks
from stopwise.situations.observations import Observations
from stopwise.situations.references import Held


def work_back(
    rows: Observations, binning: Binning, held: Held, costs: Costs
) -> tuple[dict[StagePath, KeyTable], FloatArray]:
    """Tables of all paths, and the value of each first stage, in mistakes, on these rows."""
    last = rows.stage_count - 1
    losses = _losses(rows, held)
    own = costs.per_stage / costs.mistake_cost
    values: dict[StagePath, FloatArray] = {}
    tables: dict[StagePath, KeyTable] = {}
    for path in paths(rows.stage_count):
        options = [path[-1]]
        columns = [losses[:, path[-1]]]
        for stage in range(path[-1] + 1, last + 1):
            longer = (*path, stage)
            if stage < last and longer not in values:
                continue
            options.append(stage)
            columns.append(own[stage] + (losses[:, last] if stage == last else values[longer]))
        table = np.stack(columns, axis=1)
        keys = path_keys(rows, binning, path)
        means = _leaned(keys, table)
        chosen = means.look_up(keys).argmin(axis=1)
        values[path] = table[np.arange(len(table)), chosen]
        tables[path] = tuple(
            (shift, dict(zip(found.tolist(), np.asarray(options)[at.argmin(axis=1)].tolist(),
                             strict=True)))
            for shift, found, at in zip(
                LEVELS[::-1], means.keys[::-1], means.losses[::-1], strict=True
            )
        )  # fmt: skip
    starts = [own[s] + values[(s,)].mean() for s in range(last)]
    return tables, np.asarray([*starts, own[last] + losses[:, last].mean()])


def held_out_values(rows: Observations, binning: Binning, held: Held, costs: Costs) -> FloatArray:
    """The value of each first stage, each half of the rows under tables of the other half."""
    losses = _losses(rows, held)
    half = np.arange(len(rows)) % 2 == 0
    totals = np.zeros(rows.stage_count)
    for made, scored in ((half, ~half), (~half, half)):
        if not made.any() or not scored.any():
            continue
        tables, _ = work_back(rows.where(made), binning, held, costs)
        other = rows.where(scored)
        for first in range(rows.stage_count):
            found = follow(other, binning, tables, first, costs)
            lost = losses[scored][np.arange(len(other)), found.answered_by]
            totals[first] += (found.spent / costs.mistake_cost + lost).sum()
    return totals / max(len(rows), 1)


def _losses(rows: Observations, held: Held) -> FloatArray:
    """The loss of every stage's answer on every row, in mistakes."""
    groups = partitions(np.where(rows.codes < 0, -1, rows.codes))
    return held.loss(groups)


def _leaned(keys: IntArray, values: FloatArray) -> StageRisks:
    """Means of values by situation, leaning on coarser keys."""
    fine, inverse, number = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.zeros((len(fine), values.shape[1]))
    np.add.at(sums, inverse, values)
    rows = number.astype(np.float64)
    return Levels.of(fine, rows, rows).lean(sums / rows[:, None])
