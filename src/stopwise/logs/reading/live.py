"""Rounds that live learners have kept, as a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail
from stopwise.evidence import Evidence
from stopwise.logs.reading.counting import UNTIL
from stopwise.logs.reading.files import KINDS, need_polars
from stopwise.logs.reading.log import Log, confidence_column, no_column
from stopwise.logs.settings import LogSettings

if TYPE_CHECKING:
    from stopwise.live.record import RoundRecord
    from stopwise.live.stores.stored import Stored

_COUNTS_ONLY = (
    "{}: only counts were kept, no rounds; this needs rounds (a RoundLog, or a store with"
    " keep_rounds=True)"
)


def find_stored(log: object) -> Stored | None:
    """What a live learner wrote, if that is what a log is."""
    if not isinstance(log, str | Path):
        return None
    name = str(log).lower().removesuffix(".gz")
    kind = KINDS.get(Path(name).suffix)
    # Tables are left to those who read tables; of JSON lines the first line tells.
    if kind in ("CSV", "Parquet"):
        return None
    # The live room takes longer to load than most logs to count.
    from stopwise.live.stores.stored import open_stored

    return open_stored(log)


@dataclass(frozen=True)
class LiveCounts:
    """Counts that were kept without rounds.

    Attributes:
        name: of the store.
        evidence: of all segments together.
        settings: with stages and costs as the learner had them, where the user gave no others.
    """

    name: str
    evidence: Evidence
    settings: LogSettings


def live_counts(log: object, settings: LogSettings) -> LiveCounts | None:
    """The counts of a store or snapshot without rounds; None for every other log."""
    stored = find_stored(log)
    if stored is None or stored.read_rounds is not None:
        return None
    total = Evidence(len(stored.stages))
    for part in stored.read_evidence().values():
        total.merge(part)
    return LiveCounts(stored.name, total, _completed(settings, stored))


def open_live(stored: Stored, settings: LogSettings) -> Log:
    """The rounds of a store as a wide log, with stages and costs as the learner had them.

    What a learner compared and found equal is equal here: the later answer is written as the
    earlier one. Where answers were not kept, or are free text, the first answer of a round is "1",
    another is "2", and so on. Rounds that a per-item rule cut short count as they do live.
    """
    _refuse_other_settings(stored, settings)
    polars = need_polars()
    measured = stored.measured and settings.costs is None
    completed = _completed(settings, stored)
    rounds = _read_rounds(stored, bills=measured)
    columns: dict[str, Any] = {}
    outputs = rounds.outputs(settings.max_labels)
    for at in range(len(stored.stages)):
        columns[f"y{at}"] = polars.Series([row[at] for row in outputs], dtype=polars.String)
        columns[f"k{at}"] = polars.Series([row[at] for row in rounds.calls], dtype=polars.Boolean)
        if measured:
            billed = [row[at] for row in rounds.bills]
            columns[f"c{at}"] = polars.Series(billed, dtype=polars.Float64)
            columns[f"bad{at}"] = polars.Series([False] * len(outputs), dtype=polars.Boolean)
    if stored.abstentions != "leave out":
        # As its learner counts: what was called only because a stage abstained says too much.
        columns[UNTIL] = polars.Series(rounds.until, dtype=polars.Int64)
    if settings.segment is not None:
        columns["segment"] = polars.Series(rounds.segments, dtype=polars.String)
    frame = polars.DataFrame(columns)
    beside: dict[str, Any] = {"item": polars.Series(rounds.items, dtype=polars.String)}
    for at, column in enumerate(zip(*rounds.sure, strict=True)):
        if any(value is not None for value in column):
            beside[confidence_column(at)] = polars.Series(column, dtype=polars.Float64)
    with_items = frame.with_columns(**beside)
    return Log(
        name=stored.name,
        stages=stored.stages,
        outputs=frame.lazy(),
        truth=None,
        items=with_items.lazy(),
        calls_known=(True,) * len(stored.stages),
        measured=measured,
        has_item=True,
        settings=completed,
    )


def _refuse_other_settings(stored: Stored, settings: LogSettings) -> None:
    """Refuse what a store cannot give: rounds, other stages than its own, further columns."""
    if stored.read_rounds is None:
        raise StopwiseError(_COUNTS_ONLY.format(stored.name))
    if settings.stages is not None and settings.stages != stored.stages:
        raise StopwiseError(
            f"stages: {stored.name} has its own, in this order: {', '.join(stored.stages)}; leave"
            " them out"
        )
    for field in ("segment", "truth", "item"):
        column = getattr(settings, field)
        if column not in (None, field) or (column is not None and field == "truth"):
            raise no_column(field, column, ("segment", "item"))
    if settings.features:
        raise fail(
            "features", list(settings.features),
            f"a table that has them: {stored.name} is of live rounds",
        )  # fmt: skip


@dataclass(frozen=True)
class _Rounds:
    """What is read of rounds, each a list with one entry for each round.

    Attributes:
        named: outputs as they were kept; None as soon as those of one round were not.
        numbered: outputs as numbers of the answers that a round met.
        calls: whether each stage was called.
        bills: what each stage cost, where that is asked for.
        until: how many stages were drawn to be called.
        sure: how sure each stage said it is.
    """

    named: list[list[str | None]] | None
    numbered: list[list[str | None]]
    calls: list[list[bool]]
    bills: list[list[float | None]]
    until: list[int]
    segments: list[str]
    items: list[str]
    sure: list[list[float | None]]

    def outputs(self, max_labels: int) -> list[list[str | None]]:
        """The outputs as they were kept, unless they were not, or are free text."""
        distinct = {text for row in self.named or () for text in row}
        if self.named is None or len(distinct) > max_labels:
            return self.numbered
        return self.named


def _read_rounds(stored: Stored, *, bills: bool) -> _Rounds:
    """Read the rounds of a store, once."""
    assert stored.read_rounds is not None
    stage_count = len(stored.stages)
    kept = True
    named: list[list[str | None]] = []
    found = _Rounds(named, [], [], [], [], [], [], [])
    for record in stored.read_rounds():
        found.numbered.append(_numbers(record, stage_count))
        kept = kept and record.outputs is not None
        if kept:
            named.append(_names(record, stage_count))
        found.calls.append([_was_called(record, at) for at in range(stage_count)])
        found.segments.append(record.segment)
        found.items.append(f"{record.writer}/{record.sequence}")
        found.sure.append(_padded(record.confidences, stage_count))
        found.until.append(record.depth + 1)
        if bills:
            found.bills.append(_bills(record, stored.costs))
    return found if kept else replace(found, named=None)


def completed(log: object, settings: LogSettings) -> LogSettings:
    """The settings, with what a live learner's store says where the user did not."""
    stored = find_stored(log)
    return settings if stored is None else _completed(settings, stored)


