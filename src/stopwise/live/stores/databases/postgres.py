"""A PostgreSQL database that processes on many machines share."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail, names_settings
from stopwise.live.stores.base import Durability, StoreError, Survives, Writing, check_survives
from stopwise.live.stores.connection import Connection, Row, first_line
from stopwise.live.stores.databases.database_connection import DatabaseConnection
from stopwise.live.stores.databases.schema import SCHEMA
from stopwise.live.stores.databases.store import SqlStore

if TYPE_CHECKING:
    import psycopg

_SCHEMA_LOCK = 0x53544F50  # one process at a time makes the tables


class PostgresStore(SqlStore):
    """A store for processes on many machines; needs `pip install 'stopwise[postgres]'`.

    Rounds are written in batches, each a transaction, with the writer's watermark in it: a batch
    that is tried again because the answer to COMMIT was lost counts exactly once. A connection that
    was lost is made again; meanwhile rounds wait in the queue.

    Args:
        url: as `postgresql://user@host/database`; what is not in it comes from libpq's variables.
        cascade: a name, where several cascades share one database.
        writer: a name, to resume as the same writer with the same future decisions after a restart;
            a name that another process is using is refused.
        survives: "kill": a crash of the *server's machine* can take back the last fraction of a
            second (`synchronous_commit = off`); "power cut" waits for its disk.
        keep_rounds: also keep every round as a row, as a log does.
        keep_outputs: with their outputs.
        patience: seconds to wait for the server and for others' transactions.
        durability: "round": ending a round waits until it is written; "behind": it does not. See
            `stopwise.live.stores.base.Writing`, as for `flush_seconds`, `flush_rounds`, `queue`.

    A server is needed to use it; [keep what was learned](../how-to/keeping.md) shows how.

    >>> PostgresStore("postgresql://user@host/database", durability="never")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: durability: got 'never', but need ...
    """

    now = "EXTRACT(EPOCH FROM clock_timestamp())"

    @names_settings
    def __init__(
        self,
        url: str,
        *,
        cascade: str = "",
        writer: str | None = None,
        survives: Survives = "power cut",
        keep_rounds: bool = False,
        keep_outputs: bool = False,
        patience: float = 30.0,
        durability: Durability = "round",
        flush_seconds: float = 0.1,
        flush_rounds: int = 64,
        queue: int = 10_000,
    ) -> None:
        _psycopg()
        if not isinstance(url, str):
            raise fail("url", url, "text, such as 'postgresql://user@host/database'")
        writing = Writing(durability, flush_seconds, flush_rounds, queue)
        where = _without_password(url)
        super().__init__(where, cascade, writer, keep_rounds, keep_outputs, writing)
        self._url = url
        self._sync = check_survives(survives)
        self._patience = patience

    def __repr__(self) -> str:
        return f"PostgresStore({self.where!r}, durability={self.writing.durability!r})"

    def connect(self) -> Connection:
        """A new connection."""
        psycopg = _psycopg()
        try:
            connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=max(2, round(self._patience)),
                application_name="stopwise",
                options=f"-c lock_timeout={round(1000 * self._patience)}"
                f" -c synchronous_commit={'on' if self._sync else 'off'}",
                # A server that vanished is noticed within the patience, not after hours.
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                tcp_user_timeout=round(1000 * self._patience),
            )
        except psycopg.Error as error:
            raise StoreError(f"{self.where}: cannot connect ({first_line(error)})") from None
        return PostgresConnection(connection, self.where)

    def prepare(self, connection: Connection) -> None:
        """Make the tables, one process at a time."""
        found = connection.query("SELECT to_regclass('stopwise_leases')")
        if found[0][0] is None:
            connection.query("SELECT pg_advisory_xact_lock(?)", (_SCHEMA_LOCK,))
            for statement in SCHEMA:
                connection.query(statement)

    def claim(self, connection: Connection, writer: int) -> None:
        """Hold an advisory lock as long as the connection lives."""
        if self._name is None:
            return
        # The server lets go of a lock a moment after its connection was closed, so that a restart
        # may come too soon: ask for a while before it is called taken.
        for wait in (0.05, 0.1, 0.2, 0.4, 0.8, None):
            got = connection.query("SELECT pg_try_advisory_lock(?, ?)", self._lock_key(writer))
            if got[0][0]:
                return
            if wait is not None:
                time.sleep(wait)
        raise self.name_is_taken()

    def reclaim(self, connection: Connection) -> None:
        """After a lost connection the server may hold the old one's lock for a while.

        That is no matter: the token in the writer's row says whose it is.
        """
        if self._name is not None:
            connection.query(
                "SELECT pg_try_advisory_lock(?, ?)", self._lock_key(self._writer.number)
            )

    def _lock_key(self, writer: int) -> tuple[int, int]:
        return zlib.crc32(b"stopwise " + self.cascade.encode()) - 2**31, writer

    def broken(self, error: Exception) -> bool:
        """Whether the connection is lost."""
        connection = self._connection
        return isinstance(connection, PostgresConnection) and connection.lost(error)


class PostgresConnection(DatabaseConnection):
    """psycopg, with `?` where values go."""

    def __init__(self, connection: psycopg.Connection[Any], where: str) -> None:
        super().__init__(where, (_psycopg().Error,))
        self._connection = connection

    def _query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        cursor = self._connection.execute(_with_places(sql), values)
        return cursor.fetchall() if cursor.description is not None else []

    def _many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:  # which does not wait for each row
            cursor.executemany(_with_places(sql), rows)

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """All or nothing; if `reading`, as of one moment."""
        try:
            with self._connection.transaction():
                if reading:
                    self.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        except self.failures as error:
            raise self.failed(error) from error

    def lost(self, error: Exception) -> bool:
        """Whether the connection cannot be used any more."""
        return self._connection.broken or self._connection.closed

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _with_places(sql: str) -> Any:
    return sql.replace("?", "%s")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise StopwiseError(
            "PostgresStore needs psycopg: pip install 'stopwise[postgres]'"
        ) from None
    return psycopg


def _without_password(url: str) -> str:
    """How a database is named in messages: never with its password."""
    conninfo = _psycopg().conninfo
    try:
        parts = conninfo.conninfo_to_dict(url)
    except _psycopg().Error:
        raise StopwiseError("url: cannot be read; need postgresql://user@host/database") from None
    parts.pop("password", None)
    return f"postgresql {conninfo.make_conninfo(**parts)}".strip()
