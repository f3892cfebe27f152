"""What stores in databases, and those who keep something beside them, need of a connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

Row = tuple[Any, ...]


class Connection(ABC):
    """A database connection, as the stores use it: SQL with `?` where values go."""

    @abstractmethod
    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and fetch all of what it gives."""

    @abstractmethod
    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""

    @abstractmethod
    def transaction(self, *, reading: bool = False) -> AbstractContextManager[None]:
        """All or nothing; if `reading`, as of one moment."""

    @abstractmethod
    def close(self) -> None:
        """Let go."""


def first_line(error: BaseException) -> str:
    r"""What a database says, without what it adds.

    >>> first_line(ValueError("no table\nLINE 1: ..."))
    'no table'
    """
    return str(error).strip().split("\n")[0] or type(error).__name__
