"""What to do after every path, from the longest back: optimal stopping, with many ways on.

A *path* is the stages called so far, in their order. After a path, in situation z, with all numbers
in mistakes:

    stop          loss of the last answer, given z
    call j next   c_j + E[ value of the path with j | z ],  for every stage j behind the last

The lesser is chosen, of equals the first: stop, or else the cheapest stage. Values are worked out
from the longest paths back: optimal stopping, with more than one way on. Nothing needs to be called
on the way to a stage, so the first one is a choice too; it is made by the rule's own measure on
rows that the rule was not made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stopwise.arrays import IntArray
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import first_choices
from stopwise.policies.per_item.alone.applying import follow
from stopwise.policies.per_item.alone.paths import KeyTable, StagePath, paths
from stopwise.situations.keys import LEVELS
from stopwise.situations.leaning import Levels, StageRisks
from stopwise.situations.references import Held
from stopwise.situations.whole_rows import WholeRows, path_keys


@dataclass(frozen=True)
class WorkedBack:
    """What to do after every path, and why.

    Attributes:
        tables: the stage to call next, by path and situation.
        options: after each path, the stages that can come next; its own last: stop.
        means: after each path, what each of them is expected to cost by situation, in mistakes.
    """

    tables: Mapping[StagePath, KeyTable]
    options: Mapping[StagePath, tuple[int, ...]] = field(default_factory=dict)
    means: Mapping[StagePath, StageRisks] = field(default_factory=dict)


def work_back(rows: WholeRows, held: Held, costs: Costs) -> WorkedBack:
    """What to do after every path, by what these rows show."""
    last = rows.stage_count - 1
    losses = held.loss(rows.groups)
    own = costs.per_stage / costs.mistake_cost
    values: dict[StagePath, FloatArray] = {}
    tables: dict[StagePath, KeyTable] = {}
    choices: dict[StagePath, tuple[int, ...]] = {}
    found_means: dict[StagePath, StageRisks] = {}
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
        keys = path_keys(rows, path)
        means = _leaned(keys, table, rows.number)
        choices[path], found_means[path] = tuple(options), means
        chosen = first_choices(means.look_up(keys))
        values[path] = table[np.arange(len(table)), chosen]
        tables[path] = tuple(
            (shift, dict(zip(found.tolist(), np.asarray(options)[first_choices(at)].tolist(),
                             strict=True)))
            for shift, found, at in zip(
                LEVELS[::-1], means.keys[::-1], means.losses[::-1], strict=True
            )
        )  # fmt: skip
    return WorkedBack(tables, choices, found_means)


def held_out_values(rows: WholeRows, held: Held, costs: Costs) -> FloatArray:
    """The value of each first stage, each half of the rows under tables of the other half."""
    totals = np.zeros(rows.stage_count)
    halves = rows.halves()
    for made, scored in (halves, halves[::-1]):
        if not len(made) or not len(scored):
            continue
        tables = work_back(made, held, costs).tables
        losses = held.loss(scored.groups)
        for first in range(rows.stage_count):
            found = follow(scored, tables, first, costs)
            lost = losses[np.arange(len(scored)), found.answered_by]
            totals[first] += (scored.number * (found.spent / costs.mistake_cost + lost)).sum()
    return np.asarray(totals / max(float(rows.number.sum()), 1.0))


def _leaned(keys: IntArray, values: FloatArray, number: FloatArray) -> StageRisks:
    """Means of values by situation, leaning on coarser keys."""
    fine, inverse = np.unique(keys, return_inverse=True)
    sums = np.zeros((len(fine), values.shape[1]))
    np.add.at(sums, inverse, values * number[:, None])
    rows = np.bincount(inverse, weights=number, minlength=len(fine)).astype(np.float64)
    return Levels.of(fine, rows, rows).lean(sums / rows[:, None])
