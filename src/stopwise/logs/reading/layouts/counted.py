"""Logs that a database counts: patterns of outputs and their sums, not rows."""

from __future__ import annotations

from dataclasses import replace

from stopwise.logs.reading.databases.grouping import Grouping, named_columns
from stopwise.logs.reading.databases.query import Query
from stopwise.logs.reading.layouts.wide import wide_stages
from stopwise.logs.reading.log import Log, no_column
from stopwise.logs.settings import LogSettings


def open_counted(query: Query, columns: dict[str, object], settings: LogSettings) -> Log:
    """A query with one column per stage: the database groups it at once, and adds up the costs.

    Args:
        columns: of the query, with the driver's word for their types.
    """
    stages, billed = wide_stages(columns, settings)
    for field, column in named_columns(settings).items():
        # SQLite takes an unknown name in quotes for a text, which would be everybody's segment.
        if column not in columns:
            raise no_column(field, column, columns)
    if settings.item is None and "item" in columns and "item" not in stages:
        settings = replace(settings, item="item")
    measured = settings.costs is None
    grouping = Grouping(query, stages, billed, measured, columns, settings)
    groups = grouping.groups()
    return Log(
        name=query.name,
        stages=stages,
        outputs=groups.drop("truth") if settings.truth is not None else groups,
        truth=groups if settings.truth is not None else None,
        items=groups,
        calls_known=billed,
        measured=measured,
        has_item=settings.item is not None,
        settings=settings,
        calls_by_cost=True,
        counted=grouping,
    )
