"""Costs that were billed in the log: their sums by pattern, and how they are spread.

Sums are taken in the same streaming group-by that counts the patterns. The spread is a table of
costs rounded down to a thousandth of themselves, of at most a quarter of a million rows taken
at equal distances; intervals of the mean rest on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import StopwiseError, fail
from stopwise.costs import FloatArray
from stopwise.logs.formatting import printable
from stopwise.logs.reading.databases.numbers import STEPS
from stopwise.logs.reading.files import collect, need_polars
from stopwise.logs.reading.labels import plain_label
from stopwise.logs.reading.log import CountedLog, Log

if TYPE_CHECKING:
    import polars as pl

_SUMS = ("total", "known", "bad")
"""What a database adds up of every stage's costs."""

_LARGEST = 1e290
"""Bounds of means are some times larger than the sums they come from, and must be numbers too."""

_MOST_ROWS = 250_000
"""Rows from which the spread is taken: more would hardly make the intervals narrower."""


@dataclass(frozen=True, eq=False)
class Spread:
    """How often each (rounded) cost of a stage occurs, in the whole log or in one segment.

    Two of them are equal if they are the same object, so that bounds can be kept for each.
    """

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
        stage_count = self.number.shape[1]
        number = np.array([math.fsum(self.number[:, at]) for at in range(stage_count)])
        total = np.array([math.fsum(self.total[:, at]) for at in range(stage_count)])
        return np.where(number > 0, total / np.maximum(number, 1), np.nan), number


def bill_query(log: Log) -> list[Any]:
    """The sums to take by pattern. Sums of plain columns stream; which count is decided later.

    Where `k0`, ... are keys that say whether a cost is above 0, the sum and the number of costs
    tell the rest: a group without costs above 0 has one below 0 if its sum is.
    """
    polars = need_polars()
    columns = log.outputs.collect_schema().names()
    if log.weighted:
        fields = [f"{field}{at}" for at in range(len(log.stages)) for field in _SUMS]
        least = [polars.col(f"least{at}").min() for at in range(len(log.stages))]
        return [polars.col(field).sum() for field in fields] + least
    sums = []
    for at in range(len(log.stages)):
        cost = polars.col(f"c{at}")
        sums += [cost.sum().alias(f"total{at}"), cost.count().alias(f"known{at}")]
        if not log.calls_by_cost:
            sums += [(cost > 0).sum().alias(f"positive{at}"), cost.min().alias(f"least{at}")]
        if f"bad{at}" in columns:
            sums.append(polars.col(f"bad{at}").cast(polars.UInt32).sum().alias(f"bad{at}"))
    return sums


def check_bills(log: Log, table: pl.DataFrame) -> None:
    """Refuse costs that are no numbers, below 0, or missing altogether."""
    for at, stage in enumerate(log.stages):
        bad = int(table[f"bad{at}"].sum() or 0) if f"bad{at}" in table.columns else 0
        total = table[f"total{at}"].fill_null(0)
        if bad or not abs(float(total.sum())) <= _LARGEST:
            raise StopwiseError(
                f"costs of {stage}: not all are numbers, or they are too large to be added up;"
                " correct them or give --costs 1,2,..."
            )
        least = _least(log, table, at)
        if least < 0:
            raise fail(f"costs of {stage}", least, "0 or more in every row")


def _least(log: Log, table: pl.DataFrame, at: int) -> float:
    """The smallest cost, if it is below 0; otherwise 0 or more."""
    if f"least{at}" in table.columns:
        found: Any = table[f"least{at}"].min()
        return 0.0 if found is None else float(found)
    free = table.filter(~table[f"k{at}"])[f"total{at}"]
    if not bool((free < 0).any()):
        return 0.0
    return float(collect(log.outputs.select(need_polars().col(f"c{at}").min()), log.name).item())


def every_bill_written(log: Log, at: int) -> bool:
    """Whether no row lacks a bill of a stage, be it 0; this reads its costs once more."""
    polars = need_polars()
    if log.weighted:
        rows = log.outputs.select((polars.col("n") - polars.col(f"known{at}")).sum())
        return int(collect(rows, log.name).item() or 0) == 0
    return not collect(log.outputs.select(polars.col(f"unbilled{at}").any()), log.name).item()


def read_bills(log: Log, table: pl.DataFrame, called: NDArray[np.bool_], rows: int) -> Bills:
    """The bills of counted patterns, and their spreads (one more pass over the costs).

    Args:
        called: for every pattern and stage, whether it was called. One that was not is often
            billed 0: that is no cost of it. A free abstention is a call that cost 0.
    """
    stage_count = len(log.stages)

    def column(field: str, at: int) -> FloatArray:
        return table[f"{field}{at}"].fill_null(0).to_numpy().astype(np.float64)

    def positives(at: int) -> FloatArray:
        if not log.calls_by_cost:
            return column("positive", at)
        return np.where(table[f"k{at}"].to_numpy(), column("known", at), 0.0)

    positive = [positives(at) for at in range(stage_count)]
    number = np.stack(
        [np.where(called[:, at], column("known", at), positive[at]) for at in range(stage_count)],
        axis=1,
    )
    for at, stage in enumerate(log.stages):
        if number[:, at].sum() < 2:
            raise StopwiseError(
                f"costs of {stage}: the log has no two of them; give --costs 1,2,... instead"
            )
    # Only of stages with calls that cost nothing must the outputs be looked at again.
    free = {at for at in range(stage_count) if (number[:, at] > positive[at]).any()}
    total = np.stack([column("total", at) for at in range(stage_count)], axis=1)
    if log.counted is not None:
        zero = number - np.stack(positive, axis=1)
        return Bills(number, total, _counted_spreads(log.counted, table, zero))
    return Bills(number, total, _spreads(log, rows, free))


