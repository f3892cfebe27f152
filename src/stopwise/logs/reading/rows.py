"""The rows of a log one by one, as codes: for replay and audit, which need more than counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.logs.reading.costs import costs_of
from stopwise.logs.reading.counting import (
    NOT_CALLED,
    count,
    encode,
    tell_blanks_apart,
)
from stopwise.logs.reading.files import collect
from stopwise.logs.reading.layouts import open_log
from stopwise.logs.reading.log import Log
from stopwise.logs.reading.pairs import refuse_no_overlap
from stopwise.logs.settings import LogSettings
from stopwise.problem import IntArray


@dataclass(frozen=True)
class LogRows:
    """The complete rows of a log: those on which every stage was called.

    Attributes:
        codes: one row per item, one column per stage; -1 is *abstained*.
        items: what each item is called.
        truth: the code of each item's truth, -1 where blank; None where there is none.
        left_out: rows on which some stage was not called.
    """

    name: str
    stages: tuple[str, ...]
    costs: Costs
    labels: tuple[str, ...]
    codes: IntArray
    items: tuple[str, ...]
    truth: IntArray | None
    left_out: int

    def evidence(self) -> Evidence:
        """The pair counters of these rows."""
        return Evidence.from_codes(self.codes)


def read_rows(log: object, settings: LogSettings) -> LogRows:
    """Read a log row by row; rows that stopped early are left out.

    >>> import polars
    >>> frame = polars.DataFrame({"a": ["x", "y", "x"], "b": ["x", "x", None]})
    >>> rows = read_rows(frame, LogSettings(stages=("a", "b"), costs=(1, 2)))
    >>> rows.codes.tolist(), rows.left_out
    ([[0, 0], [1, 0]], 1)
    """
    opened = open_log(log, settings)
    costs, _ = costs_of(count(opened), settings)
    return _read(opened, costs)


def _read(log: Log, costs: Costs) -> LogRows:
    columns = [f"y{at}" for at in range(len(log.stages))]
    calls = [f"k{at}" for at, known in enumerate(log.calls_known) if known]
    extra = (["truth"] if log.truth is not None else []) + (["item"] if log.has_item else [])
    table = collect(log.items.select([*columns, *calls, *extra]), log.name)
    labels: dict[str, int] = {}
    raw = np.stack([encode(table[name].to_list(), labels) for name in columns], axis=1)
    codes = tell_blanks_apart(log, table, raw)
    complete = (codes != NOT_CALLED).all(axis=1)
    if not complete.any():
        raise StopwiseError(
            f"{log.name}: no row has every stage called; this needs rows on which all were"
            " (shadow mode)"
        )
    truth = encode(table["truth"].to_list(), labels)[complete] if "truth" in extra else None
    names = (
        [str(value) for value in table["item"].to_list()]
        if log.has_item
        else [str(at + 1) for at in range(len(codes))]
    )
    rows = LogRows(
        name=log.name,
        stages=log.stages,
        costs=costs,
        labels=tuple(labels),
        codes=codes[complete],
        items=tuple(np.asarray(names, dtype=object)[complete].tolist()),
        truth=truth,
        left_out=int((~complete).sum()),
    )
    refuse_no_overlap(rows.stages, rows.evidence())
    return rows
