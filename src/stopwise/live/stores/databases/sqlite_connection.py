"""SQLite, as the stores use it."""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from stopwise.live.stores.base import StoreError
from stopwise.live.stores.connection import Connection, Row, first_line
from stopwise.live.stores.databases.sqlite_place import SqlitePlace


class SqliteConnection(Connection):
    """SQLite, with transactions begun and ended by name, in a file that is still in its place."""

    def __init__(self, path: Path, patience: float, *, sync: bool) -> None:
        self._path = path
        self._connection = sqlite3.connect(
            path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self.place = SqlitePlace(path, self._has_all_pages)
        except BaseException:
            self._connection.close()
            raise

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and fetch all of what it gives."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self._store_error(error) from error

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        try:
            self._connection.executemany(sql, rows)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self._store_error(error) from error

    def _store_error(self, error: Exception) -> StoreError:
        """What is wrong, in one line that names the file."""
        return StoreError(f"{self._path}: {first_line(error)}")

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """All or nothing; what an earlier one left open is rolled back first."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self.place.check()
            self.query("BEGIN" if reading else "BEGIN IMMEDIATE")
            yield
            self.query("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        if not reading:
            self.place.committed()

    def close(self) -> None:
        """Let go of the file."""
        try:
            self.place.check()
        except StoreError:
            # Closing would write what SQLite remembers into what is left of the file, or into
            # another program's. So it is never closed.
            if not self.place.nothing_is_there():
                leave_open(self)
                return
        self._connection.close()

    def _has_all_pages(self) -> bool:
        # Another connection: this one's cache would hide what is missing.
        with closing(sqlite3.connect(self._path)) as other:
            return other.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]


def leave_open(connection: object) -> None:
    """Never free a connection: closing it would do harm."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
