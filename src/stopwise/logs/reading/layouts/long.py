"""Logs with one row per item and stage: item, stage, output and perhaps cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail
from stopwise.logs.reading.files import collect, need_polars
from stopwise.logs.reading.layouts.beside import beside_long
from stopwise.logs.reading.log import (
    TRUTHS,
    Log,
    check_count,
    cost_expression,
    listed,
    no_column,
    no_costs,
)
from stopwise.logs.settings import LogSettings

if TYPE_CHECKING:
    import polars as pl


def open_long(
    frame: pl.LazyFrame,
    name: str,
    types: dict[str, Any],
    settings: LogSettings,
    show: str | None = None,
) -> Log:
    """A long log: find its stages, refuse an item that has one twice, and group by item."""
    polars = need_polars()
    item = settings.item or "item"
    for field, column in (
        ("item", item),
        ("stage_column", settings.stage_column),
        ("output_column", settings.output_column),
    ):
        if column not in types:
            raise no_column(field, column, types)
    stage_of = polars.col(settings.stage_column).cast(polars.String).str.strip_chars()
    stages = _stages(frame, name, stage_of, settings)
    measured = settings.costs is None
    if measured and settings.cost_column not in types:
        raise no_costs(list(stages), f"a column {settings.cost_column!r}")
    check_count(stages, settings)
    ours = frame.filter(stage_of.is_in(list(stages)))
    _refuse_repeated(ours, name, item, stage_of, settings)
    parts = _columns(types, stages, stage_of, measured, settings)
    truth = []
    if settings.truth is not None:
        truths = polars.col(settings.truth).drop_nulls()
        truth = [truths.first().alias("truth"), truths.n_unique().alias(TRUTHS)]

    shown = []
    if show is not None:
        shown = [polars.col(show).drop_nulls().first().alias("shown")]

    def wide(extra: list[Any]) -> pl.LazyFrame:
        grouped: pl.LazyFrame = ours.group_by(item, maintain_order=True).agg(parts + extra)
        return grouped

    beside = beside_long(types, stages, settings.features or (), stage_of)
    return Log(
        name=name,
        stages=stages,
        outputs=wide([]).drop(item),
        truth=wide(truth).drop(item) if truth else None,
        items=wide(truth + shown + beside).rename({item: "item"}),
        calls_known=(True,) * len(stages),
        measured=measured,
        has_item=True,
        settings=settings,
    )


def _stages(
    frame: pl.LazyFrame, name: str, stage_of: Any, settings: LogSettings
) -> tuple[str, ...]:
    """The stages as given, which must occur in the log."""
    stages = collect(frame.select(stage_of.unique().sort()), name).to_series()
    found = [stage for stage in stages.to_list() if stage]
    if len(found) < len(stages):
        raise StopwiseError(
            f"{name}: rows with nothing in column {settings.stage_column!r} say of no stage what it"
            " answered; name it in each row, or leave these rows out"
        )
    if settings.stages is None:
        raise StopwiseError(
            'stages: not given; name them in order, cheapest first, with stages=["a", "b", "c"]'
            f" (--stages a,b,c); in column {settings.stage_column!r}: {listed(found)}"
        )
    for stage in settings.stages:
        if stage not in found:
            raise fail("stages", stage, f"one of those in the log: {listed(found)}")
    return settings.stages


def _refuse_repeated(
    ours: pl.LazyFrame, name: str, item: str, stage_of: Any, settings: LogSettings
) -> None:
    polars = need_polars()
    twice = collect(ours.group_by(item, stage_of).len().filter(polars.col("len") > 1).head(1), name)
    if twice.height:
        raise StopwiseError(
            f"{name}: item {twice[item][0]!r} has stage {twice[settings.stage_column][0]!r} more"
            " than once; keep one row for each item and stage"
        )


def _columns(
    types: dict[str, Any],
    stages: tuple[str, ...],
    stage_of: Any,
    measured: bool,
    settings: LogSettings,
) -> list[Any]:
    """For every stage, what its row of an item says."""
    polars = need_polars()
    parts = []
    for at, stage in enumerate(stages):
        here = stage_of == stage
        parts.append(polars.col(settings.output_column).filter(here).first().alias(f"y{at}"))
        parts.append(here.any().alias(f"k{at}"))
        if measured:
            cost, bad = cost_expression(types[settings.cost_column], settings.cost_column)
            parts.append(cost.filter(here).first().alias(f"c{at}"))
            parts.append(bad.filter(here).any().alias(f"bad{at}"))
    if settings.segment is not None:
        parts.append(polars.col(settings.segment).drop_nulls().first().alias("segment"))
    return parts
