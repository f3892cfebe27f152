"""Whether a SQLite file is still the one that was opened: rounds must not go into nowhere.

SQLite itself does not look. After `rm`, `mv` or a rotation it writes on into a file that no longer
has a name; after `truncate` it serves what is gone from its cache, and commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from stopwise.live.stores.base import StoreError

_SMALLEST = 512  # bytes of a database
_WAL_STARTS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

Identity = tuple[int, int]


class SqlitePlace:
    """A database file and its write-ahead log, as they were when a connection last used them.

    Args:
        path: of the file, which exists.
        whole: reads every page of it; raises or gives False where one is missing.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     place = SqlitePlace(Path(file.name), lambda: True)
    ...     place.check()
    Traceback (most recent call last):
    ...
    stopwise.live.stores.base.StoreError: ...: the file was cut to 0 bytes while in use; ...
    """

    def __init__(self, path: Path, whole: Callable[[], bool]) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._index = path.with_name(path.name + "-shm")
        self._whole = whole
        found = path.stat()
        self.identity: Identity = (found.st_dev, found.st_ino)
        self._size = 0
        self._log_identity: Identity | None = None
        self._index_identity: Identity | None = None
        self._lost: StoreError | None = None

    def check(self) -> None:
        """Raise if what is committed now would not be kept, or what was committed has gone."""
        if self._lost is not None:
            raise self._lost
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self.identity:
            raise StoreError(
                f"{self._path}: the file was moved or deleted while in use; rounds stay queued"
                " until it is put back"
            )
        if found.st_size < _SMALLEST or (found.st_size < self._size and not self._is_whole()):
            # A file that is put back later has lost what was committed meanwhile: never go on.
            raise self._lose(f"the file was cut to {found.st_size} bytes while in use")
        self._size = found.st_size
        self._check_log()

    def committed(self) -> None:
        """Look again after a COMMIT; from the first one on, the log is watched too."""
        if self._log_identity is None:
            self._log_identity = _identity(self._log)
            self._index_identity = _identity(self._index)
        self.check()

    def _check_log(self) -> None:
        """Most recent rounds are in the log alone."""
        if self._log_identity is None:
            return
        try:
            file = os.open(self._log, os.O_RDONLY)
        except FileNotFoundError:
            raise self._lose(f"{self._log.name} was moved or deleted while in use") from None
        try:
            found = os.fstat(file)
            start = os.pread(file, 4, 0) if hasattr(os, "pread") else os.read(file, 4)
        finally:
            os.close(file)  # SQLite keeps no locks on this one
        if self._index_identity != _identity(self._index):
            # Its locks keep processes apart. It must not be opened here: closing it drops them.
            raise self._lose(f"{self._index.name} was moved or deleted while in use")
        if (found.st_dev, found.st_ino) != self._log_identity:
            raise self._lose(f"{self._log.name} was replaced while in use")
        if found.st_size and start not in _WAL_STARTS:
            raise self._lose(f"{self._log.name} was overwritten while in use")

    def nothing_is_there(self) -> bool:
        """Whether all of its files are gone, so that closing can do no harm."""
        return not any(map(_identity, (self._path, self._log, self._index)))

    def _is_whole(self) -> bool:
        """Whether a file that has become shorter has all its pages, as after a VACUUM."""
        try:
            return self._whole()
        except Exception:  # noqa: BLE001  # whatever SQLite finds wrong with it
            return False

    def _lose(self, why: str) -> StoreError:
        self._lost = StoreError(
            f"{self._path}: {why}; rounds stay queued and are not kept. Put the file back from a"
            " copy and start again"
        )
        return self._lost


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
