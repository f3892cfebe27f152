"""A log of any layout as one wide lazy frame: y0, y1, ... and, where known, costs and calls.

Nothing is read here beyond the header (and, in a long log, which stages there are). The truth stays
in a frame of its own: what counts and learns is handed `Log.outputs`, which does not have it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stopwise.checks import StopwiseError
from stopwise.logs.reading.databases.grouping import named_columns
from stopwise.logs.reading.databases.query import Query, columns_of, rows_of
from stopwise.logs.reading.files import column_types, scan
from stopwise.logs.reading.layouts.counted import open_counted
from stopwise.logs.reading.layouts.long import open_long
from stopwise.logs.reading.layouts.wide import open_wide
from stopwise.logs.reading.live import find_stored, open_live
from stopwise.logs.reading.log import Log, no_column
from stopwise.logs.settings import LogSettings


def open_log(
    log: object, settings: LogSettings, show: str | None = None, *, by_row: bool = False
) -> Log:
    """Find the stages of a log and make it wide.

    Args:
        show: a column to show beside the items, for people who label them.
        by_row: whether the rows are needed one by one: a query is then fetched, not counted.

    >>> import polars
    >>> frame = polars.DataFrame({"fast": ["a", "b"], "slow": ["a", "a"]})
    >>> open_log(frame, LogSettings(stages=("fast", "slow"), costs=(1, 5))).stages
    ('fast', 'slow')
    """
    stored = find_stored(log)
    if stored is not None:
        if show is not None:
            raise no_column("show", show, ())
        return open_live(stored, settings)
    if isinstance(log, Query):
        used = _used(settings, show)
        columns = columns_of(log, used)
        if not by_row and not _is_long(settings, columns):
            return open_counted(log, columns, settings)
        frame, name, files = rows_of(log, used), log.name, None
    else:
        frame, name, files = scan(log)
    types = column_types(frame, name)
    if not types:
        raise StopwiseError(f"{name}: there are no columns; need a header and a row for each item")
    for field in ("segment", "truth", "item"):
        column = getattr(settings, field)
        if column is not None and column not in types:
            raise no_column(field, column, types)
    if show is not None and show not in types:
        raise no_column("show", show, types)
    long = _is_long(settings, types)
    if long:
        opened = open_long(frame, name, types, settings, show)
    else:
        opened = open_wide(frame, name, types, settings, show)
    return replace(opened, raw=frame if files else None, files=files, long=long)


def _used(settings: LogSettings, show: str | None) -> set[str]:
    """Every column of a query that may be read, but for those that stand beside them."""
    named = {
        *(settings.stages or ()),
        *(settings.features or ()),
        *named_columns(settings).values(),
    }
    return named | {"item", settings.stage_column, settings.output_column, show or ""}


def _is_long(settings: LogSettings, types: Collection[str]) -> bool:
    if settings.layout != "auto":
        return settings.layout == "long"
    has_columns = settings.stage_column in types and settings.output_column in types
    return has_columns and not all(stage in types for stage in settings.stages or ("",))
