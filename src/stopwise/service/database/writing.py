"""What a finished request leaves behind, written inside somebody's transaction."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

HOUR = 3600
DAY_HOURS = 24
KEY = "key:"
COMPARISON = "comparison"
LOCKING = " FOR UPDATE"


@dataclass(frozen=True)
class Ending:
    """The end of a round that was begun over the API.

    Attributes:
        name: under which the reply is kept, to be given again.
        reply: that is sent to whoever ends the round.
    """

    name: str
    reply: str


@dataclass(frozen=True)
class Entry:
    """One request to be written.

    Attributes:
        counted: whether it is a round: others add to the sums alone.
        differ: whether answers disagreed; `complete`: whether every stage answered.
        item: what was asked and answered, if it is to be kept: (request, outputs).
        ending: of a round over the API; it is written only while that round is still open.
        holder: who holds the parts of budgets that its costs come from; empty where nobody does.
    """

    id: str
    cascade: str
    epoch: str
    segment: str
    at: float
    sums: Mapping[str, float]
    counted: bool
    differ: bool = False
    complete: bool = False
    form: Mapping[str, Any] | None = None
    item: tuple[Any, Any] | None = None
    ending: Ending | None = None
    holder: str = ""


def budget_name(cascade: str, name: str) -> str | None:
    """The budget that a sum is charged to; None for sums that no budget knows.

    >>> budget_name("support", "comparison"), budget_name("support", "key:a"), budget_name("c", "x")
    ('comparison:support', 'key:a', None)
    """
    if name == COMPARISON:
        return f"{COMPARISON}:{cascade}"
    return name if name.startswith(KEY) else None


class Statements(Protocol):
    """What is needed of a transaction. Placeholders are written `?`."""

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute once for each row."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""


def write_entries(
    work: Statements, entries: Sequence[Entry], *, keep_seconds: float, shared: bool
) -> list[bool]:
    """Write requests; for each, whether it was: False for a round that was ended before.

    Everything is written in one order, so that two replicas never wait for each other.

    Args:
        work: the transaction.
        keep_seconds: how long texts are kept.
        shared: whether other machines write too, so that open rounds must be locked.
    """
    now = time.time()
    written = _still_open(work, entries, shared)
    fresh = [entry for entry, good in zip(entries, written, strict=True) if good]
    ended = [entry for entry in fresh if entry.ending is not None]
    work.run_many("DELETE FROM open_rounds WHERE id = ?", [(e.id,) for e in ended])
    work.run_many(
        "INSERT INTO replies (key_id, name, at, asked, status, reply) VALUES ('', ?, ?, '', 200, ?)"
        " ON CONFLICT (key_id, name) DO NOTHING",
        [(e.ending.name, now, e.ending.reply) for e in ended if e.ending is not None],
    )
    work.run_many(
        "INSERT INTO rounds (id, cascade_name, epoch, segment, at, differ, complete, form)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (e.id, e.cascade, e.epoch, e.segment, e.at, int(e.differ), int(e.complete),
             json.dumps(e.form))
            for e in fresh if e.counted
        ],
    )  # fmt: skip
    work.run_many(
        "INSERT INTO items (round_id, cascade_name, at, expires, request, outputs)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (e.id, e.cascade, e.at, now + keep_seconds, *map(_text, e.item))
            for e in fresh
            if e.item is not None
        ],
    )
    work.run_many(
        "INSERT INTO sums (cascade_name, epoch, segment, hour, name, value)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (cascade_name, epoch, segment, hour, name)"
        " DO UPDATE SET value = sums.value + excluded.value",
        [(*key, value) for key, value in sorted(_sums(fresh).items())],
    )
    # What is written is no longer held, in the same transaction: it never counts as neither.
    work.run_many(
        "UPDATE grants SET held = held - ? WHERE name = ? AND day = ? AND replica = ?",
        [(value, *key) for key, value in sorted(_charged(fresh).items())],
    )
    return written


def _still_open(work: Statements, entries: Sequence[Entry], shared: bool) -> list[bool]:
    """Whether each is to be written: of several ends of one round the first one alone."""
    ends = sorted({entry.id for entry in entries if entry.ending is not None})
    left: set[str] = set()
    if ends:
        places = ", ".join("?" * len(ends))
        query = f"SELECT id FROM open_rounds WHERE id IN ({places}) ORDER BY id"
        left = {row[0] for row in work.rows(query + LOCKING * shared, ends)}
    written = []
    for entry in entries:
        good = entry.ending is None or entry.id in left
        if entry.ending is not None:
            left.discard(entry.id)
        written.append(good)
    return written


def _sums(entries: Sequence[Entry]) -> Mapping[tuple[str, str, str, int, str], float]:
    sums: defaultdict[tuple[str, str, str, int, str], float] = defaultdict(float)
    for entry in entries:
        hour = int(entry.at // HOUR)
        for name, value in entry.sums.items():
            if value:
                sums[entry.cascade, entry.epoch, entry.segment, hour, name] += value
    return sums


def _charged(entries: Sequence[Entry]) -> Mapping[tuple[str, int, str], float]:
    """What is to be taken off the parts of budgets that are held: by name, day and holder."""
    charged: defaultdict[tuple[str, int, str], float] = defaultdict(float)
    for entry in entries:
        if entry.holder:
            day = int(entry.at // HOUR) // DAY_HOURS
            for name, value in entry.sums.items():
                budget = budget_name(entry.cascade, name)
                if budget is not None and value:
                    charged[budget, day, entry.holder] += value
    return charged


def _text(value: Any) -> str:
    return json.dumps(value, default=str)
