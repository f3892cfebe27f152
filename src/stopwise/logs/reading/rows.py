"""The rows of a log one by one, as codes: for replay and audit, which need more than counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import StopwiseError
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.logs.reading.beside import BESIDE, read_confidences, read_features
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
from stopwise.situations.observations import Observations


@dataclass(frozen=True)
class LogRows:
    """The complete rows of a log: those on which every stage was called.

    Attributes:
        codes: one row per item, one column per stage; -1 is *abstained*.
        items: what each item is called.
        truth: the code of each item's truth, -1 where blank; None where there is none.
        left_out: rows on which some stage was not called.
        confidences: how sure each stage said it was, not a number where it did not; None where no
            stage ever did.
        features: of the items, by name.
    """

    name: str
    stages: tuple[str, ...]
    costs: Costs
    labels: tuple[str, ...]
    codes: IntArray
    items: tuple[str, ...]
    truth: IntArray | None
    left_out: int
    confidences: FloatArray | None = None
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def observations(self) -> Observations:
        """The rows with what stands beside them, as everything per item takes them."""
        return Observations(self.labels, self.codes, self.confidences, self.features)

    def where(self, index: NDArray[Any]) -> LogRows:
        """Only these rows, by number or by mask."""
        items = np.asarray(self.items, dtype=object)[index]
        return replace(
            self,
            codes=self.codes[index],
            items=tuple(items.tolist()),
            truth=None if self.truth is None else self.truth[index],
            confidences=None if self.confidences is None else self.confidences[index],
            features={name: column[index] for name, column in self.features.items()},
        )

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
    beside = [n for n in log.items.collect_schema().names() if n.split(" ")[0] in BESIDE]
    table = collect(log.items.select([*columns, *calls, *extra, *beside]), log.name)
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
    confidences = read_confidences(table, log.stages)
    rows = LogRows(
        name=log.name,
        stages=log.stages,
        costs=costs,
        labels=tuple(labels),
        codes=codes[complete],
        items=tuple(np.asarray(names, dtype=object)[complete].tolist()),
        truth=truth,
        left_out=int((~complete).sum()),
        confidences=None if confidences is None else confidences[complete],
        features={name: column[complete] for name, column in read_features(table).items()},
    )
    refuse_no_overlap(rows.stages, rows.evidence())
    return rows
