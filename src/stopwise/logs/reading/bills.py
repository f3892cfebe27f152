"""Costs that were billed in the log: their sums by pattern, and how they are spread.

Sums are taken in the same streaming group-by that counts the patterns. The spread is a table of
costs rounded down to a thousandth of themselves, of which there are few whatever the number of
rows; intervals of the mean rest on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import StopwiseError, fail
from stopwise.costs import FloatArray
from stopwise.logs.reading.files import collect, need_polars
from stopwise.logs.reading.labels import plain_label
from stopwise.logs.reading.log import Log

if TYPE_CHECKING:
    import polars as pl

_STEPS = 1000
"""A cost is kept to one part in this many."""


@dataclass(frozen=True)
class Spread:
    """How often each (rounded) cost of a stage occurs, in the whole log or in one segment."""

    cost: FloatArray
    number: FloatArray


@dataclass(frozen=True)
class Bills:
    """Costs of every stage over the rows that called it.

    Attributes:
        number: how many bills, one row per pattern, one column per stage.
        total: their sum.
        spreads: of every stage, how its bills are spread, by segment (None: the whole log).
    """

    number: FloatArray
    total: FloatArray
    spreads: tuple[dict[str | None, Spread], ...]

    def where(self, mask: NDArray[np.bool_]) -> Bills:
        """Only these patterns; the spreads stay those of the whole log."""
        return replace(self, number=self.number[mask], total=self.total[mask])

    def means(self) -> tuple[FloatArray, FloatArray]:
        """Mean cost and number of bills of every stage; nan where there is none.

        Sums are exact, so the order of the groups, which is none, does not show in the result.
        """
        count = self.number.shape[1]
        number = np.array([math.fsum(self.number[:, at]) for at in range(count)])
        total = np.array([math.fsum(self.total[:, at]) for at in range(count)])
        return np.where(number > 0, total / np.maximum(number, 1), np.nan), number


def bill_query(frame: pl.LazyFrame, count: int) -> tuple[pl.LazyFrame, list[Any]]:
    """Columns to add to the frame, and the sums to take of them by pattern.

    Conditions are worked out row by row before grouping: sums of plain columns stream.
    """
    polars = need_polars()
    columns, sums = [], []
    for at in range(count):
        cost = polars.col(f"c{at}")
        columns.append(polars.when(counted(at)).then(cost).alias(f"bill{at}"))
        sums += [
            polars.col(f"bill{at}").sum().alias(f"total{at}"),
            polars.col(f"bill{at}").count().alias(f"counted{at}"),
            cost.min().alias(f"least{at}"),
            polars.col(f"bad{at}").cast(polars.UInt32).sum().alias(f"bad{at}"),
        ]
    return frame.with_columns(columns), sums


def counted(at: int) -> Any:
    """Whether a cost is one of the stage: a stage that was not called is often billed 0, blank."""
    polars = need_polars()
    text = polars.col(f"y{at}").cast(polars.String)
    return (polars.col(f"c{at}") > 0) | (text.is_not_null() & (text.str.strip_chars() != ""))


def check_bills(stages: tuple[str, ...], table: pl.DataFrame) -> None:
    """Refuse costs that are no numbers, below 0, or missing altogether."""
    for at, stage in enumerate(stages):
        if int(table[f"bad{at}"].sum() or 0):
            raise StopwiseError(
                f"costs of {stage}: not all are numbers; correct them or give --costs 1,2,..."
            )
        least: Any = table[f"least{at}"].min()
        if least is not None and float(least) < 0:
            raise fail(f"costs of {stage}", float(least), "0 or more in every row")
        if int(table[f"counted{at}"].sum()) < 2:
            raise StopwiseError(
                f"costs of {stage}: the log has no two of them; give --costs 1,2,... instead"
            )


def read_bills(log: Log, table: pl.DataFrame) -> Bills:
    """The bills of counted patterns, and their spreads (one more pass over the costs)."""
    count = len(log.stages)

    def column(field: str, at: int) -> FloatArray:
        return table[f"{field}{at}"].fill_null(0).to_numpy().astype(np.float64)

    return Bills(
        number=np.stack([column("counted", at) for at in range(count)], axis=1),
        total=np.stack([column("total", at) for at in range(count)], axis=1),
        spreads=tuple(_spreads(log, at) for at in range(count)),
    )


def _spreads(log: Log, at: int) -> dict[str | None, Spread]:
    polars = need_polars()
    cost = polars.col(f"c{at}")
    rounded = polars.when(cost > 0).then((cost.log() * _STEPS).floor().cast(polars.Int32))
    keys = [rounded.alias("step")]
    by_segment = log.settings.segment is not None
    if by_segment:
        keys.append(polars.col("segment"))
    query = log.outputs.filter(counted(at) & cost.is_not_null()).group_by(keys)
    table = collect(query.agg(polars.len().alias("n")), log.name)
    steps = table["step"].to_numpy().astype(np.float64)
    costs = np.where(np.isnan(steps), 0.0, np.exp(np.nan_to_num(steps) / _STEPS))
    number = table["n"].to_numpy().astype(np.float64)
    found: dict[str | None, Spread] = {None: _ordered(costs, number)}
    if by_segment:
        names = [plain_label(value) for value in table["segment"].to_list()]
        for name in {name for name in names if name is not None}:
            here = np.array([other == name for other in names])
            found[name] = _ordered(costs[here], number[here])
    return found


def _ordered(costs: FloatArray, number: FloatArray) -> Spread:
    different, inverse = np.unique(costs, return_inverse=True)
    return Spread(different, np.bincount(inverse.ravel(), weights=number).astype(np.float64))