def _spreads(log: Log, rows: int, free_stages: set[int]) -> tuple[dict[str | None, Spread], ...]:
    polars = need_polars()
    stage_count = len(log.stages)
    wanted = [polars.col(f"c{at}") for at in range(stage_count)]
    wanted += [
        # Outputs tell a free call from none; they are only looked at where the cost is 0.
        ((polars.col(f"c{at}") == 0) & _called(log, at)).fill_null(False).alias(f"free{at}")
        for at in free_stages
    ]
    by_segment = log.settings.segment is not None
    if by_segment:
        wanted.append(polars.col("segment"))
    every = -(-rows // _MOST_ROWS)
    frame = log.outputs
    if every > 1:
        frame = frame.with_row_index("row").filter(polars.col("row") % every == 0)
    table = collect(frame.select(wanted), log.name)
    names = np.array([])
    if by_segment:
        names = np.array([_segment(value) for value in table["segment"].to_list()], dtype=object)
    found = []
    for at in range(stage_count):
        costs = table[f"c{at}"].to_numpy().astype(np.float64)
        kept = costs > 0
        if at in free_stages:
            kept |= table[f"free{at}"].to_numpy().astype(bool)
        spreads: dict[str | None, Spread] = {None: spread_of(costs[kept])}
        if by_segment:
            for name in {name for name in names.tolist() if name is not None}:
                spreads[name] = spread_of(costs[kept & (names == name)])
        found.append(spreads)
    return tuple(found)


def _counted_spreads(
    counted: CountedLog, table: pl.DataFrame, zero: FloatArray
) -> tuple[dict[str | None, Spread], ...]:
    """The spreads as the database counts them, of all rows.

    Args:
        zero: for every pattern and stage, calls that cost nothing.
    """
    by_segment = "segment" in table.columns
    of_pattern = [_segment(value) for value in table["segment"].to_list()] if by_segment else []
    found = []
    for at in range(zero.shape[1]):
        numbers: dict[str | None, dict[float, float]] = {
            None: {-math.inf: float(zero[:, at].sum())}
        }
        for name, free in zip(of_pattern, zero[:, at].tolist(), strict=by_segment):
            if name is not None:
                steps = numbers.setdefault(name, {-math.inf: 0.0})
                steps[-math.inf] += free
        for value, step, number in counted.steps(at):
            name = _segment(value)
            for part in {None, name}:
                steps = numbers[part]
                steps[step] = steps.get(step, 0.0) + number
        found.append({part: _of_steps(steps) for part, steps in numbers.items()})
    return tuple(found)


def _of_steps(steps: dict[float, float]) -> Spread:
    kept = sorted((step, number) for step, number in steps.items() if number > 0)
    cost = np.exp(np.array([step for step, _ in kept]) / STEPS)
    return Spread(cost, np.array([number for _, number in kept]))


def _segment(value: object) -> str | None:
    label = plain_label(value)
    return None if label is None else printable(label)


def _called(log: Log, at: int) -> Any:
    """Whether a stage that is free on some items was called, as `tell_blanks_apart` has it."""
    polars = need_polars()
    if at == 0 or log.settings.trailing_blanks == "abstained":
        return polars.lit(True)
    written = [
        polars.col(f"y{deep}").cast(polars.String).str.strip_chars()
        for deep in range(at, len(log.stages))
    ]
    answered = [~text.is_in(["", "nan", "NaN"]).fill_null(True) for text in written]
    return polars.any_horizontal(polars.col(f"k{at}"), *answered)


def spread_of(costs: FloatArray) -> Spread:
    """Costs rounded down to a thousandth of themselves, and how often each occurs.

    >>> spread_of(np.array([2.0, 0.0, 2.0])).number
    array([1., 2.])
    """
    positive = costs[costs > 0]
    free = len(costs) - len(positive)
    steps = np.floor(np.log(positive) * STEPS).astype(np.int64)
    # Steps lie close together (all numbers there are make 1.5 million): counted, not sorted.
    first = int(steps.min(initial=0))
    number = np.bincount(steps - first)
    different = np.flatnonzero(number)
    cost = np.exp((different + first) / STEPS)
    if free:
        cost = np.append(0.0, cost)
    return Spread(cost, np.append([free] if free else [], number[different]).astype(np.float64))
