"""A query and the database to run it in.

sqlite:///folder/file.db      needs nothing
duckdb:///folder/file.duckdb  needs duckdb; duckdb:// alone reads files named in the query
postgresql://user@host/name   needs psycopg
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail
from stopwise.logs.reading.databases import numbers
from stopwise.logs.reading.files import need_polars
from stopwise.logs.reading.log import CONFIDENCE_SUFFIX, COST_SUFFIX

if TYPE_CHECKING:
    import polars as pl

KINDS = ("sqlite", "duckdb", "postgresql")
_RENAMED = re.compile(r"(.+)[:_]\d+")
"""What SQLite and DuckDB make of a name that stands twice in a query inside a query."""


@dataclass(frozen=True)
class Query:
    """A SELECT and the database to run it in.

    >>> Query("sqlite:///log.db", "select a, b from answers").kind
    'sqlite'
    """

    url: str
    sql: str

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or self.kind not in KINDS:
            raise fail(
                "log", self.url, "with --sql: sqlite:///FILE, duckdb:///FILE or postgresql://"
            )
        if (
            not isinstance(self.sql, str)
            or not self.sql.strip()
            or ";" in self.sql.strip().rstrip(";")
        ):
            raise fail("sql", self.sql, "one SELECT")

    @property
    def kind(self) -> str:
        """Which kind of database it is."""
        kind = self.url.split("://", 1)[0]
        return "postgresql" if kind == "postgres" else kind

    @property
    def name(self) -> str:
        """What to call the log, as its user wrote it; who asks, with what password, is not shown.

        >>> Query("sqlite:///log.db", "select 1").name
        'sqlite query of log.db'
        >>> Query("postgresql://me:secret@host/db", "select 1").name
        'postgresql query of host/db'
        """
        if self.kind != "postgresql":
            return f"{self.kind} query of {self.file or 'files'}"
        place, _, options = self.url.split("://", 1)[-1].partition("?")
        # Where the sign of a password stands behind a question mark, nobody knows what is secret.
        place = "" if "@" in options else place.rpartition("@")[2]
        return f"{self.kind} query of {place or 'a server'}"

    @property
    def file(self) -> str:
        """The file of a database that is one; empty where there is none."""
        place = self.url.split("://", 1)[-1]
        return place[1:] if place.startswith("/") else place

    @property
    def bare(self) -> str:
        """The SELECT as it can stand inside another; the line ends, and a comment with it."""
        return self.sql.strip().rstrip(";") + "\n"


def columns_of(query: Query, used: Collection[str]) -> dict[str, object]:
    """The columns of a query with what the driver says of their types; no row is fetched.

    A name that stands twice is refused where it, or what it stands beside, may be used.
    """
    described, _ = run(query, f"SELECT * FROM ({query.bare}) AS asked WHERE 1 = 0")
    names = [name for name, _ in described]
    if any((match := _RENAMED.fullmatch(name)) and match[1] in names for name in names):
        # A name like that may be the user's own; the query alone tells.
        names = [name for name, _ in run(query, query.bare, fetch=False)[0]]
    _refuse_twice(names, used)
    return dict(described)


def rows_of(query: Query, used: Collection[str]) -> pl.LazyFrame:
    """All rows, for what needs them one by one; of two columns with one name the first."""
    described, table = run(query, query.bare)
    names = [name for name, _ in described]
    _refuse_twice(names, used)
    return frame_of(names, table)


def frame_of(names: Sequence[str], table: Sequence[Sequence[Any]]) -> pl.LazyFrame:
    """Fetched rows as a frame.

    >>> frame_of(["a"], [(1,), ("x",)]).collect()["a"].to_list()
    ['1', 'x']
    """
    polars = need_polars()
    columns: dict[str, pl.Series] = {}
    for at, name in enumerate(names):
        if name not in columns:
            columns[name] = polars.Series(name, _plain([row[at] for row in table]), strict=False)
    frame: pl.LazyFrame = polars.DataFrame(columns).lazy()
    return frame


def run(
    query: Query, sql: str, *, fetch: bool = True
) -> tuple[list[tuple[str, object]], list[tuple[Any, ...]]]:
    """Run a SELECT where the query's log lies; what is wrong is one line.

    Returns:
        Name and type of each column, and all rows (none where they are not to be fetched).
    """
    try:
        with closing(_connect(query)) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            if cursor.description is None:
                raise fail("sql", query.sql, "one SELECT")
            described = [(column[0], column[1]) for column in cursor.description]
            return described, cursor.fetchall() if fetch else []
    except StopwiseError:
        raise
    except Exception as error:  # noqa: BLE001  (every driver has its own)
        text = " ".join(str(error).split())[:200]
        raise StopwiseError(f"{query.name}: the query failed ({text})") from None


def _refuse_twice(names: Sequence[str], used: Collection[str]) -> None:
    for name in names:
        plain = name.removesuffix(COST_SUFFIX).removesuffix(CONFIDENCE_SUFFIX)
        billed = plain + COST_SUFFIX in names
        if names.count(name) > 1 and (plain in used or billed):
            raise fail("sql: columns", name, "each name once; rename one of them with AS")


def _plain(values: list[Any]) -> list[Any]:
    """Values of one kind: mixed ones, which SQLite allows, as text; decimals as numbers."""
    values = [float(value) if isinstance(value, Decimal) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and not kinds <= {int, float}
    if mixed or not kinds <= {int, float, bool, str, bytes, list, dict}:
        return [None if value is None else str(value) for value in values]
    return values


def _connect(query: Query) -> Any:
    if query.kind == "sqlite":
        import sqlite3
        from pathlib import Path

        path = Path(query.file)
        if not path.is_file():
            raise StopwiseError(f"{path}: there is no such file")
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        for name, function in numbers.SQLITE_FUNCTIONS.items():
            connection.create_function(name, 1, function, deterministic=True)
        return connection
    if query.kind == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise StopwiseError("duckdb:// needs duckdb: pip install 'stopwise[duckdb]'") from None
        return duckdb.connect(query.file or ":memory:", read_only=bool(query.file))
    try:
        import psycopg
    except ImportError:
        raise StopwiseError(
            "postgresql:// needs psycopg: pip install 'stopwise[postgres]'"
        ) from None
    return psycopg.connect(query.url, options="-c default_transaction_read_only=on")
