"""Rounds, what was said in them, and sums by the hour: written in batches, exactly once."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.service.database.connection import Database
from stopwise.service.database.writing import DAY_HOURS, HOUR, Entry, budget_name, write_entries

_PART = 5000  # rows that are read at once


@dataclass(frozen=True)
class StoredRound:
    """A round as it was written."""

    id: str
    segment: str
    at: float
    form: Mapping[str, Any]


@dataclass(frozen=True)
class StoredItem:
    """What was asked in a round and what each stage answered."""

    round: StoredRound
    request: Any
    outputs: Sequence[Any]


class Rounds:
    """The tables of rounds, items and sums."""

    def __init__(self, database: Database, keep_days: float = 30.0) -> None:
        self._database = database
        self.keep_seconds = keep_days * 86400

    def write(self, batch: str, entries: Sequence[Entry]) -> None:
        """Write a batch in one transaction; a batch that was written before is not written again.

        Args:
            batch: its name. After a lost connection nobody knows whether it was committed, so
                it is tried again under the same name.
        """
        with self._database.transaction() as work:
            fresh = work.run(
                "INSERT INTO batches (id, at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
                (batch, time.time()),
            )
            if fresh:
                write_entries(
                    work, entries, keep_seconds=self.keep_seconds, shared=self._database.shared
                )

    def expire(self, now: float | None = None) -> None:
        """Delete items whose time has come, and names of old batches."""
        now = time.time() if now is None else now
        with self._database.transaction() as work:
            work.run("DELETE FROM items WHERE expires < ?", (now,))
            work.run("DELETE FROM batches WHERE at < ?", (now - 86400,))

    def spent_today(self, day: int) -> dict[str, float]:
        """What was spent in a day, by key and on comparisons of each cascade."""
        first = day * DAY_HOURS
        rows = self._database.rows(
            "SELECT cascade_name, name, sum(value) FROM sums WHERE hour >= ? AND hour < ?"
            " AND (name LIKE 'key:%' OR name = 'comparison') GROUP BY cascade_name, name".replace(
                "%", "%%" if self._database.shared else "%"
            ),
            (first, first + DAY_HOURS),
        )
        spent: defaultdict[str, float] = defaultdict(float)
        for cascade, name, value in rows:
            budget = budget_name(cascade, name)
            if budget is not None:
                spent[budget] += value
        return dict(spent)

    def sums(
        self,
        cascade: str,
        *,
        epoch: str | None = None,
        segment: str | None = None,
        since: float = 0.0,
    ) -> dict[str, float]:
        """Sums by name, over a time."""
        where, values = _where(cascade, epoch, segment, since)
        rows = self._database.rows(
            f"SELECT name, sum(value) FROM sums WHERE {where} GROUP BY name", values
        )
        return dict(rows)

    def by_hour(
        self,
        cascade: str,
        *,
        epoch: str | None = None,
        segment: str | None = None,
        since: float = 0.0,
    ) -> dict[int, dict[str, float]]:
        """Sums by hour (since 1970) and name, oldest first."""
        where, values = _where(cascade, epoch, segment, since)
        found: dict[int, dict[str, float]] = {}
        for hour, name, value in self._database.rows(
            f"SELECT hour, name, sum(value) FROM sums WHERE {where}"
            " GROUP BY hour, name ORDER BY hour",
            values,
        ):
            found.setdefault(hour, {})[name] = value
        return found

    def segments(self, cascade: str, epoch: str) -> dict[str, float]:
        """The segments of a cascade and how many requests each had."""
        return dict(
            self._database.rows(
                "SELECT segment, sum(value) FROM sums WHERE cascade_name = ? AND epoch = ?"
                " AND name = 'requests' GROUP BY segment ORDER BY segment",
                (cascade, epoch),
            )
        )

    def rounds(
        self, cascade: str, epoch: str, *, after: tuple[float, str] = (0.0, ""), limit: int = 1000
    ) -> list[StoredRound]:
        """Rounds in the order of time, from a place on: (at, id) of the last one seen."""
        rows = self._database.rows(
            "SELECT id, segment, at, form FROM rounds WHERE cascade_name = ? AND epoch = ?"
            " AND (at > ? OR (at = ? AND id > ?)) ORDER BY at, id LIMIT ?",
            (cascade, epoch, after[0], after[0], after[1], limit),
        )
        return [StoredRound(row[0], row[1], row[2], json.loads(row[3])) for row in rows]

    def before(
        self, cascade: str, epoch: str, until: float, *, since: float = 0.0, limit: int = 1000
    ) -> list[StoredRound]:
        """The last rounds up to a time, in the order of time; read in parts."""
        rows: list[tuple[Any, ...]] = []
        last = math.nextafter(until, math.inf), ""
        while len(rows) < limit:
            part = self._database.rows(
                "SELECT id, segment, at, form FROM rounds WHERE cascade_name = ? AND epoch = ?"
                " AND at >= ? AND (at < ? OR (at = ? AND id < ?))"
                " ORDER BY at DESC, id DESC LIMIT ?",
                (cascade, epoch, since, last[0], last[0], last[1], min(_PART, limit - len(rows))),
            )
            rows += part
            if len(part) < _PART:
                break
            last = part[-1][2], part[-1][0]
        return [StoredRound(row[0], row[1], row[2], json.loads(row[3])) for row in reversed(rows)]

    def complete_at(self, cascade: str, epoch: str, number: int) -> float | None:
        """When the round came, by its number, that all stages answered; None if it has not yet."""
        rows = self._database.rows(
            "SELECT at FROM rounds WHERE cascade_name = ? AND epoch = ? AND complete = 1"
            " ORDER BY at LIMIT 1 OFFSET ?",
            (cascade, epoch, number - 1),
        )
        return float(rows[0][0]) if rows else None

    def latest(
        self, cascade: str, epoch: str, segment: str | None, limit: int
    ) -> list[StoredRound]:
        """The last rounds, the latest first."""
        where, values = "cascade_name = ? AND epoch = ?", [cascade, epoch]
        if segment is not None:
            where += " AND segment = ?"
            values.append(segment)
        rows = self._database.rows(
            f"SELECT id, segment, at, form FROM rounds WHERE {where} ORDER BY at DESC LIMIT ?",
            (*values, limit),
        )
        return [StoredRound(row[0], row[1], row[2], json.loads(row[3])) for row in rows]

    def round(self, cascade: str, round_id: str) -> StoredRound | None:
        """One round."""
        rows = self._database.rows(
            "SELECT id, segment, at, form FROM rounds WHERE cascade_name = ? AND id = ?",
            (cascade, round_id),
        )
        if not rows:
            return None
        found_id, segment, at, form = rows[0]
        return StoredRound(found_id, segment, at, json.loads(form))

    def items(
        self,
        cascade: str,
        epoch: str,
        *,
        differ: bool = True,
        segment: str | None = None,
        before: float | None = None,
        limit: int = 50,
    ) -> list[StoredItem]:
        """What was kept, the latest first."""
        where = "r.cascade_name = ? AND r.epoch = ?"
        values: list[Any] = [cascade, epoch]
        if differ:
            where += " AND r.differ = 1"
        if segment is not None:
            where += " AND r.segment = ?"
            values.append(segment)
        if before is not None:
            where += " AND r.at < ?"
            values.append(before)
        rows = self._database.rows(
            "SELECT r.id, r.segment, r.at, r.form, i.request, i.outputs FROM rounds r"
            f" JOIN items i ON i.round_id = r.id WHERE {where} ORDER BY r.at DESC LIMIT ?",
            (*values, limit),
        )
        return [_item(row) for row in rows]

    def item(self, cascade: str, round_id: str) -> StoredItem | None:
        """What was said in one round, if it was kept and has not expired."""
        rows = self._database.rows(
            "SELECT r.id, r.segment, r.at, r.form, i.request, i.outputs FROM rounds r"
            " JOIN items i ON i.round_id = r.id WHERE r.cascade_name = ? AND r.id = ?",
            (cascade, round_id),
        )
        return _item(rows[0]) if rows else None


def _item(row: tuple[Any, ...]) -> StoredItem:
    stored = StoredRound(row[0], row[1], row[2], json.loads(row[3]))
    return StoredItem(stored, json.loads(row[4]), json.loads(row[5]))


def _where(
    cascade: str, epoch: str | None, segment: str | None, since: float
) -> tuple[str, Sequence[Any]]:
    where = "cascade_name = ? AND hour >= ?"
    values: list[Any] = [cascade, int(since // HOUR)]
    if epoch is not None:
        where += " AND epoch = ?"
        values.append(epoch)
    if segment is not None:
        where += " AND segment = ?"
        values.append(segment)
    return where, values
