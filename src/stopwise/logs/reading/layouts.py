"""A log of any layout as one wide lazy frame: y0, y1, ... and, where known, costs and calls.

Nothing is read here beyond the header (and, in a long log, which stages there are). The truth stays
in a frame of its own: what counts and learns is handed `Log.outputs`, which does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail
from stopwise.logs.reading.files import collect, column_types, need_polars, scan
from stopwise.logs.settings import Settings

if TYPE_CHECKING:
    import polars as pl

COST_SUFFIX = ":cost"


@dataclass(frozen=True)
class Log:
    """A log made wide, still unread.

    Attributes:
        outputs: columns `y0`, `y1`, ... (outputs), `k0`, ... (whether the stage was called, where
            the log tells), `c0`, ... (costs, where they are to be measured) and `segment`.
        truth: the same outputs with `truth`, for scoring; None where no truth was given.
        items: the same outputs with `item`, for files that people fill in.
        calls_known: for every stage, whether there is a column `k`.
        measured: whether costs are measured in the log.
    """

    name: str
    stages: tuple[str, ...]
    outputs: pl.LazyFrame
    truth: pl.LazyFrame | None
    items: pl.LazyFrame
    calls_known: tuple[bool, ...]
    measured: bool
    has_item: bool
    settings: Settings


def open_log(log: object, settings: Settings) -> Log:
    """Find the stages of a log and make it wide.

    >>> import polars
    >>> frame = polars.DataFrame({"fast": ["a", "b"], "slow": ["a", "a"]})
    >>> open_log(frame, Settings(stages=("fast", "slow"), costs=(1, 5))).stages
    ('fast', 'slow')
    """
    frame, name = scan(log)
    types = column_types(frame, name)
    if not types:
        raise StopwiseError(f"{name}: there are no columns; need a header and a row for each item")
    for field in ("segment", "truth", "item"):
        column = getattr(settings, field)
        if column is not None and column not in types:
            raise _no_column(field, column, types)
    if _is_long(settings, types):
        return _open_long(frame, name, types, settings)
    return _open_wide(frame, name, types, settings)


def _is_long(settings: Settings, types: dict[str, Any]) -> bool:
    if settings.layout != "auto":
        return settings.layout == "long"
    has_columns = settings.stage_column in types and settings.output_column in types
    return has_columns and not all(stage in types for stage in settings.stages or ("",))


# ---- wide -----------------------------------------------------------------------------------


def _open_wide(frame: pl.LazyFrame, name: str, types: dict[str, Any], settings: Settings) -> Log:
    polars = need_polars()
    billed = tuple(c.removesuffix(COST_SUFFIX) for c in types if c.endswith(COST_SUFFIX))
    stages = settings.stages
    if stages is None:
        stages = tuple(stage for stage in billed if stage in types)
        if len(stages) < 2:
            raise StopwiseError(
                "stages: not given; name the columns of the stages in order, cheapest first, with"
                f" --stages a,b,c (columns here: {_listed(types)})"
            )
    for stage in stages:
        if stage not in types:
            raise _no_column("stages", stage, types)
        if types[stage].is_nested() or types[stage] in (polars.Binary, polars.Object):
            raise fail(
                f"column {stage}", str(types[stage]),
                "one label a row (text, a number or a truth value), not lists or bytes",
            )  # fmt: skip
    measured = settings.costs is None
    without = [stage for stage in stages if stage not in billed]
    if measured and without:
        raise _no_costs(without, f"columns named '{without[0]}{COST_SUFFIX}'")
    _check_count(stages, settings)
    chosen = [polars.col(stage).alias(f"y{at}") for at, stage in enumerate(stages)]
    calls_known = tuple(stage in billed for stage in stages)
    for at, stage in enumerate(stages):
        if calls_known[at]:
            cost, bad = _cost(types[stage + COST_SUFFIX], stage + COST_SUFFIX)
            chosen.append((cost > 0).fill_null(False).alias(f"k{at}"))
            if measured:
                chosen += [cost.alias(f"c{at}"), bad.alias(f"bad{at}")]
    if settings.segment is not None:
        chosen.append(polars.col(settings.segment).alias("segment"))
    item = settings.item or ("item" if "item" in types and "item" not in stages else None)
    has_item = item is not None
    items = [polars.col(item).alias("item")] if item is not None else []
    truth = [polars.col(settings.truth).alias("truth")] if settings.truth is not None else []
    return Log(
        name=name,
        stages=stages,
        outputs=frame.select(chosen),
        truth=frame.select(chosen + truth) if truth else None,
        items=frame.select(chosen + items + truth),
        calls_known=calls_known,
        measured=measured,
        has_item=has_item,
        settings=settings,
    )


def _cost(kind: Any, column: str) -> tuple[Any, Any]:
    """A column of costs as numbers, and which of its cells are no number."""
    polars = need_polars()
    if kind == polars.String:
        text = polars.col(column).str.strip_chars()
        cost = text.cast(polars.Float64, strict=False)
        return cost, cost.is_null() & text.is_not_null() & (text != "")
    if not kind.is_numeric() and kind != polars.Null:
        raise fail(f"column {column}", str(kind), "numbers")
    cost = polars.col(column).cast(polars.Float64).fill_nan(None)
    return cost, polars.lit(False)


# ---- long -----------------------------------------------------------------------------------


def _open_long(frame: pl.LazyFrame, name: str, types: dict[str, Any], settings: Settings) -> Log:
    polars = need_polars()
    item = settings.item or "item"
    for field, column in (
        ("item", item),
        ("stage_column", settings.stage_column),
        ("output_column", settings.output_column),
    ):
        if column not in types:
            raise _no_column(field, column, types)
    stage_of = polars.col(settings.stage_column).cast(polars.String).str.strip_chars()
    found = collect(frame.select(stage_of.unique().sort()), name).to_series().drop_nulls().to_list()
    stages = settings.stages
    if stages is None:
        raise StopwiseError(
            "stages: not given; name them in order, cheapest first, with --stages a,b,c"
            f" (in column {settings.stage_column!r}: {_listed(found)})"
        )
    for stage in stages:
        if stage not in found:
            raise fail("stages", stage, f"one of those in the log: {_listed(found)}")
    measured = settings.costs is None
    has_costs = settings.cost_column in types
    if measured and not has_costs:
        raise _no_costs(list(stages), f"a column {settings.cost_column!r}")
    _check_count(stages, settings)
    ours = frame.filter(stage_of.is_in(list(stages)))
    twice = collect(ours.group_by(item, stage_of).len().filter(polars.col("len") > 1).head(1), name)
    if twice.height:
        raise StopwiseError(
            f"{name}: item {twice[item][0]!r} has stage {twice[settings.stage_column][0]!r} more"
            " than once; keep one row for each item and stage"
        )
    parts = []
    for at, stage in enumerate(stages):
        here = stage_of == stage
        parts.append(polars.col(settings.output_column).filter(here).first().alias(f"y{at}"))
        parts.append(here.any().alias(f"k{at}"))
        if measured:
            cost, bad = _cost(types[settings.cost_column], settings.cost_column)
            parts.append(cost.filter(here).first().alias(f"c{at}"))
            parts.append(bad.filter(here).any().alias(f"bad{at}"))
    if settings.segment is not None:
        parts.append(polars.col(settings.segment).drop_nulls().first().alias("segment"))
    truth = []
    if settings.truth is not None:
        truth = [polars.col(settings.truth).drop_nulls().first().alias("truth")]

    def wide(extra: list[Any]) -> pl.LazyFrame:
        grouped: pl.LazyFrame = ours.group_by(item, maintain_order=True).agg(parts + extra)
        return grouped

    return Log(
        name=name,
        stages=stages,
        outputs=wide([]).drop(item),
        truth=wide(truth).drop(item) if truth else None,
        items=wide(truth).rename({item: "item"}),
        calls_known=(True,) * len(stages),
        measured=measured,
        has_item=True,
        settings=settings,
    )


# ---- refusals -------------------------------------------------------------------------------


def _check_count(stages: tuple[str, ...], settings: Settings) -> None:
    if settings.costs is not None and len(settings.costs) != len(stages):
        raise fail(
            "costs", list(settings.costs),
            f"{len(stages)} numbers, one for each of {', '.join(stages)}",
        )  # fmt: skip
    if settings.truth in stages:
        raise fail("truth", settings.truth, "a column that is not one of the stages")


def _no_column(field: str, column: str, types: Any) -> StopwiseError:
    return fail(field, column, f"a column of the log: {_listed(types)}")


def _no_costs(stages: list[str], where: str) -> StopwiseError:
    return StopwiseError(
        f"costs: not given for {', '.join(stages)}; give each stage's own cost with"
        f" --costs 1,2,..., or have them in the log as {where}"
    )


def _listed(names: Any, most: int = 12) -> str:
    names = [str(name) for name in names]
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
