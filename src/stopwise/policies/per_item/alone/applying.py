"""Items sent along a rule: which stages they call, whose answer they have, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stopwise.arrays import IntArray
from stopwise.costs import Costs, FloatArray
from stopwise.policies.per_item.alone.paths import KeyTable, StagePath
from stopwise.situations.whole_rows import WholeRows, path_keys


@dataclass(frozen=True)
class Followed:
    """What happened to every item under a rule.

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


def follow(
    rows: WholeRows,
    tables: Mapping[StagePath, KeyTable],
    first: int,
    costs: Costs,
) -> Followed:
    """Send rows that have all outputs along the tables of a rule, from its first stage."""
    called = np.zeros((len(rows), rows.stage_count), dtype=np.int64)

    def call(stage: int, items: IntArray) -> None:
        called[items, stage] = 1

    def keys_of(items: IntArray, path: StagePath) -> IntArray:
        return path_keys(rows.where(items), path)

    answered_by = send_along(tables, first, len(rows), call, keys_of)
    return Followed(answered_by, called @ costs.per_stage, called)


def send_along(
    tables: Mapping[StagePath, KeyTable],
    first: int,
    number: int,
    call: Callable[[int, IntArray], None],
    keys_of: Callable[[IntArray, StagePath], IntArray],
) -> IntArray:
    """Send items along the tables of a rule; whose answer each has.

    Args:
        first: the stage that all of them call first.
        number: how many items.
        call: calls a stage on items.
        keys_of: the situations of items after a path, all stages of which were called on them.

    >>> calls = []
    >>> tables = {(0,): ((0, {7: 1}),)}                    # from situation 7, on to stage 1
    >>> send_along(tables, 0, 3, lambda stage, items: calls.append((stage, items.tolist())),
    ...            lambda items, path: np.array([7, 5, 7]))
    array([1, 0, 1])
    >>> calls
    [(0, [0, 1, 2]), (1, [0, 2])]
    """
    answered_by = np.full(number, first, dtype=np.int64)
    everyone = np.arange(number)
    call(first, everyone)
    waiting: dict[StagePath, IntArray] = {(first,): everyone}
    while waiting:
        path, items = waiting.popitem()
        if path not in tables or not len(items):
            continue
        goes = _decide(tables[path], keys_of(items, path), path[-1])
        for stage in np.unique(goes[goes != path[-1]]).tolist():
            on = items[goes == stage]
            answered_by[on] = stage
            call(stage, on)
            waiting[(*path, stage)] = on
    return answered_by


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


def in_words(
    stages: tuple[str, ...], called: IntArray, number: FloatArray | None = None
) -> tuple[str, ...]:
    """Which stages were called, for what share of items, largest first.

    Args:
        number: how many items each row of `called` stands for.

    >>> in_words(("small", "middle", "large"), np.array([[1, 0, 0], [1, 0, 0], [1, 0, 1]]))
    ('call small, and stop: 66.7 % of items', 'call small, then large: 33.3 % of items')
    """
    ways, which = np.unique(called, axis=0, return_inverse=True)
    times = np.bincount(np.ravel(which), weights=number)
    lines = []
    for at in np.argsort(-times, kind="stable"):
        names = [stages[stage] for stage in np.flatnonzero(ways[at])]
        end = ", and stop" if len(names) == 1 else ""
        lines.append(
            f"call {', then '.join(names)}{end}: {100 * times[at] / times.sum():.1f} % of items"
        )
    return tuple(lines)
