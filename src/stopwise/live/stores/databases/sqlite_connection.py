"""SQLite, as the stores use it."""

from __future__ import annotations

import ctypes
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from stopwise.live.stores.base import StoreError
from stopwise.live.stores.connection import Row
from stopwise.live.stores.databases.database_connection import DatabaseConnection
from stopwise.live.stores.databases.sqlite_place import SqlitePlace


class SqliteConnection(DatabaseConnection):
    """SQLite, with transactions begun and ended by name, in a file that is still in its place."""

    def __init__(self, path: Path, patience: float, *, sync: bool) -> None:
        super().__init__(str(path), (sqlite3.Error, OverflowError, UnicodeError))
        self._path = path
        self._connection = sqlite3.connect(
            path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute("PRAGMA trusted_schema = OFF")
            use_journal(self._connection, patience)
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self.place = SqlitePlace(path, self._has_all_pages)
        except BaseException:
            self._connection.close()
            raise

    def _query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def _many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

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


def use_journal(connection: sqlite3.Connection, patience: float) -> None:
    """Have writers and readers stand in nobody's way (write-ahead log).

    Of two that ask for it in a new file at the same moment SQLite refuses one without waiting,
    whatever its timeout; asked again, it finds the journal there.

    >>> connection = sqlite3.connect(":memory:")
    >>> use_journal(connection, 1.0)
    >>> connection.close()
    """
    end = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.001)
        else:
            return


def leave_open(connection: object) -> None:
    """Never free a connection: closing it would do harm."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
