"""The per-item rule for stages that can be called alone: start anywhere, jump over stages.

A *path* is the stages called so far, in their order. After a path, in situation z, with all numbers
in mistakes:

    stop          loss of the last answer, given z
    call j next   c_j + E[ value of the path with j | z ],  for every stage j behind the last

The lesser is chosen, and values are worked out from the longest paths back: optimal stopping, with
more than one way on. Nothing needs to be called on the way to a stage, so the first one is a choice
too; it is made by the rule's own measure on rows that the rule was not made from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.checks import fail, known_keys, known_version, parse_json_object, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.situations.binning import Binning
from stopwise.situations.keys import LEVELS, situations
from stopwise.situations.observations import Observations
from stopwise.situations.references import Held, hold_against
from stopwise.situations.risks import StageRisks, lean
from stopwise.situations.transitions import Transitions

VERSION = 1
ALONE = "per-item-alone"
"""What a rule of this kind calls itself in a file."""
KAPPA = 0.25
ONLY_FULL_RUNS = 4.0
"""Where stages are called alone only full runs teach: there are this many times as many."""

LONGEST = 3
MANY_STAGES = 6
"""With more stages than this, paths hold at most `LONGEST` stages before the last."""

StagePath = tuple[int, ...]
KeyTable = tuple[tuple[int, Mapping[int, int]], ...]
"""From fine to coarse: how many bits of a key to cut off, and what to do at each key."""


@dataclass(frozen=True)
class AloneRule:
    """A rule that decides which stage to call first, and after each call which one next, if any.

    Args:
        stages: names, cheapest first.
        costs: what each stage costs when it is called alone, and what a mistake costs.
        binning: the cuts by which situations are made.
        first: the stage that every item calls.
        tables: for every path, the stage to call next by situation; the path's own last: stop.
        reads: what it did on the rows that it was made from, in words.
        rows: how many those were.

    >>> codes = np.array([[0, 0, 0]] * 400 + [[1, 0, 0]] * 200 + [[1, 1, 1]] * 200)
    >>> rows = Observations(("no", "yes"), codes)
    >>> costs = Costs.from_stages([1, 5, 6], mistake_cost=40)
    >>> rule = AloneRule.fit(("small", "middle", "large"), rows, costs)
    >>> rule.first, rule.follow(rows.where(np.array([0, 500]))).answered_by.tolist()
    (0, [0, 1])
    """

    stages: tuple[str, ...]
    costs: Costs
    binning: Binning
    first: int
    tables: Mapping[StagePath, KeyTable]
    reads: tuple[str, ...] = ()
    rows: int = 0

    @classmethod
    def fit(
        cls,
        stages: tuple[str, ...],
        rows: Observations,
        costs: Costs,
        *,
        reference: str | int = "auto",
        trust: float | None = None,
        first: int | None = None,
        labelled: tuple[Observations, IntArray] | None = None,
    ) -> AloneRule:
        """Make the rule from complete rows; the first stage is chosen unless it is given.

        Args:
            labelled: rows that somebody labelled, and the code of each right answer.
        """
        if not rows.complete.all():
            raise fail("rows", "rows that stopped early", "rows on which every stage was called")
        if not len(stages) == rows.stage_count == costs.stage_count:
            raise fail("stages", list(stages), f"{rows.stage_count} names and costs, as the rows")
        binning = Binning.fit(rows)
        counts = Transitions.of(rows, binning)
        if labelled is not None:
            counts.add_labels(*labelled)
        held = hold_against(counts, reference, trust)
        if first is None:
            first = int(np.argmin(_held_out(rows, binning, held, costs)))
        elif not 0 <= first < len(stages):
            raise fail("first", first, f"the number of a stage, 0 to {len(stages) - 1}")
        tables, _ = _work_back(rows, binning, held, costs)
        called = _follow(rows, binning, tables, first, costs).called
        return cls(stages, costs, binning, first, tables, in_words(stages, called), len(rows))

    def follow(self, rows: Observations) -> Followed:
        """Where items are answered and what they cost, given all outputs."""
        return _follow(rows, self.binning, self.tables, self.first, self.costs)

    def next_stage(self, path: StagePath, key: int) -> int:
        """The stage to call after a path in a situation; the last of the path means: stop."""
        for shift, table in self.tables.get(path, ()):
            found = table.get(key >> shift)
            if found is not None:
                return found
        return path[-1]

    # ---- keeping ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "version": VERSION,
            "rule": ALONE,
            "stages": list(self.stages),
            "costs": self.costs.per_stage.tolist(),
            "mistake_cost": self.costs.mistake_cost,
            "binning": self.binning.to_dict(),
            "first": self.first,
            "rows": self.rows,
            "reads": list(self.reads),
            "paths": [
                {
                    "path": list(path),
                    "levels": [
                        [shift, {f"{key:x}": stage for key, stage in sorted(table.items())}]
                        for shift, table in levels
                    ],
                }
                for path, levels in sorted(self.tables.items())
            ],
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> AloneRule:
        """Read a rule."""
        return cls.from_dict(parse_json_object("rule", text))

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> AloneRule:
        """Read what `to_dict` wrote.

        >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
        >>> rule = AloneRule.fit(("small", "large"), rows, Costs.from_stages([1, 5]))
        >>> AloneRule.from_dict(rule.to_dict()) == rule
        True
        """
        known_keys("rule", form, _FIELDS)
        known_version(form, VERSION, needed=True)
        if form.get("rule") != ALONE:
            raise fail("rule", form.get("rule"), repr(ALONE))
        try:
            stages = tuple(str(stage) for stage in form["stages"])
            costs = Costs.from_stages(form["costs"], form["mistake_cost"])
            first = whole_number("first", form["first"], least=0)
            reads = tuple(str(line) for line in form.get("reads", ()))
            rows = whole_number("rows", form.get("rows", 0), least=0)
            tables = {
                tuple(whole_number("path", at, least=0) for at in entry["path"]): tuple(
                    (
                        whole_number("levels", shift, least=0),
                        {int(key, 16): whole_number("levels", to, least=0)
                         for key, to in table.items()},
                    )
                    for shift, table in entry["levels"]
                )
                for entry in form["paths"]
            }  # fmt: skip
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise fail("rule", str(error), "a rule as to_dict writes it") from None
        _check_tables(stages, first, tables)
        return cls(stages, costs, Binning.from_dict(form["binning"]), first, tables, reads, rows)


_FIELDS = (
    "version", "rule", "stages", "costs", "mistake_cost", "binning", "first", "rows", "reads",
    "paths",
)  # fmt: skip


def _check_tables(
    stages: tuple[str, ...], first: int, tables: Mapping[StagePath, KeyTable]
) -> None:
    """Refuse a rule that names stages that are not there, or goes back."""
    count = len(stages)
    if first >= count:
        raise fail("first", first, f"the number of a stage, 0 to {count - 1}")
    for path, levels in tables.items():
        if not path or list(path) != sorted(set(path)) or path[-1] >= count:
            raise fail("path", list(path), f"numbers of stages, 0 to {count - 1}, rising")
        for _, table in levels:
            for stage in table.values():
                if not path[-1] <= stage < count:
                    raise fail(
                        "levels", stage, f"a stage from {path[-1]} to {count - 1} after this path"
                    )


def in_words(stages: tuple[str, ...], called: IntArray) -> tuple[str, ...]:
    """Which stages were called, for what share of items, largest first.

    >>> in_words(("small", "middle", "large"), np.array([[1, 0, 0], [1, 0, 0], [1, 0, 1]]))
    ('call small, and stop: 66.7 % of items', 'call small, then large: 33.3 % of items')
    """
    ways, number = np.unique(called, axis=0, return_counts=True)
    lines = []
    for at in np.argsort(-number, kind="stable"):
        names = [stages[stage] for stage in np.flatnonzero(ways[at])]
        end = ", and stop" if len(names) == 1 else ""
        lines.append(
            f"call {', then '.join(names)}{end}: {100 * number[at] / len(called):.1f} % of items"
        )
    return tuple(lines)


def full_run_probability(
    round: int, costs: Costs, kappa: float = KAPPA, always_full: int = 32
) -> float:
    """The chance that a round is a full run, whatever its outputs.

    It falls as the square root of the rounds, and the more slowly the less a full run costs.

    Args:
        costs: what each stage costs when it is called alone.

    >>> full_run_probability(10_000, Costs.from_stages([1, 4], mistake_cost=16))
    0.02
    >>> full_run_probability(1, Costs.from_stages([1, 40], mistake_cost=16))     # nothing to learn
    0.0
    """
    own = np.sort(costs.per_stage) / costs.mistake_cost
    if own[1] - own[0] >= 1:
        return 0.0  # no number of mistakes pays for another stage than the cheapest
    if round <= always_full:
        return 1.0
    price = float(own[1:].sum())  # what a full run costs beyond the cheapest stage
    return 1.0 if price <= 0 else min(1.0, ONLY_FULL_RUNS * kappa / math.sqrt(round * price))


@dataclass(frozen=True)
class Followed:
    """What following a rule came to.

    Attributes:
        answered_by: for every item, the stage whose answer it has.
        spent: for every item, the cost of its calls.
        called: for every item and stage, whether it was called.
    """

    answered_by: IntArray
    spent: FloatArray
    called: IntArray

    @cached_property
    def cost(self) -> float:
        """The cost of an item, on average."""
        return float(self.spent.mean())


def path_keys(rows: Observations, binning: Binning, path: StagePath) -> IntArray:
    """The situation of every row after a path: that of a cascade of these stages alone."""
    last = rows.stage_count - 1
    # What follows does not matter: a column behind the path keeps its end from being the final one.
    columns = [*path, last]
    part = Observations(
        rows.labels,
        rows.codes[:, columns],
        None if rows.confidences is None else rows.confidences[:, columns],
        rows.features,
    )
    cuts = Binning(
        tuple(binning.edges[at] for at in columns),
        tuple(binning.labels[at] for at in columns),
        binning.features,
        binning.label_count,
    )
    return np.asarray(situations(part, cuts)[:, len(path) - 1])


def paths(stage_count: int) -> Iterator[StagePath]:
    """All paths after which there is something to decide, longest first.

    >>> list(paths(3))
    [(0, 1), (0,), (1,)]
    """
    last = stage_count - 1
    longest = last if stage_count <= MANY_STAGES else min(last, LONGEST)
    for length in range(longest, 0, -1):
        yield from combinations(range(last), length)


def _work_back(
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


def _held_out(rows: Observations, binning: Binning, held: Held, costs: Costs) -> FloatArray:
    """The value of each first stage, each half of the rows under tables of the other half."""
    losses = _losses(rows, held)
    half = np.arange(len(rows)) % 2 == 0
    totals = np.zeros(rows.stage_count)
    for made, scored in ((half, ~half), (~half, half)):
        if not made.any() or not scored.any():
            continue
        tables, _ = _work_back(rows.where(made), binning, held, costs)
        other = rows.where(scored)
        for first in range(rows.stage_count):
            found = _follow(other, binning, tables, first, costs)
            lost = losses[scored][np.arange(len(other)), found.answered_by]
            totals[first] += (found.spent / costs.mistake_cost + lost).sum()
    return totals / max(len(rows), 1)


def _follow(
    rows: Observations,
    binning: Binning,
    tables: Mapping[StagePath, KeyTable],
    first: int,
    costs: Costs,
) -> Followed:
    count = len(rows)
    answered_by = np.full(count, first, dtype=np.int64)
    called = np.zeros((count, rows.stage_count), dtype=np.int64)
    called[:, first] = 1
    waiting: dict[StagePath, IntArray] = {(first,): np.arange(count)}
    while waiting:
        path, items = waiting.popitem()
        if path not in tables or not len(items):
            continue
        keys = path_keys(rows.where(items), binning, path)
        goes = _decide(tables[path], keys, path[-1])
        for stage in np.unique(goes[goes != path[-1]]).tolist():
            on = items[goes == stage]
            answered_by[on] = stage
            called[on, stage] = 1
            waiting[(*path, stage)] = on
    return Followed(answered_by, called @ costs.per_stage, called)


def _decide(table: KeyTable, keys: IntArray, stop: int) -> IntArray:
    result = np.full(len(keys), stop, dtype=np.int64)
    for shift, actions in reversed(table):  # coarse first, the finer ones on top
        known = np.asarray(sorted(actions), dtype=np.int64)
        if len(known):
            to = np.asarray([actions[key] for key in known.tolist()], dtype=np.int64)
            wanted = keys >> shift
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            found = known[at] == wanted
            result[found] = to[at[found]]
    return result


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
    return lean(fine, rows, rows, sums / rows[:, None])
