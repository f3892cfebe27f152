"""What the connections of all databases share: statements, and errors that name the database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from stopwise.live.stores.base import StoreError
from stopwise.live.stores.connection import Connection, Row, first_line


class DatabaseConnection(Connection):
    """A connection whose failures are a `StoreError` of one line.

    Args:
        where: how the database is named in messages.
        failures: what its library raises.
    """

    def __init__(self, where: str, failures: tuple[type[Exception], ...]) -> None:
        self.where = where
        self.failures = failures

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and fetch all of what it gives."""
        try:
            return self._query(sql, values)
        except self.failures as error:
            raise self.failed(error) from error

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        if not rows:
            return
        try:
            self._many(sql, rows)
        except self.failures as error:
            raise self.failed(error) from error

    def failed(self, error: Exception) -> StoreError:
        """What is wrong, in one line that names the database."""
        return StoreError(f"{self.where}: {first_line(error)}")

    @abstractmethod
    def _query(self, sql: str, values: Sequence[Any]) -> list[Row]: ...

    @abstractmethod
    def _many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None: ...
