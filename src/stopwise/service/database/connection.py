"""One interface to SQLite and PostgreSQL: transactions, statements, rows. Calls block."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from stopwise.checks import StopwiseError
from stopwise.live.stores.databases.sqlite_connection import use_journal
from stopwise.service.database.schema import MIGRATIONS

DatabaseRow = tuple[Any, ...]
SCHEMA = "stopwise_service"
"""The schema of a PostgreSQL database that holds the service's tables."""


class StoreUnavailableError(StopwiseError):
    """The database cannot be reached now; what was asked may be asked again later."""


class Transaction(Protocol):
    """Statements that take effect together. Placeholders are written `?`."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute; the number of rows it changed."""

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute once for each row."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        """All rows of a query."""


class Database(Protocol):
    """Where the service keeps things. Safe to use from many threads."""

    shared: bool
    """Whether other machines may use it too."""

    def transaction(self) -> Any:
        """A context manager that gives a `Transaction`."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        """All rows of a query, in a transaction of its own."""

    def close(self) -> None:
        """Let go of it."""


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(statement, tuple(values)).rowcount

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        return self._connection.execute(query, tuple(values)).fetchall()


class SqliteDatabase:
    """One file, one connection, one lock.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = SqliteDatabase(Path(folder) / "x.db")
    ...     print(database.rows("SELECT count(*) FROM keys"))
    ...     database.close()
    [(0,)]
    """

    shared = False

    def __init__(self, path: Path, *, patience: float = 30.0) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            # Made private before SQLite opens it: it will hold what people asked.
            # One that exists is not opened here: closing it would take away the locks that other
            # connections of this process have on it.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            self._connection = sqlite3.connect(
                path, timeout=patience, isolation_level=None, check_same_thread=False
            )
            use_journal(self._connection, patience)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            with self.transaction() as work:
                work.run("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)")
                _migrate(work)
        except (OSError, sqlite3.DatabaseError) as error:
            with suppress(AttributeError):  # where it could not even be opened
                self._connection.close()
            raise StopwiseError(f"{path}: cannot be used as a store ({error})") from None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Statements that take effect together."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield _SqliteTransaction(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        """All rows of a query."""
        with self._lock:
            return self._connection.execute(query, tuple(values)).fetchall()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()


class _PostgresTransaction:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        self._cursor.execute(_percent(statement), tuple(values))
        return int(self._cursor.rowcount)

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._cursor.executemany(_percent(statement), rows)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        self._cursor.execute(_percent(query), tuple(values))
        return list(self._cursor.fetchall())


class PostgresDatabase:
    """A PostgreSQL database that several replicas share, in a schema of its own.

    Args:
        url: as psycopg takes it.
        schema: the schema that holds the service's tables.
    """

    shared = True

    def __init__(self, url: str, *, schema: str = SCHEMA) -> None:
        try:
            import psycopg_pool
        except ImportError:
            raise StopwiseError(
                "store: PostgreSQL needs psycopg; pip install 'stopwise[service]'"
            ) from None
        self._pool = psycopg_pool.ConnectionPool(
            url,
            min_size=1,
            max_size=4,
            open=False,
            timeout=5.0,
            reconnect_timeout=30.0,
            kwargs={"options": f"-c search_path={schema}"},
            check=psycopg_pool.ConnectionPool.check_connection,
        )
        try:
            self._pool.open(wait=True, timeout=10.0)
        except psycopg_pool.PoolTimeout:
            self._pool.close()
            raise StopwiseError("store: the PostgreSQL server cannot be reached") from None
        with self.transaction() as work:
            # Replicas start together: one of them migrates, the others wait for it.
            work.run("SELECT pg_advisory_xact_lock(7302194415)")
            work.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            work.run("CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY)")
            _migrate(work)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Statements that take effect together."""
        import psycopg
        import psycopg_pool

        try:
            with self._pool.connection() as connection, connection.cursor() as cursor:
                yield _PostgresTransaction(cursor)
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolTimeout):
            # Not with the server's words: they may hold what was to be written.
            raise StoreUnavailableError("the store cannot be reached now") from None

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        """All rows of a query."""
        with self.transaction() as work:
            return work.rows(query, values)

    def close(self) -> None:
        """Let go of all connections."""
        self._pool.close()


def open_database(store: str, folder: Path = Path()) -> SqliteDatabase | PostgresDatabase:
    """The database that a `store` setting names."""
    if store.startswith("sqlite:///"):
        return SqliteDatabase(sqlite_path(store, folder))
    return PostgresDatabase(store)


def sqlite_path(store: str, folder: Path = Path()) -> Path:
    """The file of a `sqlite:///` setting; a relative one lies beside the configuration.

    >>> sqlite_path("sqlite:///a.db", Path("conf")).as_posix()
    'conf/a.db'
    """
    return folder / store.removeprefix("sqlite:///")


def _percent(statement: str) -> str:
    return statement.replace("?", "%s")


def _migrate(work: Transaction) -> None:
    done = {number for (number,) in work.rows("SELECT number FROM migrations")}
    newest = max(done, default=0)
    if newest > len(MIGRATIONS):
        raise StopwiseError(
            f"store: it was written by a newer release (migration {newest}; this one knows"
            f" {len(MIGRATIONS)})"
        )
    for number, text in enumerate(MIGRATIONS, start=1):
        if number not in done:
            for statement in text.split(";"):
                if statement.strip():
                    work.run(statement)
            work.run("INSERT INTO migrations (number) VALUES (?)", (number,))
