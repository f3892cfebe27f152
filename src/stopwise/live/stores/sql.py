"""What the two stores in databases share: counters in rows, increments in transactions.

Every change of a cascade takes a number from the one row of the cascade. So changes of one cascade
follow one another, also on PostgreSQL, and "all after number n" is what a reader has not seen.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stopwise.checks import StopwiseError, fail, parse_json_object
from stopwise.evidence import Evidence
from stopwise.live.counters.layout import RECENT, layout_of
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.items.decider import ItemDecider
from stopwise.live.record import RoundRecord, added_of, check_whole
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Attached, Changes, Companion, StoreError, Writing
from stopwise.live.stores.sql_schema import ADD, ADD_HOUR, VERSION, Connection, Row
from stopwise.live.stores.sql_transitions import SqlTransitions
from stopwise.live.watching.drift import DriftAlarm, DriftWatch
from stopwise.situations.transitions import Transitions

_PAGE = 1000
_PART = 200  # segments that are read with one query


class SqlStore(ABC):
    """A store in a database. `SqliteStore` and `PostgresStore` say how to connect to theirs.

    Args:
        where: how the database is named in errors.
        cascade: several cascades can share one database, each under a name.
        writer: see there.
        keep_rounds, keep_outputs: see there.
        writing: how rounds are handed to it.

    Attributes:
        companion: what else is written in the transactions of `append`; see `Companion`.
    """

    companion: Companion | None = None

    def __init__(
        self,
        where: str,
        cascade: str,
        writer: str | None,
        keep_rounds: bool,
        keep_outputs: bool,
        writing: Writing,
    ) -> None:
        if not isinstance(cascade, str):
            raise fail("cascade", cascade, "text")
        self.where = where
        self.cascade = cascade
        self.writing = writing
        self._name = writer
        self._token = ""
        self._keep_rounds = keep_rounds or keep_outputs
        self._keep_outputs = keep_outputs
        self._connection: Connection | None = None
        self._in_use = False
        self._writer = 0
        self._seen = 0  # the last change that this learner knows of
        self._own = 0
        self._others_wrote = False
        self._counters: SegmentCounters | None = None
        self._watch: DriftWatch | None = None
        self._items: SqlTransitions | None = None
        self._items_moved = False

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection, on which nothing is under way."""

    @abstractmethod
    def claim(self, connection: Connection, writer: int) -> None:
        """Refuse a writer's name that another process uses at this moment."""

    @abstractmethod
    def prepare(self, connection: Connection) -> None:
        """Make the tables, in a transaction."""

    @abstractmethod
    def broken(self, error: Exception) -> bool:
        """Whether an error means that the connection cannot be used any more."""

    # ---- attaching ---------------------------------------------------------------------------

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        counters: SegmentCounters,
        watch: DriftWatch | None,
        items: ItemDecider | None = None,
    ) -> Attached:
        """Connect, refuse other settings, take a writer's number, read all counters."""
        if self._in_use:
            raise StopwiseError(f"{self.where}: this store is in use by another learner")
        self._in_use = True
        self._counters, self._watch = counters, watch
        self._items = None if items is None else self._transitions_for(items)
        try:
            connection = self._connection = self.connect()
            with connection.transaction():
                self.prepare(connection)
                self._check_cascade(connection, settings, seed)
                kept = self._take_writer(connection)
                if self._items is not None:
                    self._items.attach(connection)
            self._load(connection, counters)
        except BaseException:
            self.close()
            raise
        return Attached(self._writer, kept)

    def _transitions_for(self, items: ItemDecider) -> SqlTransitions | None:
        if not items.policy.learns:
            return None
        return SqlTransitions(
            self.where,
            self.cascade,
            len(items.stages),
            items.first_rounds,
            items.take,
            items.given,
        )

    def _check_cascade(self, connection: Connection, settings: LearnerSettings, seed: int) -> None:
        connection.query(
            "INSERT INTO stopwise_cascades (cascade, version, seed, settings) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (cascade) DO NOTHING",
            (self.cascade, VERSION, json.dumps(seed), json.dumps(settings.to_form())),
        )
        version, other_seed, form = connection.query(
            "SELECT version, seed, settings FROM stopwise_cascades WHERE cascade = ?",
            (self.cascade,),
        )[0]
        if version != VERSION:
            raise fail(
                f"{self.where}: version", version,
                f"version {VERSION}, the only one that this release reads",
            )  # fmt: skip
        exactly = self._name is not None and other_seed == json.dumps(seed)
        there = parse_json_object(f"{self.where}: settings", form)
        settings.check_same(there, self.where, exactly=exactly)

    def _take_writer(self, connection: Connection) -> int:
        name = self._name or f"unnamed {uuid.uuid4()}"
        key = (self.cascade, name)
        # Writers count from 1: 0 is a learner that shares with nobody. The row of the cascade is
        # locked, so that two do not take one number.
        connection.query(
            "UPDATE stopwise_cascades SET change = change WHERE cascade = ?", (self.cascade,)
        )
        connection.query(
            "INSERT INTO stopwise_writers (cascade, writer, name, token)"
            " SELECT ?, COALESCE(MAX(writer), 0) + 1, ?, '' FROM stopwise_writers WHERE cascade = ?"
            " ON CONFLICT (cascade, name) DO NOTHING",
            (*key, self.cascade),
        )
        query = "SELECT writer, watermark FROM stopwise_writers WHERE cascade = ? AND name = ?"
        writer, watermark = connection.query(query, key)[0]
        self._writer = check_whole("writer", writer)
        self.claim(connection, self._writer)
        self._token = secrets.token_hex(16)
        connection.query(
            "UPDATE stopwise_writers SET token = ? WHERE cascade = ? AND name = ?",
            (self._token, *key),
        )
        return check_whole("watermark", watermark)

    def _load(self, connection: Connection, counters: SegmentCounters) -> None:
        with connection.transaction(reading=True):
            rows = connection.query(
                "SELECT segment, counter, value FROM stopwise_counters WHERE cascade = ?",
                (self.cascade,),
            )
            begun = connection.query(
                "SELECT begun FROM stopwise_writers WHERE cascade = ? AND writer = ?",
                (self.cascade, self._writer),
            )[0][0]
            others = self._look(connection)
            if self._items is not None:
                self._items.look(connection)
        for segment, values in self._by_segment(rows).items():
            counters.set_tally(segment, values)
        # Rounds begun here and still open have numbers above those that the store knows.
        counters.begun = max(counters.begun, check_whole("begun", begun))
        counters.others = others

    def _look(self, connection: Connection) -> int:
        """Note which change is the last; return how many rounds all others have finished."""
        change, total, own = connection.query(
            "SELECT c.change, c.rounds, w.rounds FROM stopwise_cascades c, stopwise_writers w"
            " WHERE c.cascade = ? AND w.cascade = ? AND w.writer = ?",
            (self.cascade, self.cascade, self._writer),
        )[0]
        self._seen = check_whole(f"{self.where}: change", change)
        rounds = check_whole(f"{self.where}: rounds", total)
        return max(rounds - check_whole(f"{self.where}: rounds", own), 0)

    def _by_segment(self, rows: Iterable[Row]) -> dict[str, dict[str, int | float]]:
        assert self._counters is not None
        layout = layout_of(self._counters.stage_count)
        segments: dict[str, dict[str, int | float]] = {}
        for segment, counter, value in rows:
            place = layout.places.get(counter)
            if place is not None and not layout.real[place] and value == int(value):
                value = int(value)
            segments.setdefault(segment, {})[counter] = value
        return segments

    # ---- writing -----------------------------------------------------------------------------

    def append(self, first: int, records: Sequence[RoundRecord]) -> Sequence[DriftAlarm]:
        """Count rounds in one transaction; those below the writer's watermark are there already."""
        connection = self._connected()
        alarms: list[DriftAlarm] = []
        try:
            with connection.transaction():
                watermark = self._watermark(connection)
                fresh = records[max(watermark + 1 - first, 0) :]
                if not fresh:
                    return ()
                counted = fresh
                if self.companion is not None:
                    counted = self.companion.admit(connection, fresh)
                change = self._next_change(connection, len(counted))
                by_segment: dict[str, list[RoundRecord]] = {r.segment: [] for r in fresh}
                for record in counted:
                    by_segment[record.segment].append(record)
                for segment, part in by_segment.items():
                    alarms += self._add_rounds(connection, segment, part, change)
                if self._keep_rounds:
                    self._add_rows(connection, counted)
                if self._items is not None:
                    shown = [r.item for r in counted if r.item is not None]
                    self._items.append(connection, shown, change)
                if self.companion is not None and alarms:
                    self.companion.note(connection, alarms)
                connection.query(
                    "UPDATE stopwise_writers SET watermark = ?, rounds = rounds + ?,"
                    " begun = CASE WHEN begun > ? THEN begun ELSE ? END, held = held - ?"
                    " WHERE cascade = ? AND writer = ?",
                    (
                        watermark + len(fresh), len(counted), *[max(r.sequence for r in fresh)] * 2,
                        sum(r.cost for r in fresh), self.cascade, self._writer,
                    ),
                )  # fmt: skip
        except Exception as error:
            self._leave(error)
            raise
        # The learner has counted its rounds already: where not all were admitted, it reads again.
        self._others_wrote |= change != self._seen + 1 or len(counted) < len(fresh)
        if not self._others_wrote:
            self._seen = change
        if self._items is not None:
            self._items_moved = True
        return alarms

    def _watermark(self, connection: Connection) -> int:
        found = connection.query(
            "SELECT watermark FROM stopwise_writers WHERE cascade = ? AND writer = ? AND token = ?",
            (self.cascade, self._writer, self._token),
        )
        if not found:
            raise StoreError(f"{self.where}: another process writes under the name {self._name!r}")
        return int(found[0][0])

    def _next_change(self, connection: Connection, rounds: int) -> int:
        return int(
            connection.query(
                "UPDATE stopwise_cascades SET change = change + 1, rounds = rounds + ?"
                " WHERE cascade = ? RETURNING change",
                (rounds, self.cascade),
            )[0][0]
        )

    def _add_rounds(
        self, connection: Connection, segment: str, records: Sequence[RoundRecord], change: int
    ) -> list[DriftAlarm]:
        delta = self._empty()
        for record in records:
            delta.apply(record)
        if delta.discount != 1.0:
            # Older rounds lose weight with every round; within the batch `delta` has seen to it.
            connection.query(
                "UPDATE stopwise_counters SET value = value * ?"
                " WHERE cascade = ? AND segment = ? AND counter LIKE ?",
                (delta.discount ** len(records), self.cascade, segment, f"{RECENT}%"),
            )
        number, drift = self._touch(connection, segment, change)
        self._add(connection, segment, delta)
        if self._watch is None:
            return []
        self._watch.begin(segment, number, json.loads(drift) if drift else None)
        alarms: list[DriftAlarm] = []
        for record in records:
            pairs = added_of(record).pairs
            alarms += self._watch.observe(segment, pairs)
        connection.query(
            "UPDATE stopwise_segments SET drift = ? WHERE cascade = ? AND segment = ?",
            (json.dumps(self._watch.form_of(segment)), self.cascade, segment),
        )
        return alarms

    def _touch(self, connection: Connection, segment: str, change: int) -> tuple[int, str | None]:
        """Note that a segment has changed; return its place in the order of appearance."""
        row = connection.query(
            "INSERT INTO stopwise_segments (cascade, segment, number, change)"
            " SELECT ?, ?, COUNT(*) + 1, ? FROM stopwise_segments WHERE cascade = ?"
            " ON CONFLICT (cascade, segment) DO UPDATE SET change = excluded.change"
            " RETURNING number, drift",
            (self.cascade, segment, change, self.cascade),
        )[0]
        return int(row[0]), row[1]

    def _add(self, connection: Connection, segment: str, delta: Tally) -> None:
        counters = delta.to_counters()
        rows = [(self.cascade, segment, name, float(value)) for name, value in counters.items()]
        connection.many(ADD, rows)
        hour = int(time.time() // 3600)
        connection.many(
            ADD_HOUR,
            [
                (cascade, segment, hour, name, value)
                for cascade, segment, name, value in rows
                if not name.startswith(RECENT)
            ],
        )

    def _add_rows(self, connection: Connection, records: Sequence[RoundRecord]) -> None:
        now = time.time()
        connection.many(
            "INSERT INTO stopwise_rounds (cascade, writer, sequence, ended, round)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (
                    self.cascade,
                    r.writer,
                    r.sequence,
                    now,
                    r.to_text(keep_outputs=self._keep_outputs),
                )
                for r in records
            ],
        )

    def _empty(self) -> Tally:
        counters = self._counters
        assert counters is not None
        return Tally(counters.stage_count, counters.discount, counters.recorder)

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere to the counters."""
        delta = self._empty()
        delta.values = delta.with_evidence(evidence)
        connection = self._connected()
        try:
            with connection.transaction():
                change = self._next_change(connection, 0)
                self._touch(connection, segment, change)
                self._add(connection, segment, delta)
        except Exception as error:
            self._leave(error)
            raise
        self._others_wrote |= change != self._seen + 1
        if not self._others_wrote:
            self._seen = change

    def add_transitions(self, counts: Transitions) -> None:
        """Add transitions from elsewhere, counted by the same bins."""
        connection, items = self._connected(), self._items
        assert items is not None
        try:
            with connection.transaction():
                items.merge(connection, counts, self._next_change(connection, 0))
            items.look(connection)
        except Exception as error:
            self._leave(error)
            raise
        self._others_wrote = True  # so that the number of this change is not taken for another's

    def read_transitions(self) -> Transitions | None:
        """All transitions that anyone has counted; None before the first bins are cut."""
        connection = self._connected()
        if self._items is None:
            return None
        with connection.transaction(reading=True):
            return self._items.read(connection)

    def grant(self, least: float, most: float, budget: float) -> float | None:
        """Take a part of the budget: between least and most, or 0 where less is left."""
        connection = self._connected()
        try:
            with connection.transaction():
                self._next_change(connection, 0)
                spent = connection.query(
                    "SELECT COALESCE(SUM(value), 0) FROM stopwise_counters"
                    " WHERE cascade = ? AND counter = 'spent'",
                    (self.cascade,),
                )[0][0]
                held = connection.query(
                    "SELECT COALESCE(SUM(held), 0) FROM stopwise_writers"
                    " WHERE cascade = ? AND held > 0",
                    (self.cascade,),
                )[0][0]
                left = budget - spent - held
                part = min(most, left) if left >= least - 1e-9 * budget else 0.0
                connection.query(
                    "UPDATE stopwise_writers SET held = held + ? WHERE cascade = ? AND writer = ?",
                    (part, self.cascade, self._writer),
                )
        except Exception as error:
            self._leave(error)
            raise
        self._others_wrote = True  # the number of this change was ours, but others' may be below it
        return max(part, 0.0)

    def give_back(self, part: float) -> None:
        """Return what was granted and not spent."""
        connection = self._connected()
        with connection.transaction():
            connection.query(
                "UPDATE stopwise_writers SET held = held - ? WHERE cascade = ? AND writer = ?",
                (part, self.cascade, self._writer),
            )

    # ---- reading -----------------------------------------------------------------------------

    def changes(self) -> Changes | None:
        """The counters of the segments that anyone has changed since the last time."""
        if self._items is not None and self._items_moved:
            self._items.look(self._connected())
            self._items_moved = False
        if not self._others_wrote:
            return None
        return self._read_changes()

    def refresh(self) -> Changes | None:
        """The same, asking the database whether there is anything new."""
        connection = self._connected()
        query = "SELECT change FROM stopwise_cascades WHERE cascade = ?"
        if connection.query(query, (self.cascade,))[0][0] == self._seen:
            return None
        return self._read_changes()

    def _read_changes(self) -> Changes:
        connection = self._connected()
        seen = self._seen
        try:
            with connection.transaction(reading=True):
                names = connection.query(
                    "SELECT segment FROM stopwise_segments WHERE cascade = ? AND change > ?",
                    (self.cascade, seen),
                )
                rows: list[Row] = []
                for start in range(0, len(names), _PART):
                    part = [name for (name,) in names[start : start + _PART]]
                    marks = ", ".join("?" * len(part))
                    rows += connection.query(
                        "SELECT segment, counter, value FROM stopwise_counters"
                        f" WHERE cascade = ? AND segment IN ({marks})",
                        (self.cascade, *part),
                    )
                others = self._look(connection)
                if self._items is not None:
                    self._items.look(connection)
        except Exception as error:
            self._seen = seen
            self._leave(error)
            raise
        self._others_wrote = False
        return Changes(self._by_segment(rows), others)

    def read_rounds(self) -> Iterator[RoundRecord]:
        """The rounds that were kept, of all writers, over a connection of its own."""
        last: tuple[int, int] = (-1, -1)
        connection = self.connect()
        try:
            while True:
                # Page by page, so that nothing is held open while the caller takes its time.
                rows = connection.query(
                    "SELECT writer, sequence, round FROM stopwise_rounds WHERE cascade = ?"
                    " AND (writer, sequence) > (?, ?) ORDER BY writer, sequence LIMIT ?",
                    (self.cascade, *last, _PAGE),
                )
                for _, _, text in rows:
                    yield RoundRecord.from_form(parse_json_object(f"{self.where}: round", text))
                if len(rows) < _PAGE:
                    return
                last = rows[-1][:2]
        finally:
            connection.close()

    def read_hours(self, segment: str | None = None) -> list[Mapping[str, Any]]:
        """The counters of every hour (UTC), as records of segment, hour, counter and value."""
        connection = self.connect()
        try:
            rows = connection.query(
                "SELECT segment, hour, counter, value FROM stopwise_hours WHERE cascade = ?"
                " AND (CAST(? AS TEXT) IS NULL OR segment = ?) ORDER BY hour, segment, counter",
                (self.cascade, segment, segment),
            )
        finally:
            connection.close()
        return [
            {"segment": name, "hour": 3600 * int(hour), "counter": counter, "value": value}
            for name, hour, counter, value in rows
        ]

    # ---- connection --------------------------------------------------------------------------

    def _connected(self) -> Connection:
        if not self._in_use:
            raise StoreError(f"{self.where}: this store is closed")
        if self._connection is None:
            self._connection = self.connect()
            self.reclaim(self._connection)
        return self._connection

    def reclaim(self, connection: Connection) -> None:  # noqa: B027  # most need nothing
        """After a connection was lost: take the writer's name again, if that needs it."""

    def before_fork(self) -> None:  # noqa: B027  # most need nothing
        """Close what neither process may use after a fork; the next write opens it again."""

    def _leave(self, error: Exception) -> None:
        """Drop a connection that cannot be used any more; the next try makes a new one."""
        if self._connection is not None and self.broken(error):
            connection, self._connection = self._connection, None
            with suppress(Exception):  # it is broken anyway
                connection.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._in_use = False
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()
