"""What the two stores in databases share: counters in rows, increments in transactions.

Every change of a cascade takes a number from the one row of the cascade. So changes of one cascade
follow one another, also on PostgreSQL, and "all after number n" is what a reader has not seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stopwise.checks import StopwiseError, fail
from stopwise.evidence import Evidence
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.record import RoundRecord
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Attached, Changes, Companion, StoreError, Writing
from stopwise.live.stores.connection import Connection
from stopwise.live.stores.databases.budget import LEASE_SECONDS, SharedBudget
from stopwise.live.stores.databases.counters import SqlCounters
from stopwise.live.stores.databases.rounds import add_rounds, read_hours, read_rounds
from stopwise.live.stores.databases.transitions import SqlTransitions
from stopwise.live.stores.databases.writers import SqlWriter
from stopwise.live.watching.drift import DriftAlarm, DriftWatch
from stopwise.situations.transitions import Transitions


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
        lease_seconds: how long a part of a shared budget is held without being renewed; see
            `stopwise.live.stores.databases.budget`.
        now: the seconds of the database's clock, in its SQL.
    """

    companion: Companion | None = None
    lease_seconds: float = LEASE_SECONDS
    now: str

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
        self._keep_rounds = keep_rounds or keep_outputs
        self._keep_outputs = keep_outputs
        self._connection: Connection | None = None
        self._in_use = False
        self._writer = SqlWriter(where, cascade, writer)
        self._seen = 0  # the last change that this learner knows of
        self._own = 0
        self._others_wrote = False
        self._counters: SegmentCounters | None = None
        self._rows: SqlCounters | None = None
        self._budget: SharedBudget | None = None
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
        rows = self._rows = SqlCounters(self.where, self.cascade, counters.stage_count)
        self._items = None if items is None else self._transitions_for(items)
        try:
            connection = self._connection = self.connect()
            with connection.transaction():
                self.prepare(connection)
                writer = self._writer = SqlWriter(self.where, self.cascade, self._name)
                writer.check_cascade(connection, settings, seed)
                kept = writer.take(connection, self.claim)
                self._budget = SharedBudget(
                    self.cascade, writer.number, self.now, self.lease_seconds
                )
                self._budget.begin(connection)
                if watch is not None:
                    rows.check_drift(connection, watch)
                if self._items is not None:
                    self._items.attach(connection)
            self._load(connection, counters)
        except BaseException:
            self.close()
            raise
        return Attached(self._writer.number, kept)

    def _transitions_for(self, items: ItemDecider) -> SqlTransitions | None:
        if not items.policy.learns:
            return None
        return SqlTransitions(
            self.where,
            self.cascade,
            len(items.stages),
            items.policy.first_rounds,
            items.take,
            items.given,
            whole=items.whole, promised=items.guard is not None,
        )  # fmt: skip

    def _load(self, connection: Connection, counters: SegmentCounters) -> None:
        with connection.transaction(reading=True):
            assert self._rows is not None
            segments = self._rows.read(connection)
            begun = self._writer.begun(connection)
            self._seen, others = self._writer.last_change(connection)
            if self._items is not None:
                self._items.refresh(connection)
        for segment, values in segments.items():
            counters.set_tally(segment, values)
        # Rounds begun here and still open have numbers above those that the store knows.
        counters.begun = max(counters.begun, begun)
        counters.others = others

    # ---- writing -----------------------------------------------------------------------------

    def append(self, first: int, records: Sequence[RoundRecord]) -> Sequence[DriftAlarm]:
        """Count rounds in one transaction; those below the writer's watermark are there already."""
        connection, rows = self._connected(), self._rows
        assert rows is not None
        alarms: list[DriftAlarm] = []
        try:
            with connection.transaction():
                watermark = self._writer.watermark(connection)
                fresh = records[max(watermark + 1 - first, 0) :]
                if not fresh:
                    return ()
                counted = fresh
                if self.companion is not None:
                    counted = self.companion.admit(connection, fresh)
                change = self._writer.next_change(connection, len(counted))
                by_segment: dict[str, list[RoundRecord]] = {r.segment: [] for r in fresh}
                for record in counted:
                    by_segment[record.segment].append(record)
                deltas = {segment: self._empty() for segment in by_segment}
                for name, part in by_segment.items():
                    delta = deltas[name]
                    alarms += rows.add_rounds(connection, name, part, change, delta, self._watch)
                rows.add(connection, deltas)
                if self._keep_rounds:
                    outputs = self._keep_outputs
                    add_rounds(connection, self.cascade, counted, keep_outputs=outputs)
                if self._items is not None:
                    shown = [r.item for r in counted if r.item is not None]
                    self._items.append(connection, shown, change)
                if self.companion is not None and alarms:
                    self.companion.note(connection, alarms)
                connection.query(
                    "UPDATE stopwise_writers SET watermark = ?, rounds = rounds + ?,"
                    " begun = CASE WHEN begun > ? THEN begun ELSE ? END,"
                    " held = CASE WHEN held > ? THEN held - ? ELSE 0 END"
                    " WHERE cascade = ? AND writer = ?",
                    (
                        watermark + len(fresh), len(counted), *[max(r.sequence for r in fresh)] * 2,
                        *[sum(r.cost for r in fresh)] * 2, self.cascade, self._writer.number,
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

    def _empty(self) -> Tally:
        assert self._counters is not None
        return self._counters.empty_tally()

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere to the counters."""
        delta = self._empty()
        delta.values = delta.with_evidence(evidence)
        connection, rows = self._connected(), self._rows
        assert rows is not None
        try:
            with connection.transaction():
                change = self._writer.next_change(connection, 0)
                rows.touch(connection, segment, change)
                rows.add(connection, {segment: delta})
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
                items.merge(connection, counts, self._writer.next_change(connection, 0))
            items.refresh(connection)
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

    # ---- a shared budget ---------------------------------------------------------------------

    def grant(self, least: float, most: float, budget: float) -> float | None:
        """Take a part of the budget: between least and most, or 0 where less is left."""
        connection, shared = self._connected(), self._budget
        assert shared is not None
        try:
            with connection.transaction():
                self._writer.next_change(connection, 0)
                part = shared.grant(connection, least, most, budget)
        except Exception as error:
            self._leave(error)
            raise
        finally:  # without a connection it is not known whether it was committed
            shared.doubt = shared.doubt if self._connection is None else None
        self._others_wrote = True  # the number of this change was ours, but others' may be below it
        return part

    def give_back(self, part: float) -> None:
        """Return what was granted and not spent."""
        connection, shared = self._connected(), self._budget
        assert shared is not None
        with connection.transaction():
            shared.give_back(connection, part)

    def grant_expired(self) -> bool:
        """Whether what was granted may be another's by now."""
        return self._budget is not None and self._budget.expired

    def keep_alive(self) -> None:
        """Renew the lease of what is held of a budget, if it is time."""
        shared = self._budget
        if shared is None or not shared.due or not self._in_use:
            return
        connection = self._connected()
        try:
            with connection.transaction():
                shared.renew(connection)
        except Exception as error:
            self._leave(error)
            raise

    # ---- reading -----------------------------------------------------------------------------

    def changes(self) -> Changes | None:
        """The counters of the segments that anyone has changed since the last time."""
        if self._items is not None and self._items_moved:
            self._items.refresh(self._connected())
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
                assert self._rows is not None
                segments = self._rows.read_changed(connection, seen)
                self._seen, others = self._writer.last_change(connection)
                if self._items is not None:
                    self._items.refresh(connection)
        except Exception as error:
            self._seen = seen
            self._leave(error)
            raise
        self._others_wrote = False
        return Changes(segments, others)

    def read_rounds(self) -> Iterator[RoundRecord]:
        """The rounds that were kept, of all writers, over a connection of its own."""
        connection = self.connect()
        try:
            yield from read_rounds(connection.query, self.cascade, self.where)
        finally:
            connection.close()

    def read_hours(self, segment: str | None = None) -> list[Mapping[str, Any]]:
        """The counters of every hour (UTC), as records of segment, hour, counter and value."""
        connection = self.connect()
        try:
            return read_hours(connection.query, self.cascade, self.where, segment)
        finally:
            connection.close()

    # ---- connection --------------------------------------------------------------------------

    def _connected(self) -> Connection:
        if not self._in_use:
            raise StoreError(f"{self.where}: this store is closed")
        if self._connection is None:
            connection = self.connect()
            self.reclaim(connection)
            if self._budget is not None:
                self._budget.settle(connection)
            self._connection = connection
        return self._connection

    def reclaim(self, connection: Connection) -> None:  # noqa: B027  # most need nothing
        """After a connection was lost: take the writer's name again, if that needs it."""

    def name_is_taken(self, holder: str = "another process") -> StopwiseError:
        """What is said where another learner uses this writer's name."""
        return StopwiseError(
            f"{self.where}: {holder} is using the writer's name {self._name!r}; give each"
            " its own, or none"
        )

    def before_fork(self) -> None:  # noqa: B027  # most need nothing
        """Close what neither process may use after a fork; the next write opens it again."""

    def _leave(self, error: Exception) -> None:
        """Drop a connection that cannot be used any more; the next try makes a new one."""
        if self._connection is not None and self.broken(error):
            connection, self._connection = self._connection, None
            with suppress(Exception):  # it is broken anyway
                connection.close()

    def forked(self) -> None:
        """Leave the parent's connection as it is; a named writer becomes another."""
        self._connection = None
        self._in_use = False
        self._name = None
        self._budget = None

    def close(self) -> None:
        """Let go of the connection."""
        self._in_use = False
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()
