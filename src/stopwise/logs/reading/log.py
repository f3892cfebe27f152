"""A log made wide, still unread: what every later step is handed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from stopwise.checks import StopwiseError, fail, one_of
from stopwise.logs.reading.files import TextFiles, need_polars
from stopwise.logs.settings import LogSettings

if TYPE_CHECKING:
    import polars as pl

COST_SUFFIX = ":cost"
CONFIDENCE_SUFFIX = ":confidence"
TRUTHS = "truths"
"""Of a long log: how many different truths an item has."""


class CountedLog(Protocol):
    """What the database of a counted log can still be asked."""

    def steps(self, at: int) -> list[tuple[object, float, int]]:
        """How often each step of a stage's costs above 0 occurs: (segment, step, rows)."""
        ...

    def repeats(self) -> tuple[int, int]:
        """Rows that repeat an item, and items that have more than one truth."""
        ...


@dataclass(frozen=True)
class Log:
    """A log made wide, still unread.

    Attributes:
        outputs: columns `y0`, `y1`, ... (outputs), `k0`, ... (whether the stage was called, where
            the log tells), `unbilled0`, ... (whether it lacks a cost), `c0`, ... (costs, where they
            are to be measured) and `segment`.
        truth: the same outputs with `truth`, for scoring; None where no truth was given.
        items: the same outputs with `item`, for files that people fill in.
        calls_known: for every stage, whether there is a column `k`.
        measured: whether costs are measured in the log.
        counted: of a query, what its database is asked; each row of `outputs` then stands for `n`
            rows, and has sums in the place of costs.
        raw: of CSV files, all their columns; None where rows cannot have too many values, or few.
        files: the CSV files themselves.
        long: whether the log has several rows for an item.
        calls_by_cost: whether `k0`, ... say that a cost is above 0.
    """

    name: str
    stages: tuple[str, ...]
    outputs: pl.LazyFrame
    truth: pl.LazyFrame | None
    items: pl.LazyFrame
    calls_known: tuple[bool, ...]
    measured: bool
    has_item: bool
    settings: LogSettings
    raw: pl.LazyFrame | None = None
    files: TextFiles | None = None
    counted: CountedLog | None = None
    long: bool = False
    calls_by_cost: bool = False

    @property
    def weighted(self) -> bool:
        """Whether each row stands for `n` rows, counted by a database."""
        return self.counted is not None


def confidence_column(stage: int) -> str:
    """What the column of a stage's confidences is called in a wide frame.

    >>> confidence_column(2)
    'confidence 2'
    """
    return f"confidence {stage}"


def cost_expression(kind: Any, column: str) -> tuple[Any, Any]:
    """A column of costs as numbers, and which of its cells are no number."""
    polars = need_polars()
    if kind == polars.String:
        text = polars.col(column).str.strip_chars()
        read = text.cast(polars.Float64, strict=False)
        no_number = read.is_null() & text.is_not_null() & (text != "")
        return read.fill_nan(None), no_number | read.is_infinite().fill_null(False)
    if not kind.is_numeric() and kind != polars.Null:
        raise fail(f"column {column}", str(kind), "numbers")
    cost = polars.col(column).cast(polars.Float64).fill_nan(None)
    return cost, cost.is_infinite().fill_null(False)


def baseline_of(stages: tuple[str, ...], settings: LogSettings) -> int:
    """The stage that savings are stated against: as the settings say, or the last.

    >>> baseline_of(("a", "b", "c"), LogSettings(baseline="b"))
    1
    """
    if settings.baseline is None:
        return len(stages) - 1
    return stages.index(one_of("baseline", settings.baseline, stages))


# ---- refusals -------------------------------------------------------------------------------


def check_count(stages: tuple[str, ...], settings: LogSettings) -> None:
    """Refuse costs of another number of stages, and a stage that is the truth."""
    if settings.costs is not None and len(settings.costs) != len(stages):
        raise fail(
            "costs", list(settings.costs),
            f"{len(stages)} numbers, one for each of {', '.join(stages)}",
        )  # fmt: skip
    if settings.truth in stages:
        raise fail("truth", settings.truth, "a column that is not one of the stages")


def no_column(field: str, column: str, types: Any) -> StopwiseError:
    """The refusal of a name that is no column."""
    return fail(field, column, f"a column of the log: {listed(types)}")


def no_costs(stages: list[str], where: str) -> StopwiseError:
    """The refusal of a log without costs."""
    return StopwiseError(
        f"costs: not given for {', '.join(stages)}; give each stage's own cost with"
        f" costs=[1, 2, ...] (--costs 1,2,...), or have them in the log as {where}"
    )


def listed(names: Any, most: int = 12) -> str:
    """Names with commas, cut off where there are many; in quotes where spaces would not be seen.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ... (3 in all)'
    >>> listed(["a", " b"])
    "a, ' b'"
    """
    names = [str(name) for name in names]
    names = [name if name == name.strip() else repr(name) for name in names]
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
