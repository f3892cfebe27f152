"""Warnings about what is written in a log: answers that are none, repeated items, odd columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stopwise.logs.formatting import counted, printable
from stopwise.logs.formatting import share as percent
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.judging.warnings.log_warning import LogWarning
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.reading.files import collect, column_types, need_polars
from stopwise.logs.reading.log import COST_SUFFIX, TRUTHS, Log

_NO_ANSWER = re.compile(
    r"[<\[(]?(none|null|nil|#?n/?a|n\.a\.|nan|unknown|undefined|no (answer|response|output))[>\])]?"
    r"|-+|\?+|#(value!|ref!|name\?|num!|div/0!)"
    r"|(error|timeout|timed out|exception|traceback|refused?|(?-i:[A-Z]\w*(Error|Exception)))"
    r"([\W_].*)?",
    re.IGNORECASE | re.DOTALL,
)
_RENAMED = re.compile(r"(.+)_duplicated_\d+")
LEAST_MISSING = 0.01
"""Fewer answers without a bill than this share of them would hardly change what a stage costs."""

_MOST_ROWS = 2_000_000
"""Items are not looked at one by one in logs larger than this."""


def suspicious_answers(counts: PatternCounts) -> Iterator[LogWarning]:
    """Answers that look as if there was none: "None", "NA", "ERROR: timeout"."""
    odd = [at for at, label in enumerate(counts.labels) if _NO_ANSWER.fullmatch(label)]
    for at, stage in enumerate(counts.stages):
        number = counts.number[np.isin(counts.codes[:, at], odd)].sum()
        if number:
            said = [counts.labels[code] for code in odd if (counts.codes[:, at] == code).any()]
            shown = ", ".join(repr(printable(label[:40])) for label in said[:3])
            yield LogWarning(
                "suspicious_answers",
                f"{stage} says {shown} on {counted(number, 'item')}"
                f" ({percent(number / counts.rows)}), which counts as an answer like any other;"
                " leave such cells blank if it is none.",
                at,
            )


def falling_costs(verdict: Verdict) -> Iterator[LogWarning]:
    """A stage that is cheaper than the one before it: the order, or a unit, may be wrong."""
    own, names = verdict.cost_bounds.own, verdict.stages
    for at in range(1, len(names)):
        if own[at] < own[at - 1]:
            yield LogWarning(
                "costs_fall",
                f"{names[at]} costs less than {names[at - 1]} before it: are the stages in order,"
                " cheapest first, and each cost that of the stage alone?",
                at,
            )
            return


def missing_bills(counts: PatternCounts) -> Iterator[LogWarning]:
    """A stage that answered, and no bill says at what cost: its mean rests on the other items."""
    if counts.billed is None:
        return
    for at, stage in enumerate(counts.stages):
        answered = counts.codes[:, at] >= 0
        answers = float(counts.number[answered].sum())
        missing = round(answers - float(counts.billed.number[answered, at].sum()))
        if missing > LEAST_MISSING * answers:
            yield LogWarning(
                "missing_bills",
                f"{printable(stage)} has no cost on {missing:,} of the {answers:,.0f} items that it"
                " answered: they are taken to cost what the others do on average. Write 0 where it"
                " was free.",
                at,
            )


def repeated_columns(log: Log) -> Iterator[LogWarning]:
    """A column that stands twice in the header: only the first is read."""
    if log.raw is None:
        return
    names = list(column_types(log.raw, log.name))
    twice = [
        match[1] for name in names if (match := _RENAMED.fullmatch(name)) and match[1] in names
    ]
    used = [name for name in dict.fromkeys(twice) if name in _read_columns(log)]
    if used:
        yield LogWarning(
            "repeated_columns",
            f"the header has {', '.join(map(printable, used))} more than once; the first is read.",
        )


def _read_columns(log: Log) -> set[str | None]:
    """Names of columns that something is read from."""
    chosen = log.settings
    named = {chosen.truth, chosen.segment, chosen.item or "item", *(chosen.features or ())}
    if log.long:
        return {*named, chosen.stage_column, chosen.output_column, chosen.cost_column}
    return {*named, *log.stages, *(stage + COST_SUFFIX for stage in log.stages)}


def repeated_items(log: Log, rows: int) -> Iterator[LogWarning]:
    """Items that stand in more than one row are not independent; two truths of one conflict."""
    if not log.has_item or rows > _MOST_ROWS:
        return
    again, conflicts = _repeats(log) if log.counted is None else log.counted.repeats()
    if again:
        yield LogWarning(
            "repeated_items",
            f"{counted(again, 'row repeats', 'rows repeat')} an item ({percent(again / rows)}): a"
            " hundred rows of one item are not a hundred items, so what is called"
            " certain may be less so.",
        )
    if conflicts:
        yield LogWarning(
            "conflicting_truths",
            f"{counted(conflicts, 'item has', 'items have')} more than one truth in the log.",
        )


def _repeats(log: Log) -> tuple[int, int]:
    """Rows that repeat an item, and items with more than one truth."""
    polars = need_polars()
    names = log.items.collect_schema().names()
    parts = [polars.len().alias("n")]
    if TRUTHS in names:
        parts.append(polars.col(TRUTHS).max())
    elif "truth" in names:
        parts.append(polars.col("truth").drop_nulls().n_unique().alias(TRUTHS))
    table = collect(log.items.group_by("item").agg(parts), log.name)
    conflicts = int((table[TRUTHS] > 1).sum()) if TRUTHS in table.columns else 0
    return int((table["n"] - 1).sum()), conflicts
