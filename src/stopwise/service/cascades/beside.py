"""Rows of rounds, written in the very transactions that count them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopwise.live import DriftAlarm
from stopwise.live.record import RoundRecord
from stopwise.live.stores.connection import Connection
from stopwise.service.database.alarms import write_alarms
from stopwise.service.database.connection import SCHEMA
from stopwise.service.database.writing import Entry, write_entries


class RowsBeside:
    """The companion of a cascade's evidence: see `stopwise.live.stores.base.Companion`.

    Args:
        cascade, epoch: whose evidence it is.
        shared: whether the store is PostgreSQL, where the service's tables have a schema.
        keep_seconds: how long texts are kept.
    """

    def __init__(self, cascade: str, epoch: str, *, shared: bool, keep_seconds: float) -> None:
        self._cascade, self._epoch = cascade, epoch
        self._shared = shared
        self._keep_seconds = keep_seconds
        self._expected: dict[int, Entry] = {}

    def expect(self, sequence: int, entry: Entry) -> None:
        """Say what belongs to a round, before the learner ends it."""
        self._expected[sequence] = entry

    def forget(self) -> None:
        """Let go of what is written: all that was expected."""
        self._expected.clear()

    def admit(self, connection: Connection, records: Sequence[RoundRecord]) -> list[RoundRecord]:
        """Write the rows; those of rounds that were ended before are not counted again."""
        entries = [self._expected[record.sequence] for record in records]
        written = write_entries(
            self._work(connection), entries, keep_seconds=self._keep_seconds, shared=self._shared
        )
        return [record for record, good in zip(records, written, strict=True) if good]

    def note(self, connection: Connection, alarms: Sequence[DriftAlarm]) -> None:
        """Keep alarms, for the pages of all replicas."""
        write_alarms(self._work(connection), self._cascade, self._epoch, alarms)

    def _work(self, connection: Connection) -> _Statements:
        if self._shared:
            connection.query(
                "SELECT set_config('search_path', ? || current_setting('search_path'), true)",
                (f"{SCHEMA}, ",),
            )
        return _Statements(connection)


class _Statements:
    """A connection of a live store, as the tables of the service are written."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._connection.many(statement, rows)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.query(query, values)