def _completed(settings: LogSettings, stored: Stored) -> LogSettings:
    costs = None if stored.measured and stored.read_rounds is not None else stored.costs
    return replace(
        settings,
        stages=settings.stages or stored.stages,
        costs=settings.costs if settings.costs is not None else costs,
        mistake_cost=settings.mistake_cost or stored.mistake_cost,
        abstentions=settings.abstentions or stored.abstentions,
    )


def _classes(record: RoundRecord, stage_count: int) -> list[int | None]:
    """For each stage that counts, the first stage with an answer that agrees; None elsewhere."""
    from stopwise.live.record import agreed

    found: list[int | None] = []
    for at in range(stage_count):
        if not record.answered >> at & 1:
            found.append(None)
            continue
        same = (before for before in range(at) if found[before] == before)
        found.append(next((one for one in same if agreed(record, one, at)), at))
    return found


def _numbers(record: RoundRecord, stage_count: int) -> list[str | None]:
    """The answers of a round by number: "1" is the first, "2" the first that differs, ...

    >>> from stopwise.live.record import RoundRecord
    >>> _numbers(RoundRecord(1, 0, 1, "", 2, 1.0, 2, 3, 0b111, 0b110), 4)
    ['1', '1', '2', None]
    """
    classes = _classes(record, stage_count)
    order = {one: str(at + 1) for at, one in enumerate(dict.fromkeys(filter(_said, classes)))}
    return [None if one is None else order[one] for one in classes]


def _said(one: int | None) -> bool:
    return one is not None


def _names(record: RoundRecord, stage_count: int) -> list[str | None]:
    """The answers of a round as text; those that agree are written as the first of them."""
    outputs = record.outputs or ()
    found: list[str | None] = []
    for at, one in enumerate(_classes(record, stage_count)):
        if one is None:
            found.append(None)
        elif one < at:
            found.append(found[one])
        else:
            output = outputs[at]
            text = output if isinstance(output, str) and output else json.dumps(output)
            # Told apart where the comparator did so, though they are written alike.
            found.append(text if text not in found else f"{text} ({at + 1})")
    return found


def _was_called(record: RoundRecord, stage: int) -> bool:
    """Whether a stage was called; of rounds that went on because of their outputs, its answer's.

    The others are no fair sample of all items, and are not counted live either. Taken for stages
    that abstained, they would be.
    """
    if record.item is not None and not record.item.full and record.advised is None:
        return stage == record.stage
    return stage < record.called and not record.skipped >> stage & 1


def _bills(record: RoundRecord, known: tuple[float, ...]) -> list[float | None]:
    return [
        (known[at] if cost is None else cost) if _was_called(record, at) else None
        for at, cost in enumerate(_padded(record.costs, len(known)))
    ]


def _padded(values: Sequence[float | None] | None, stage_count: int) -> list[float | None]:
    """What is known of each stage; nothing of those that told nothing."""
    known = list(values or ())
    return known + [None] * (stage_count - len(known))
