"""Logs with one column per stage and one row per item."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError
from stopwise.logs.reading.files import need_polars
from stopwise.logs.reading.labels import no_label
from stopwise.logs.reading.layouts.beside import beside_wide
from stopwise.logs.reading.log import (
    COST_SUFFIX,
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


def open_wide(
    frame: pl.LazyFrame,
    name: str,
    types: dict[str, Any],
    settings: LogSettings,
    show: str | None = None,
) -> Log:
    """A wide log: find its stages, and choose the columns that are to be read."""
    polars = need_polars()
    stages, billed = wide_stages(types, settings)
    _refuse_no_labels(types, stages)
    measured = settings.costs is None
    chosen = [polars.col(stage).alias(f"y{at}") for at, stage in enumerate(stages)]
    for at, stage in enumerate(stages):
        if billed[at]:
            chosen += _billing(types, stage, at, measured)
    if settings.segment is not None:
        chosen.append(polars.col(settings.segment).alias("segment"))
    item = settings.item or ("item" if "item" in types and "item" not in stages else None)
    items = [polars.col(item).alias("item")] if item is not None else []
    items += [polars.col(show).alias("shown")] if show is not None else []
    truth = [polars.col(settings.truth).alias("truth")] if settings.truth is not None else []
    return Log(
        name=name,
        stages=stages,
        outputs=frame.select(chosen),
        truth=frame.select(chosen + truth) if truth else None,
        items=frame.select(
            chosen + items + truth + beside_wide(types, stages, settings.features or ())
        ),
        calls_known=billed,
        measured=measured,
        has_item=item is not None,
        settings=settings,
        calls_by_cost=True,
    )


def wide_stages(
    types: Collection[str], settings: LogSettings
) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The stages as given, or those that have a column of costs; and which of them have one.

    >>> wide_stages(["a", "a:cost", "b", "b:cost"], LogSettings())
    (('a', 'b'), (True, True))
    """
    stages = settings.stages
    if stages is None:
        costly = (c.removesuffix(COST_SUFFIX) for c in types if c.endswith(COST_SUFFIX))
        stages = tuple(stage for stage in costly if stage in types)
        if len(stages) < 2:
            raise StopwiseError(
                "stages: not given; name the columns of the stages in order, cheapest first, with"
                f' stages=["a", "b", "c"] (--stages a,b,c); columns here: {listed(types)}'
            )
    for stage in stages:
        if stage not in types:
            raise no_column("stages", stage, types)
    billed = tuple(stage + COST_SUFFIX in types for stage in stages)
    without = [stage for stage, known in zip(stages, billed, strict=True) if not known]
    if settings.costs is None and without:
        raise no_costs(without, f"columns named '{without[0]}{COST_SUFFIX}'")
    check_count(stages, settings)
    return stages, billed


def _refuse_no_labels(types: dict[str, Any], stages: tuple[str, ...]) -> None:
    polars = need_polars()
    for stage in stages:
        if types[stage].is_nested() or types[stage] in (polars.Binary, polars.Object):
            raise no_label(stage, str(types[stage]))


def _billing(types: dict[str, Any], stage: str, at: int, measured: bool) -> list[Any]:
    """What a column of costs tells: whether the stage was called, and what it cost."""
    cost, bad = cost_expression(types[stage + COST_SUFFIX], stage + COST_SUFFIX)
    columns = [
        (cost > 0).fill_null(False).alias(f"k{at}"),
        cost.is_null().alias(f"unbilled{at}"),
    ]
    if measured:
        columns.append(cost.alias(f"c{at}"))
        if types[stage + COST_SUFFIX] == need_polars().String:
            # Of numbers only an infinite one is bad, which the sum shows.
            columns.append(bad.alias(f"bad{at}"))
    return columns
