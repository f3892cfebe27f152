"""Logs that lie in a database: the grouping is done there, and only the groups are fetched.

sqlite:///folder/file.db      needs nothing
duckdb:///folder/file.duckdb  needs duckdb; duckdb:// alone reads files named in the query
postgresql://user@host/name   needs psycopg
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail
from stopwise.logs.reading.files import need_polars
from stopwise.logs.reading.log import no_column
from stopwise.logs.settings import LogSettings

if TYPE_CHECKING:
    import polars as pl

KINDS = ("sqlite", "duckdb", "postgresql")
NUMBER = "stopwise rows"
"""The column that says how many rows a group stands for."""


@dataclass(frozen=True)
class Query:
    """A SELECT and the database to run it in.

    >>> Query("sqlite:///log.db", "select a, b from answers").kind
    'sqlite'
    """

    url: str
    sql: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise fail(
                "log", self.url, "with --sql: sqlite:///FILE, duckdb:///FILE or postgresql://"
            )
        if not self.sql.strip() or ";" in self.sql.strip().rstrip(";"):
            raise fail("sql", self.sql, "one SELECT")

    @property
    def kind(self) -> str:
        """Which kind of database it is."""
        kind = self.url.split("://", 1)[0]
        return "postgresql" if kind == "postgres" else kind

    @property
    def name(self) -> str:
        """What to call the log; a password is not shown."""
        place = self.url.split("://", 1)[-1].rpartition("@")[2].partition("?")[0]
        return f"{self.kind} query of {place or 'files'}"


def grouped(query: Query, settings: LogSettings) -> pl.LazyFrame:
    """One row for each pattern of outputs (and segment, and truth), counted by the database."""
    if settings.stages is None or settings.costs is None:
        raise StopwiseError("sql: give --stages and --costs; bills are not summed in a database")
    wanted = [("stages", stage) for stage in settings.stages]
    others = {"segment": settings.segment, "truth": settings.truth}
    wanted += [(field, column) for field, column in others.items() if column is not None]
    known = _rows(query, f"SELECT * FROM ({_bare(query)}) AS asked WHERE 1 = 0")[0]
    for field, column in wanted:
        # SQLite takes an unknown name in quotes for a text, which would be a stage's only answer.
        if column not in known:
            raise no_column(field, column, known)
    named = ", ".join(f"asked.{_quoted(column)}" for _, column in wanted)
    sql = (
        f"SELECT {named}, COUNT(*) AS {_quoted(NUMBER)} FROM ({_bare(query)}) AS asked"
        f" GROUP BY {named}"
    )
    return _fetch(query, sql)


def rows_of(query: Query) -> pl.LazyFrame:
    """All rows, for what needs them one by one."""
    return _fetch(query, _bare(query))


def _bare(query: Query) -> str:
    return query.sql.strip().rstrip(";")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _fetch(query: Query, sql: str) -> pl.LazyFrame:
    polars = need_polars()
    names, table = _rows(query, sql)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise fail("sql: columns", twice[0], "each name once; rename one of them with AS")
    columns = {
        name: polars.Series(name, _plain([row[at] for row in table]), strict=False)
        for at, name in enumerate(names)
    }
    frame: pl.LazyFrame = polars.DataFrame(columns).lazy()
    return frame


def _rows(query: Query, sql: str) -> tuple[list[str], list[Any]]:
    """The names of the columns and all rows; what is wrong is one line."""
    try:
        with closing(_connect(query)) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            if cursor.description is None:
                raise fail("sql", query.sql, "one SELECT")
            return [column[0] for column in cursor.description], cursor.fetchall()
    except StopwiseError:
        raise
    except Exception as error:  # noqa: BLE001  (every driver has its own)
        text = " ".join(str(error).split())[:200]
        raise StopwiseError(f"{query.name}: the query failed ({text})") from None


def _plain(values: list[Any]) -> list[Any]:
    """Values of one kind: mixed ones, which SQLite allows, as text; decimals as numbers."""
    values = [float(value) if isinstance(value, Decimal) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and not kinds <= {int, float}
    if mixed or not kinds <= {int, float, bool, str, bytes, list, dict}:
        return [None if value is None else str(value) for value in values]
    return values


def _connect(query: Query) -> Any:
    place = query.url.split("://", 1)[-1]
    if query.kind == "sqlite":
        import sqlite3
        from pathlib import Path

        path = Path(place.removeprefix("/") if not place.startswith("//") else place[1:])
        if not path.is_file():
            raise StopwiseError(f"{path}: there is no such file")
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    if query.kind == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise StopwiseError("duckdb:// needs duckdb: pip install 'stopwise[duckdb]'") from None
        path_text = place.removeprefix("/")
        return duckdb.connect(path_text or ":memory:", read_only=bool(path_text))
    try:
        import psycopg
    except ImportError:
        raise StopwiseError(
            "postgresql:// needs psycopg: pip install 'stopwise[postgres]'"
        ) from None
    return psycopg.connect(query.url, options="-c default_transaction_read_only=on")
