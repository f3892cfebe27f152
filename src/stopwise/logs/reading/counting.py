"""One group-by over output patterns, and what follows from the patterns: evidence, abstentions.

The query groups raw outputs, the segment and the twentieth of the log a row lies in; everything
later works on the groups, of which there are few, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stopwise.abstentions import NO_ANSWER, Abstentions, answers
from stopwise.checks import StopwiseError, fail
from stopwise.evidence import Evidence
from stopwise.logs.formatting import printable
from stopwise.logs.reading.bills import (
    Bills,
    bill_query,
    check_bills,
    every_bill_written,
    read_bills,
)
from stopwise.logs.reading.files import collect, need_polars
from stopwise.logs.reading.labels import plain_label, refuse_disjoint_labels, too_many_labels
from stopwise.logs.reading.log import Log
from stopwise.logs.reading.short_rows import refuse_short_rows
from stopwise.problem import IntArray

if TYPE_CHECKING:
    import polars as pl

ABSTAINED_CODE = -1
NOT_CALLED = -2
BLOCKS = 20
"""Parts of equal length, in the order of the rows, in which change over time is looked for."""

UNTIL = "until"
"""The column, of logs of live rounds, that says for how many of the first stages a row counts."""

_MOST_SEGMENTS = 200
_PEEK = 100_000
_PACKED = 40
"""Calls that fit into one number beside the part of the log."""


@dataclass(frozen=True)
class PatternCounts:
    """How often each pattern of outputs occurs.

    Attributes:
        labels: written form of every output; a code is an index into it.
        codes: one row per pattern, one column per stage; -1 is *abstained*, -2 *not called*.
        number: how many rows of the log have the pattern.
        block: which of the `blocks` parts of the log they lie in.
        segment: index into `segments`, or -1 for a blank one.
        billed: costs of the rows with each pattern, where they are measured in the log.
        counted: for which stages to stop at a pattern counts; see
            `stopwise.abstentions.answering_stages`. None where for all.
    """

    stages: tuple[str, ...]
    labels: tuple[str, ...]
    codes: IntArray
    number: IntArray
    block: IntArray
    blocks: int
    segment: IntArray
    segments: tuple[str, ...]
    billed: Bills | None
    counted: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        """Rows of the log, or items of a long one."""
        return int(self.number.sum())

    def where(self, mask: NDArray[np.bool_]) -> PatternCounts:
        """Only these patterns."""
        return replace(
            self,
            codes=self.codes[mask],
            number=self.number[mask],
            block=self.block[mask],
            segment=self.segment[mask],
            billed=None if self.billed is None else self.billed.where(mask),
            counted=None if self.counted is None else self.counted[mask],
        )

    def in_order(self, order: Sequence[int]) -> PatternCounts:
        """The same counts with the stages in another order."""
        at = list(order)
        bills = self.billed
        return replace(
            self,
            stages=tuple(self.stages[stage] for stage in at),
            codes=self.codes[:, at],
            billed=None
            if bills is None
            else Bills(
                bills.number[:, at], bills.total[:, at], tuple(bills.spreads[s] for s in at)
            ),
            counted=None if self.counted is None else self.counted[:, at],
        )

    def evidence(self, abstentions: Abstentions = "leave out") -> Evidence:
        """The pair counters of these rows: of outputs, or of answers where stages go on."""
        return Evidence.from_codes(self.answers(abstentions), self.number)

    def answers(self, abstentions: Abstentions) -> IntArray:
        """The answer when stopping at each stage; below 0 where it is not known or does not count.

        That there is no answer at all is a code of its own (the number of labels), which no truth
        ever has.
        """
        if abstentions == "leave out" and self.counted is None:
            return self.codes
        found = answers(self.codes, abstentions, self.counted)
        if abstentions == "leave out":  # that a stage abstained is still to be seen
            return np.where((found < 0) & (self.codes == ABSTAINED_CODE), ABSTAINED_CODE, found)
        return np.where(found == NO_ANSWER, len(self.labels), found)

    def by_stage(self) -> dict[str, list[int]]:
        """How often each stage answered, abstained and was not called."""
        return {
            "answered": [int(n) for n in self.number @ (self.codes >= 0)],
            "abstained": [int(n) for n in self.number @ (self.codes == ABSTAINED_CODE)],
            "not_called": [int(n) for n in self.number @ (self.codes == NOT_CALLED)],
        }


def count(log: Log, *, compare_labels: bool = True) -> PatternCounts:
    """Read a log once and count its patterns.

    Args:
        compare_labels: refuse stages without a label in common (a small part of a log may have
            such, a whole log should not).

    >>> import polars
    >>> from stopwise.logs.reading.layouts.opening import open_log
    >>> from stopwise.logs.settings import LogSettings
    >>> frame = polars.DataFrame({"fast": ["a", "b", None], "slow": ["a", "a", "a"]})
    >>> counts = count(open_log(frame, LogSettings(stages=("fast", "slow"), costs=(1, 5))))
    >>> counts.rows, counts.evidence().seen[0, 1], counts.evidence().disagreed[0, 1]
    (3, np.int64(2), np.int64(1))
    """
    rows = row_count(log)
    if rows == 0:
        raise StopwiseError(f"{log.name}: there are no rows; need one for each item")
    columns = [f"y{at}" for at in range(len(log.stages))]
    _refuse_free_text(log, columns)
    # Groups that a database counted have no order.
    blocks = 1 if log.weighted else min(BLOCKS, rows)
    table = _taken_apart(log, collect(pattern_query(log, rows, blocks), log.name))
    return _encode(log, table, blocks, compare_labels)


def row_count(log: Log) -> int:
    """Rows of the log, or items; of a CSV file every value is read once.

    A row with too many values is only noticed when all columns are read: an unquoted comma in a
    column that nobody asked for would move the outputs of the stages. So would a missing value.
    """
    polars = need_polars()
    if log.weighted:
        return int(collect(log.outputs.select(polars.col("n").sum()), log.name).item() or 0)
    if log.raw is not None and log.files is not None:
        # No name of a column can be that of the count: it has a line break.
        rows = polars.len().alias("rows\n")
        read = collect(log.raw.select(rows, polars.all().null_count()), log.name)
        columns = read.columns[1:]
        if int(read[columns[-1]][0]):
            for file in log.files.paths:
                name = log.name if len(log.files.paths) == 1 else file
                refuse_short_rows(file, log.files.separator, len(columns), name)
        if not log.long:
            return int(read["rows\n"][0])
    return int(collect(log.outputs.select(polars.len()), log.name).item())


def pattern_query(log: Log, rows: int, blocks: int) -> pl.LazyFrame:
    """The one group-by: rows by outputs, calls, segment and part of the log.

    Calls and the part of the log are one number (`when`): one key instead of several is faster.
    """
    polars = need_polars()
    names = log.outputs.collect_schema().names()
    keys = [name for name in names if name[0] == "y" or name in ("segment", UNTIL)]
    sums = [(polars.col("n").sum() if log.weighted else polars.len()).alias("number")]
    if log.measured:
        sums += bill_query(log)
    length = -(-rows // blocks)
    when = (polars.col("row") // length).cast(polars.UInt64)
    calls = _calls(log)
    for name in calls[:_PACKED]:
        when = when * 2 + polars.col(name).cast(polars.UInt64)
    indexed = log.outputs.with_row_index("row")
    return indexed.group_by([*keys, *calls[_PACKED:], when.alias("when")]).agg(sums)


def _calls(log: Log) -> list[str]:
    return [f"k{at}" for at, known in enumerate(log.calls_known) if known]


def _taken_apart(log: Log, table: pl.DataFrame) -> pl.DataFrame:
    """The groups with calls and the part of the log in columns of their own again."""
    polars = need_polars()
    when = polars.col("when")
    columns = []
    for name in reversed(_calls(log)[:_PACKED]):
        columns.append((when % 2 == 1).alias(name))
        when = when // 2
    return table.with_columns(*columns, when.alias("block"))


def _encode(log: Log, table: pl.DataFrame, blocks: int, compare_labels: bool) -> PatternCounts:
    labels: dict[str, int] = {}
    columns = []
    for at, stage in enumerate(log.stages):
        codes = encode(table[f"y{at}"].to_list(), labels)
        columns.append(codes)
        distinct = len(np.unique(codes[codes >= 0]))
        if distinct > log.settings.max_labels:
            raise too_many_labels(stage, distinct, log.settings.max_labels)
    raw, labels = _in_order(np.stack(columns, axis=1), labels)
    if compare_labels:
        refuse_disjoint_labels(log.stages, raw, list(labels))
    segments: dict[str, int] = {}
    segment = np.full(table.height, -1, dtype=np.int64)
    if "segment" in table.columns:
        segment = encode(table["segment"].to_list(), segments)
        segment, segments = _in_order(segment, segments)
        if len(segments) > _MOST_SEGMENTS:
            raise fail(
                "segment", f"{len(segments)} different values",
                f"a column with at most {_MOST_SEGMENTS}",
            )  # fmt: skip
    codes_by_kind = tell_blanks_apart(log, table, raw)
    bills = None
    if log.measured:
        check_bills(log, table)
        bills = read_bills(log, table, codes_by_kind != NOT_CALLED, int(table["number"].sum()))
    # Names go to terminals from here on: control characters are shown, not run.
    return PatternCounts(
        stages=tuple(map(printable, log.stages)),
        labels=tuple(map(printable, labels)),
        codes=codes_by_kind,
        number=table["number"].to_numpy().astype(np.int64),
        block=table["block"].to_numpy().astype(np.int64),
        blocks=blocks,
        segment=segment,
        segments=tuple(map(printable, segments)),
        billed=bills,
        counted=counted_of(table, len(log.stages)),
    )


def counted_of(table: pl.DataFrame, stages: int) -> NDArray[np.bool_] | None:
    """For which stages to stop at each row counts; None where for all."""
    if UNTIL not in table.columns:
        return None
    return np.asarray(np.arange(stages) < table[UNTIL].to_numpy()[:, None])


def encode(values: Iterable[object], labels: dict[str, int]) -> IntArray:
    """Codes of outputs, -1 for blank ones; new labels are added to `labels`.

    >>> encode(["b", None, "a", "b "], {"a": 0})
    array([ 1, -1,  0,  1])
    """
    known: dict[object, int] = {}
    codes = []
    for value in values:
        # True == 1 == 1.0 for a dict, but not for a reader; NaN is never equal to itself.
        key = (type(value), value)
        code = known.get(key)
        if code is None:
            label = plain_label(value)
            code = -1 if label is None else labels.setdefault(label, len(labels))
            known[key] = code
        codes.append(code)
    return np.array(codes, dtype=np.int64)


def _in_order(codes: IntArray, labels: dict[str, int]) -> tuple[IntArray, dict[str, int]]:
    """Codes in the order of the labels: groups come in no order, results should not depend on it.

    >>> _in_order(np.array([[0, -1, 1]]), {"b": 0, "a": 1})
    (array([[ 1, -1,  0]]), {'a': 0, 'b': 1})
    """
    ordered = {label: code for code, label in enumerate(sorted(labels))}
    renamed = np.array([ordered[label] for label in labels] + [-1], dtype=np.int64)
    return renamed[codes], ordered


def tell_blanks_apart(log: Log, table: pl.DataFrame, raw: IntArray) -> IntArray:
    """A blank is an abstention if the stage was called; a call is known, or seen from what follows.

    Where the log does not say which stages were called, a blank before an answer is an abstention,
    and blanks at the end are what the settings say (by default, a cascade that stopped before).
    """
    codes = raw.copy()
    every_blank = log.settings.trailing_blanks == "abstained"
    for at in range(len(log.stages)):
        blank = raw[:, at] < 0
        follows = np.asarray((raw[:, at + 1 :] >= 0).any(axis=1))
        if log.calls_known[at]:
            called = table[f"k{at}"].to_numpy().astype(bool)
            if log.calls_by_cost and every_blank:
                called = np.ones(len(raw), dtype=bool)
            elif (~called & ~blank).any() or _may_be_free(log, at, blank & ~called & follows):
                # It is free on some items, so a bill of 0 does not tell whether it was called.
                called = called | follows | (at == 0)
        elif every_blank:
            called = np.ones(len(raw), dtype=bool)
        else:
            called = follows
        codes[blank & ~called, at] = NOT_CALLED
    return codes


def _may_be_free(log: Log, at: int, free_before_answers: NDArray[np.bool_]) -> bool:
    """Whether a stage without a bill above 0 was called where a later stage answers.

    In a cascade it was, if every one of its bills is written down: it is billed for answers only.
    Where bills are missing, or each stage is called by itself, it was not.
    """
    cascade = log.calls_by_cost and log.settings.calls != "alone"
    return cascade and bool(free_before_answers.any()) and every_bill_written(log, at)


# ---- refusals -------------------------------------------------------------------------------


def _refuse_free_text(log: Log, columns: list[str]) -> None:
    """Look at the first rows before grouping millions of different texts."""
    polars = need_polars()
    peek = collect(
        log.outputs.head(_PEEK).select(polars.col(name).n_unique() for name in columns), log.name
    )
    for name, stage in zip(columns, log.stages, strict=True):
        if int(peek[name][0]) > log.settings.max_labels + 1:  # a blank counts as one here
            raise too_many_labels(stage, int(peek[name][0]), log.settings.max_labels)
