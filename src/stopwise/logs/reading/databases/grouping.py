"""The group-by of a log, its sums and its spreads of costs, each as one SELECT for the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.logs.reading.databases import numbers
from stopwise.logs.reading.databases.query import Query, frame_of, run
from stopwise.logs.reading.labels import no_label
from stopwise.logs.reading.log import COST_SUFFIX
from stopwise.logs.settings import LogSettings

if TYPE_CHECKING:
    import polars as pl


def named_columns(settings: LogSettings) -> dict[str, str]:
    """The columns that settings name, beside those of the stages, by field.

    >>> named_columns(LogSettings(segment="language"))
    {'segment': 'language'}
    """
    fields = ("segment", "truth", "item")
    return {field: value for field in fields if (value := getattr(settings, field)) is not None}


@dataclass(frozen=True)
class Grouping:
    """What to ask of the database: the query with its columns under the names that a log has.

    Attributes:
        stages: in their order.
        billed: for every stage, whether the query has a column of its costs.
        measured: whether these are to be added up, too.
        columns: of the query, with the driver's word for their types.
    """

    query: Query
    stages: tuple[str, ...]
    billed: tuple[bool, ...]
    measured: bool
    columns: dict[str, object]
    settings: LogSettings

    def groups(self) -> pl.LazyFrame:
        """One row for each pattern of outputs, calls, segment and truth, with its sums.

        Columns: `y0`, ..., `k0`, ... (a cost above 0), `known0`, ... (rows with a cost, be it 0),
        `segment`, `truth`, `n` (rows), and of costs that are measured `total0`, `least0` and `bad0`
        (cells that are no numbers).
        """
        inner, keys = [], []
        sums = ["COUNT(*) AS n"]
        for at in range(len(self.stages)):
            keys.append(f"y{at}")
            if self.billed[at]:
                inner.append(f"CASE WHEN c{at} > 0 THEN 1 ELSE 0 END AS k{at}")
                keys.append(f"k{at}")
                sums.append(f"COUNT(c{at}) AS known{at}")
            if self.measured:
                sums.append(f"SUM(c{at}) AS total{at}")
                sums += [f"MIN(c{at}) AS least{at}", f"SUM(bad{at}) AS bad{at}"]
        keys += [field for field in ("segment", "truth") if field in self._named()]
        calls = ", ".join(["named.*", *inner])
        sql = (
            f"SELECT {', '.join(keys + sums)}"
            f" FROM (SELECT {calls} FROM ({self._under_our_names()}) AS named) AS called"
            f" GROUP BY {', '.join(keys)}"
        )
        described, table = run(self.query, sql)
        for at, stage in enumerate(self.stages):
            place = keys.index(f"y{at}")
            for row in table:
                if isinstance(row[place], bytes | list | tuple | dict):
                    raise no_label(stage, type(row[place]).__name__)
        return frame_of([name for name, _ in described], table)

    def steps(self, at: int) -> list[tuple[object, float, int]]:
        """How often each step of a stage's costs above 0 occurs: (segment, step, rows)."""
        segment = "segment" if "segment" in self._named() else "NULL"
        step = numbers.step(self.query.kind, f"c{at}")
        sql = (
            f"SELECT {segment} AS of_segment, {step} AS step, COUNT(*) AS n"
            f" FROM ({self._under_our_names()}) AS named WHERE c{at} > 0 GROUP BY 1, 2"
        )
        return [(name, float(here), int(number)) for name, here, number in run(self.query, sql)[1]]

    def repeats(self) -> tuple[int, int]:
        """Rows that repeat an item, and items that have more than one truth."""
        truth = "COUNT(DISTINCT truth)" if "truth" in self._named() else "0"
        sql = (
            "SELECT SUM(n - 1), SUM(CASE WHEN truths > 1 THEN 1 ELSE 0 END) FROM"
            f" (SELECT COUNT(*) AS n, {truth} AS truths"
            f" FROM ({self._under_our_names()}) AS named GROUP BY item) AS items"
        )
        again, conflicts = run(self.query, sql)[1][0]
        return int(again or 0), int(conflicts or 0)

    def _named(self) -> dict[str, str]:
        return named_columns(self.settings)

    def _under_our_names(self) -> str:
        """The query with its columns called `y0`, `c0`, `bad0`, `segment`, `truth` and `item`."""
        columns = [f"{_quoted(name)} AS {field}" for field, name in self._named().items()]
        for at, stage in enumerate(self.stages):
            columns.append(f"{_quoted(stage)} AS y{at}")
            if self.billed[at]:
                name = stage + COST_SUFFIX
                read = numbers.number(self.query.kind, _quoted(name), self.columns[name])
                columns.append(f"{read} AS c{at}")
                bad = numbers.no_number(self.query.kind, _quoted(name), read)
                columns.append(f"{bad} AS bad{at}")
        return f"SELECT {', '.join(columns)} FROM ({self.query.bare}) AS asked"


def _quoted(name: str) -> str:
    return 'asked."' + name.replace('"', '""') + '"'
