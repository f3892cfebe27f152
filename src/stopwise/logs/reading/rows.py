"""The rows of a log one by one, as codes: for replay and audit, which need more than counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stopwise.abstentions import NO_ANSWER, UNKNOWN, answering_stages
from stopwise.checks import StopwiseError, nearest
from stopwise.costs import Calls, Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.logs.formatting import printable
from stopwise.logs.reading.costs import CostBounds, costs_of
from stopwise.logs.reading.counting import (
    NOT_CALLED,
    UNTIL,
    count,
    counted_of,
    encode,
    tell_blanks_apart,
)
from stopwise.logs.reading.files import collect
from stopwise.logs.reading.labels import (
    fold_labels,
    plain_label,
    refuse_foreign_truth,
    truth_notes,
)
from stopwise.logs.reading.layouts.beside import BESIDE, read_confidences, read_features
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.reading.live import completed
from stopwise.logs.reading.log import Log, baseline_of
from stopwise.logs.reading.pairs import refuse_no_overlap
from stopwise.logs.settings import LogSettings
from stopwise.problem import IntArray
from stopwise.situations.observations import MOST_STAGES, Observations
from stopwise.situations.references import REFERENCES

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class LogRows:
    """The complete rows of a log: those on which every stage was called.

    Attributes:
        codes: outputs, one row per item, one column per stage; -1 is *abstained*.
        answers: the answer when stopping at each stage, with what an abstention means applied; -1
            is no answer at all, which no truth ever equals, and -2 one that does not count.
        spent: what stopping at each stage costs on each item: as billed, or as given. Called alone,
            without the stages before it.
        items: what each item is called.
        shown: text to show beside each item; None where no column was named.
        truth: the code of each item's truth, -1 where blank; None where there is none.
        left_out: rows on which some stage was not called.
        confidences: how sure each stage said it was, not a number where it did not; None where no
            stage ever did.
        features: of the items, by name.
        own: what each stage costs by itself, on average.
        bills: what each stage costs by itself on each item: as billed, or as given.
        calls: how stages are called; alone, `costs` and `spent` are each one's own.
        baseline: the stage that savings are stated against.
        notes: what should be said of the truth's labels.
    """

    name: str
    stages: tuple[str, ...]
    costs: Costs
    labels: tuple[str, ...]
    codes: IntArray
    answers: IntArray
    spent: FloatArray
    items: tuple[str, ...]
    shown: tuple[str, ...] | None
    truth: IntArray | None
    left_out: int
    confidences: FloatArray | None = None
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    own: tuple[float, ...] = ()
    bills: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    calls: Calls | None = None
    baseline: int = -1
    notes: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether each stage costs what it costs by itself."""
        return self.calls == "alone"

    @property
    def billed(self) -> bool:
        """Whether what a stage costs differs from item to item."""
        return bool((self.bills != np.asarray(self.own)).any())

    def answered_at(self, stage: int) -> IntArray:
        """Which stage answers each item when stopping at one: another where it goes on."""
        answered = np.full(len(self.codes), stage, dtype=np.int64)
        goes_on = (self.codes[:, stage] < 0) & (self.answers[:, stage] >= 0)
        for deeper in range(len(self.stages) - 1, stage, -1):
            answered[goes_on & (self.codes[:, deeper] >= 0)] = deeper
        return answered

    def observations(self) -> Observations:
        """The rows with what stands beside them, as everything per item takes them."""
        if len(self.stages) > MOST_STAGES:
            raise StopwiseError(
                f"stages: {len(self.stages)} stages, but rules that decide per item and promises of"
                f" agreement take at most {MOST_STAGES}; leave some out"
            )
        return Observations(self.labels, self.codes, self.confidences, self.features)

    def where(self, index: NDArray[Any]) -> LogRows:
        """Only these rows, by number or by mask."""

        def kept(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(np.asarray(values, dtype=object)[index].tolist())

        return replace(
            self,
            codes=self.codes[index],
            answers=self.answers[index],
            spent=self.spent[index],
            bills=self.bills[index],
            items=kept(self.items),
            shown=None if self.shown is None else kept(self.shown),
            truth=None if self.truth is None else self.truth[index],
            confidences=None if self.confidences is None else self.confidences[index],
            features={name: column[index] for name, column in self.features.items()},
        )

    def held_to(self, reference: str | int) -> str | int:
        """What a per-item rule holds answers against: a stage by name or number, or as asked.

        The stage that is trusted unless somebody says otherwise is the one named last, wherever its
        cost puts it.
        """
        if isinstance(reference, str) and reference in self.stages:
            return self.stages.index(reference)
        if isinstance(reference, str) and reference not in REFERENCES:
            names = (*REFERENCES, *self.stages)
            raise StopwiseError(
                f"reference: unknown stage {reference!r}; {nearest(reference, names)}"
            )
        last = self.baseline in (-1, len(self.stages) - 1)
        return reference if last or reference not in ("auto", "last") else self.baseline

    def evidence(self) -> Evidence:
        """The pair counters of the answers."""
        return Evidence.from_codes(self.counted_answers())

    def counted_answers(self) -> IntArray:
        """Answers for counting agreement: that there is none is a code of its own."""
        return np.where(self.answers == NO_ANSWER, len(self.labels) + 1, self.answers)


def read_rows(log: object, settings: LogSettings, show: str | None = None) -> LogRows:
    """Read a log row by row; rows that stopped early are left out.

    Args:
        show: a column to show to people beside the items.

    >>> import polars
    >>> frame = polars.DataFrame({"a": ["x", "y", "x"], "b": ["x", "x", None]})
    >>> rows = read_rows(frame, LogSettings(stages=("a", "b"), costs=(1, 2)))
    >>> rows.codes.tolist(), rows.left_out, rows.spent.tolist()
    ([[0, 0], [1, 0]], 1, [[1.0, 3.0], [1.0, 3.0]])
    """
    settings = completed(log, settings)
    opened = open_log(log, settings, show, by_row=True)
    costs, bounds = costs_of(count(opened), settings)
    rows = _read(opened, costs, bounds, show)
    refuse_no_overlap(rows.stages, rows.evidence())
    return rows


def _table(log: Log, show: str | None) -> pl.DataFrame:
    """Of every row what is asked of it: outputs, calls, bills, truth, name, what is known of it."""
    there = log.items.collect_schema().names()
    columns = [f"y{at}" for at in range(len(log.stages))]
    columns += [f"k{at}" for at, known in enumerate(log.calls_known) if known]
    columns += [f"c{at}" for at in range(len(log.stages))] if log.measured else []
    wanted = {"truth": log.truth is not None, "item": log.has_item, "shown": show is not None}
    columns += [name for name, is_wanted in wanted.items() if is_wanted]
    columns += [UNTIL] if UNTIL in there else []
    columns += [name for name in there if name.split(" ")[0] in BESIDE]
    return collect(log.items.select(columns), log.name)


def _read(log: Log, costs: Costs, bounds: CostBounds, show: str | None) -> LogRows:
    table = _table(log, show)
    stages = range(len(log.stages))
    labels: dict[str, int] = {}
    raw = np.stack([encode(table[f"y{at}"].to_list(), labels) for at in stages], axis=1)
    codes = tell_blanks_apart(log, table, raw)
    complete = (codes != NOT_CALLED).all(axis=1)
    counted = counted_of(table, len(log.stages))
    if counted is not None:
        complete &= counted.all(axis=1)
    if not complete.any():
        raise StopwiseError(
            f"{log.name}: no row has every stage called; this needs rows on which all were"
            " (shadow mode)"
        )
    # Labels of the truth that no stage gives come after those of the stages.
    known = tuple(labels)
    truth: IntArray | None = None
    notes: tuple[str, ...] = ()
    if log.truth is not None:
        truth, notes = _truth(log, table, labels)
        truth = truth[complete]
    names = (
        [str(value) for value in table["item"].to_list()]
        if log.has_item
        else [str(at + 1) for at in range(len(codes))]
    )
    who = answering_stages(codes, log.settings.no_answer)
    answers = np.where(who >= 0, np.take_along_axis(codes, np.maximum(who, 0), axis=1), who)
    own = np.broadcast_to(np.asarray(bounds.own), codes.shape)
    if log.measured:
        own = np.stack([table[f"c{at}"].fill_null(0.0).to_numpy() for at in stages], axis=1)
    shown = [str(value or "") for value in table["shown"].to_list()] if show is not None else None
    rows = LogRows(
        name=log.name,
        stages=tuple(map(printable, log.stages)),
        costs=costs,
        labels=known if truth is None else tuple(labels),
        codes=codes,
        answers=answers,
        spent=_spent(own, who, goes_on=log.settings.no_answer == "go on", alone=bounds.alone),
        items=tuple(names),
        shown=None if shown is None else tuple(shown),
        truth=None,
        left_out=int((~complete).sum()),
        confidences=read_confidences(table, log.stages),
        features=read_features(table),
        own=bounds.own,
        bills=own,
        calls=bounds.calls,
        baseline=baseline_of(log.stages, log.settings),
        notes=notes,
    )
    return replace(rows.where(complete), truth=truth)


def _truth(
    log: Log, table: pl.DataFrame, labels: dict[str, int]
) -> tuple[IntArray, tuple[str, ...]]:
    """The truth in codes of the stages' labels; case and spaces do not matter, as in `score`."""
    known = len(labels)
    written = [plain_label(value) for value in table["truth"].to_list()]
    renamed, unknown = fold_labels([label for label in written if label is not None], labels)
    truth = encode([renamed.get(label, label) if label else None for label in written], labels)
    refuse_foreign_truth(log.settings.truth, truth, known)
    return truth, tuple(truth_notes(renamed, unknown).values())


def _spent(own: FloatArray, who: IntArray, *, goes_on: bool, alone: bool = False) -> FloatArray:
    """What stopping at each stage costs, item by item: all stages up to the one that answers.

    >>> _spent(np.array([[1.0, 2.0, 4.0]]), np.array([[1, 1, -1]]), goes_on=True)
    array([[3., 3., 7.]])
    >>> _spent(np.array([[1.0, 2.0, 4.0]]), np.array([[1, 1, -1]]), goes_on=True, alone=True)
    array([[3., 2., 4.]])
    """
    last = own.shape[1] - 1
    stages = np.broadcast_to(np.arange(last + 1), who.shape)
    nobody = last if goes_on else stages
    reached = np.where(who == NO_ANSWER, nobody, np.where(who == UNKNOWN, stages, who))
    sums = np.cumsum(own, axis=1)
    before = sums - own if alone else 0.0
    return np.asarray(np.take_along_axis(sums, reached, axis=1) - before)
