"""A SQLite file that several processes share."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from stopwise.checks import StopwiseError, fail, names_settings
from stopwise.live.stores.base import Durability, StoreError, Survives, Writing, check_survives
from stopwise.live.stores.connection import Connection
from stopwise.live.stores.databases.migrating import migrate_first_version
from stopwise.live.stores.databases.schema import SCHEMA
from stopwise.live.stores.databases.sqlite_connection import SqliteConnection, leave_open
from stopwise.live.stores.databases.store import SqlStore
from stopwise.live.stores.holding import hold, let_go
from stopwise.storage import as_path

try:
    import fcntl
except ImportError:  # not on Windows: there, one name used twice is not caught
    fcntl = None  # type: ignore[assignment]


_SMALLEST = 512  # bytes of a database


class SqliteStore(SqlStore):
    """A store for many processes on one machine.

    Rounds are written in batches, each a transaction: their increments and, if asked for, their
    rows. After a batch that met others' rounds, the learner has read theirs too.

    Args:
        path: of the file, which is made if it does not exist, readable by its owner alone. Not on a
            network drive.
        cascade: a name, where several cascades share one file.
        writer: a name, to resume as the same writer with the same future decisions after a restart;
            a name that another process is using is refused. None is a new writer each time, with
            random numbers of its own.
        survives: "kill", or "power cut", which waits for the disk in every batch.
        keep_rounds: also keep every round as a row, as a log does.
        keep_outputs: with their outputs.
        patience: seconds to wait for others' transactions.
        durability: "round": ending a round waits until it is written; "behind": it does not. See
            `stopwise.live.stores.base.Writing`, as for `flush_seconds`, `flush_rounds`, `queue`.

    >>> import tempfile
    >>> from stopwise.live import Learner
    >>> folder = tempfile.TemporaryDirectory()
    >>> one = Learner([0, 1], "fixed", store=SqliteStore(folder.name + "/rounds.db"))
    >>> two = Learner([0, 1], "fixed", store=SqliteStore(folder.name + "/rounds.db"))
    >>> with one.begin() as round: round.observe(1); round.observe(2)
    >>> two.refresh(); two.rounds
    1
    >>> one.close(); two.close(); folder.cleanup()
    """

    now = "((julianday('now') - 2440587.5) * 86400.0)"

    @names_settings
    def __init__(
        self,
        path: str | Path,
        *,
        cascade: str = "",
        writer: str | None = None,
        survives: Survives = "kill",
        keep_rounds: bool = False,
        keep_outputs: bool = False,
        patience: float = 60.0,
        durability: Durability = "round",
        flush_seconds: float = 0.1,
        flush_rounds: int = 64,
        queue: int = 10_000,
    ) -> None:
        writing = Writing(durability, flush_seconds, flush_rounds, queue)
        self.path = as_path("path", path)
        super().__init__(str(path), cascade, writer, keep_rounds, keep_outputs, writing)
        self._sync = check_survives(survives)
        self._patience = patience
        self._lock = -1
        self._file: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r}, durability={self.writing.durability!r})"

    def connect(self) -> Connection:
        """Open the file, made private if it is new."""
        try:
            _make_private(self.path)
            found = self.path.stat()
            if self._in_use and self._file not in (None, (found.st_dev, found.st_ino)):
                raise StoreError(f"{self.path}: the file was replaced while in use")
            if self._in_use and self._file is not None and found.st_size < _SMALLEST:
                raise StoreError(f"{self.path}: the file was cut short while in use")
            return SqliteConnection(self.path, self._patience, sync=self._sync)
        except sqlite3.DatabaseError as error:
            raise StopwiseError(f"{self.path}: cannot be used as a store ({error})") from None
        except OSError as error:
            raise StopwiseError(f"{self.path}: cannot be opened ({error.strerror})") from None

    def prepare(self, connection: Connection) -> None:
        """Make the tables; take over those of the first version."""
        self._refuse_programs(connection)
        try:
            migrate_first_version(connection)
            for statement in SCHEMA:
                connection.query(statement)
        except StoreError as error:
            why = error.__cause__ or error
            raise StopwiseError(f"{self.path}: cannot be used as a store ({why})") from None
        found = self.path.stat()
        self._file = (found.st_dev, found.st_ino)

    def _refuse_programs(self, connection: Connection) -> None:
        """A file from elsewhere may hold views and triggers, which would run inside our writes."""
        found = connection.query(
            "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')"
            " AND (name LIKE 'stopwise%' OR tbl_name LIKE 'stopwise%') LIMIT 1"
        )
        if found:
            kind, name = found[0]
            raise fail(f"{self.path}: {kind}", name, "tables alone, as a learner makes them")

    def claim(self, connection: Connection, writer: int) -> None:
        """Hold a lock file for as long as a named writer is in use; it goes with the process."""
        if self._name is None:
            return
        path = self.path.with_name(f"{self.path.name}.{_plain(self.cascade)}writer-{writer}.lock")
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        lock = os.open(path, flags, 0o600)
        holder = hold(lock)
        if holder is not None:
            os.close(lock)
            raise self.name_is_taken(holder)
        self._lock = lock

    def broken(self, error: Exception) -> bool:
        """A file stays open whatever a statement did."""
        return False

    def before_fork(self) -> None:
        """Close the connection: both processes make a new one when they write.

        A child would believe that it has the locks of a connection that it inherited. It has not,
        and whoever closes the file next would take away the journal that the child writes to.
        """
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):
                connection.close()

    def forked(self) -> None:
        """Leave the parent's connection and lock as they are; a named writer becomes another."""
        if self._connection is not None:
            # It was in use for too long to be closed before the fork. Closing it here would disturb
            # the parent; so it is never freed.
            leave_open(self._connection)
        if self._lock >= 0:
            let_go(self._lock)
            os.close(self._lock)  # the parent's copy keeps the lock
            self._lock = -1
        super().forked()

    def close(self) -> None:
        """Let go of the file."""
        try:
            super().close()
        finally:
            if self._lock >= 0:
                lock, self._lock = self._lock, -1
                let_go(lock)
                os.close(lock)

    def __del__(self) -> None:
        # A learner that is dropped without `close` must not keep its name from the next one.
        with suppress(Exception):
            self.close()


def _make_private(path: Path) -> None:
    """Make the file if there is none; refuse another program's that SQLite would take as empty.

    A file that may be a database is not opened here: closing it would take away the locks that
    other connections of this process have on it.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        return
    if not path.exists():  # a link to a file that is still to be made
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    elif 0 < path.stat().st_size < _SMALLEST:
        raise fail(f"{path}", path.read_bytes()[:40], "a SQLite file; it is left as it is")


def _plain(name: str) -> str:
    """A cascade's name as part of the name of a file."""
    return f"{name.encode().hex()[:64]}." if name else ""
