"""A SQLite file that several processes share: counters in rows, increments in transactions."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stopwise.checks import StopwiseError, fail
from stopwise.evidence import Evidence
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.record import RoundRecord
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Survives, check_survives
from stopwise.live.watching.drift import DriftWatch

VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counters (
    segment TEXT NOT NULL, counter TEXT NOT NULL, value NUMERIC NOT NULL,
    PRIMARY KEY (segment, counter)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS writers (
    writer INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    begun INTEGER NOT NULL DEFAULT 0, rounds INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS rounds (
    writer INTEGER NOT NULL, sequence INTEGER NOT NULL, round TEXT NOT NULL,
    PRIMARY KEY (writer, sequence)
) WITHOUT ROWID;
"""
_ADD = """
INSERT INTO counters (segment, counter, value) VALUES (?, ?, ?)
ON CONFLICT (segment, counter) DO UPDATE SET value = value + excluded.value
"""


class SqliteStore:
    """A store for many processes on one machine.

    A round is one transaction: its increments and, if asked for, its row. After a round whose
    transaction met others' rounds, the learner has read theirs too.

    Args:
        path: of the file, which is made if it does not exist. Not on a network drive.
        writer: a name, to resume as the same writer with the same future decisions after a restart;
            two processes must not use one name at once. None is a new writer each time, with random
            numbers of its own.
        survives: "kill", or "power cut", which waits for the disk in every round.
        keep_rounds: also keep every round as a row, as a log does.
        keep_outputs: with their outputs.
        patience: seconds to wait for others' transactions.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        writer: str | None = None,
        survives: Survives = "kill",
        keep_rounds: bool = False,
        keep_outputs: bool = False,
        patience: float = 60.0,
    ) -> None:
        self.path = Path(path)
        self._name = writer
        self._sync = check_survives(survives)
        self._keep_rounds = keep_rounds or keep_outputs
        self._keep_outputs = keep_outputs
        self._patience = patience
        self._connection: sqlite3.Connection | None = None
        self._writer = 0
        self._changes = -1
        self._discount = 1.0
        self._state: SegmentCounters | None = None

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        state: SegmentCounters,
        watch: DriftWatch | None,
    ) -> int:
        """Open, refuse other settings, take a writer's number, read all counters."""
        if self._connection is not None:
            raise StopwiseError(f"{self.path}: this store is in use by another learner")
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            sync = "FULL" if self._sync else "NORMAL"
            self._connection.execute(f"PRAGMA synchronous = {sync}")
            with self._transaction() as connection:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                self._check_about(connection, settings, seed)
                self._take_writer(connection)
        except sqlite3.DatabaseError as error:
            self.close()
            raise StopwiseError(f"{self.path}: cannot be used as a store ({error})") from None
        except BaseException:
            self.close()
            raise
        self._discount = settings.discount
        self._state = state
        self.load_into(state)
        return self._writer

    def _check_about(
        self, connection: sqlite3.Connection, settings: LearnerSettings, seed: int
    ) -> None:
        about = dict(connection.execute("SELECT name, value FROM about"))
        if not about:
            rows = {"version": VERSION, "seed": seed, "settings": settings.to_form()}
            connection.executemany(
                "INSERT INTO about VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in rows.items()],
            )
            return
        if about.get("version") != str(VERSION):
            raise fail(
                f"{self.path}: version", about.get("version"),
                f"version {VERSION}, the only one that this release reads",
            )  # fmt: skip
        exactly = self._name is not None and about.get("seed") == str(seed)
        settings.check_same(json.loads(about["settings"]), str(self.path), exactly=exactly)

    def _take_writer(self, connection: sqlite3.Connection) -> None:
        name = self._name or f"unnamed {uuid.uuid4()}"
        # Writers count from 1: 0 is a learner that shares with nobody.
        connection.execute("INSERT OR IGNORE INTO writers (name) VALUES (?)", (name,))
        query = "SELECT writer FROM writers WHERE name = ?"
        self._writer = int(connection.execute(query, (name,)).fetchone()[0])

    def append(self, records: Sequence[RoundRecord]) -> bool:
        """Count the rounds in one transaction; say whether others have written since."""
        assert self._state is not None
        with self._transaction() as connection:
            # Inside the transaction nobody else writes: this tells of all before it.
            changes = connection.execute("PRAGMA data_version").fetchone()[0]
            if self._discount == 1.0:
                self._add_together(connection, records)
            else:
                self._add_one_by_one(connection, records)
            connection.execute(
                "UPDATE writers SET begun = max(begun, ?), rounds = rounds + ? WHERE writer = ?",
                (max(record.sequence for record in records), len(records), self._writer),
            )
            if self._keep_rounds:
                connection.executemany(
                    "INSERT INTO rounds VALUES (?, ?, ?)",
                    [(r.writer, r.sequence, self._text(r)) for r in records],
                )
        met_others = bool(changes != self._changes)
        self._changes = changes
        return met_others

    def _add_together(self, connection: sqlite3.Connection, records: Sequence[RoundRecord]) -> None:
        deltas: dict[str, Tally] = {}
        for record in records:
            if record.segment not in deltas:
                deltas[record.segment] = self._empty()
            deltas[record.segment].apply(record)
        for segment, delta in deltas.items():
            self._add(connection, segment, delta)

    def _add_one_by_one(
        self, connection: sqlite3.Connection, records: Sequence[RoundRecord]
    ) -> None:
        """Older rounds lose weight with every round, so the order counts."""
        for record in records:
            connection.execute(
                "UPDATE counters SET value = value * ? WHERE segment = ? AND counter GLOB ?",
                (self._discount, record.segment, "recent_*"),
            )
            delta = self._empty()
            delta.apply(record)
            self._add(connection, record.segment, delta)

    def _empty(self) -> Tally:
        assert self._state is not None
        return Tally(self._state.stage_count, self._discount, self._state.recorder)

    @staticmethod
    def _add(connection: sqlite3.Connection, segment: str, delta: Tally) -> None:
        rows = [(segment, name, value) for name, value in delta.to_counters().items()]
        connection.executemany(_ADD, rows)

    def _text(self, record: RoundRecord) -> str:
        form = record.to_form()
        if not self._keep_outputs:
            form.pop("outputs", None)
        return json.dumps(form, default=str)

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere to the counters."""
        delta = self._empty()
        delta.values = delta.with_evidence(evidence)
        with self._transaction() as connection:
            self._add(connection, segment, delta)

    def load_into(self, state: SegmentCounters) -> None:
        """Read all counters, as of one moment."""
        with self._transaction(reading=True) as connection:
            rows = connection.execute("SELECT segment, counter, value FROM counters").fetchall()
            query = "SELECT begun, rounds FROM writers WHERE writer = ?"
            begun, own = connection.execute(query, (self._writer,)).fetchone()
            self._changes = connection.execute("PRAGMA data_version").fetchone()[0]
        segments: dict[str, dict[str, int | float]] = {}
        for segment, counter, value in rows:
            segments.setdefault(segment, {})[counter] = value
        for segment, counters in segments.items():
            state.set_tally(segment, counters)
        # Rounds begun here and still open have numbers above those that the file knows.
        state.begun = max(state.begun, begun)
        state.others = state.rounds - own

    def read_rounds(self) -> Iterator[RoundRecord]:
        """The rounds that were kept, of all writers."""
        assert self._connection is not None
        query = "SELECT round FROM rounds ORDER BY writer, sequence"
        for (text,) in self._connection.execute(query):
            yield RoundRecord.from_form(json.loads(text))

    @contextmanager
    def _transaction(self, *, reading: bool = False) -> Iterator[sqlite3.Connection]:
        if self._connection is None:
            raise StopwiseError(f"{self.path}: this store is closed")
        self._connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
