"""How one batch is answered, step by step, whoever calls the stages and however.

`answer_batch` is a generator: it yields what is to be done (a stage called on items, rounds ended)
and is sent what came of it. So sync and async callers follow one and the same course.

Where nothing is in the way (answers compared as they are, no store, no failures) the rounds of a
batch are columns from end to end. Everywhere else they are `Round` objects, recorded one by one; a
batch turns from the one into the other at the stage where it becomes necessary.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopwise.live.batching.batch import Batch
from stopwise.live.batching.columns import OutputColumns
from stopwise.live.batching.items import take
from stopwise.live.bookkeeping.many_rounds import BegunRounds
from stopwise.live.calling.caller import LEAST_SECONDS, StageCaller
from stopwise.live.calling.result import CallResult, results_of
from stopwise.live.choosing.budgets import BudgetError
from stopwise.live.interrupts import CallNote, Note, calls_begun
from stopwise.live.record import RoundOutcome
from stopwise.live.round import Round
from stopwise.live.running.answer import Answer
from stopwise.live.running.runner import RoundRunner
from stopwise.problem import IntArray


class CallBatch(NamedTuple):
    """Call a stage that takes batches, once; send back one `CallResult`."""

    stage: int
    items: Any
    limit: float | None
    note: Note


class CallEach(NamedTuple):
    """Call a stage on each of these items; put a `CallResult` for each into `results`.

    They are put there one by one, so that an interrupt loses none of them.
    """

    stage: int
    items: Any
    limits: Sequence[float] | None
    results: list[CallResult | None]
    notes: Sequence[Note]


class Conclude(NamedTuple):
    """End these rounds; send back an `Answer` for each."""

    rounds: Sequence[Round]


class Listen(NamedTuple):
    """Ask which of these rounds have an answer, where that takes time; send back nothing."""

    rounds: Sequence[Round]


Step = CallBatch | CallEach | Conclude | Listen
Steps = Generator[Step, Any, Batch]


def answer_batch(
    caller: StageCaller,
    runner: RoundRunner,
    items: Any,
    segments: str | Sequence[str],
    deadline: float | None = None,
    features: Sequence[Mapping[str, Any]] | None = None,
) -> Steps:
    """Answer the items of one batch.

    Args:
        caller: knows the stages.
        runner: opens rounds and says what results mean for them.
        items: the items.
        segments: one for all, or one for each.
        deadline: seconds that calls for one item may take together.
        features: what is known of each item.
    """
    if runner.learner.many.possible and caller.stages[0].batch and deadline is None:
        return (yield from _in_columns(caller, runner, items, segments))
    answers: list[Answer] = []
    while len(answers) < len(items):
        done = len(answers)
        rounds: list[Round] = []
        spent: BudgetError | None = None
        try:
            for at in range(done, len(items)):
                known = None if features is None else features[at]
                rounds.append(runner.learner.begin(_segment(segments, at), known))
        except BudgetError as error:
            spent = error
        if spent is not None and not rounds:
            answers += [Answer(None, None, None, 0.0, 0.0, error=spent)] * (len(items) - done)
            break
        part = take(items, np.arange(done, done + len(rounds)))
        answers += yield from _in_rounds(caller, runner, part, rounds, deadline)
    return Batch.of_answers(answers, runner.learner.stages)


def _segment(segments: str | Sequence[str], at: int) -> str:
    return segments if isinstance(segments, str) else segments[at]


# ---- rounds one by one -----------------------------------------------------------------------


def _in_rounds(
    caller: StageCaller,
    runner: RoundRunner,
    items: Any,
    rounds: Sequence[Round],
    deadline: float | None = None,
    known: _Called | None = None,
) -> Generator[Step, Any, list[Answer]]:
    """Stage after stage, each on the items whose rounds want it; all may begin part way.

    Args:
        known: what came of the next stage, where it has been called already.
    """
    left = None if deadline is None else [deadline] * len(rounds)
    called = known
    try:
        for at, stage in enumerate(caller.stages):
            if at and runner.asks:
                yield Listen([round for round in rounds if len(round.outputs) == at])
            rows = [
                k
                for k, round in enumerate(rounds)
                if len(round.outputs) <= at
                and runner.wants_more(round)
                and len(round.outputs) == at  # it may have jumped
                and (left is None or left[k] > LEAST_SECONDS)
            ]
            if not rows:
                continue
            if called is None or called.stage != at:
                part = take(items, np.asarray(rows))
                limits = None if left is None else [left[k] for k in rows]
                found: list[CallResult | None] = [None] * len(rows)
                if stage.batch:
                    note = CallNote()
                    called = _Called(at, rows, found, [note] * len(rows))
                    whole = yield CallBatch(at, part, min(limits) if limits else None, note)
                    found[:] = results_of(stage, whole, len(rows), clock=caller.clock is not None)
                else:
                    notes = [rounds[k] for k in rows]
                    called = _Called(at, rows, found, notes)
                    yield CallEach(at, part, limits, found, notes)
            results = [one for one in called.results if one is not None]
            _tell(runner, rounds, rows, results)
            if left is not None:
                for k, result in zip(rows, results, strict=True):
                    left[k] -= result.seconds
        answers: list[Answer] = yield Conclude(rounds)
    except BaseException as error:
        if called is not None:
            _tell_called(runner, dict(enumerate(rounds)), called, error)
        for round in rounds:
            runner.give_up(round)
        raise
    return answers


class _Called(NamedTuple):
    """A stage that is being called, for which rounds, and what is known of that."""

    stage: int
    rows: Sequence[int]
    results: Sequence[CallResult | None]
    notes: Sequence[Note]


def _tell_called(
    runner: RoundRunner, rounds: Mapping[int, Round], called: _Called, error: BaseException
) -> None:
    """Tell rounds of a stage that was called before an interrupt; the interrupt goes on."""
    stage, rows, results, notes = called
    for k, result, note in zip(rows, results, notes, strict=True):
        round = rounds.get(k)
        if round is not None and not round.ended and len(round.outputs) == stage:
            calls = calls_begun(note, stage)
            if calls:
                runner.tell_interrupted(round, error, result, calls)


def _tell(
    runner: RoundRunner, rounds: Sequence[Round], rows: Sequence[int], results: Sequence[CallResult]
) -> None:
    """Tell rounds what a stage gave; all are recorded before a failure is raised."""
    failure: Exception | None = None
    for k, result in zip(rows, results, strict=True):
        try:
            runner.tell(rounds[k], result)
        except Exception as error:  # noqa: BLE001
            failure = failure or error
    if failure is not None:
        raise failure


# ---- rounds as columns -----------------------------------------------------------------------


class _Group:
    """Items of one segment, whose rounds were begun together.

    Attributes:
        counted: whether its rounds have been counted.
    """

    __slots__ = ("begun", "counted", "rows")

    def __init__(self, rows: IntArray, begun: BegunRounds) -> None:
        self.rows, self.begun = rows, begun
        self.counted = False


class _WholeCall(NamedTuple):
    """A stage that is called once for many rows; made into lists only where they are needed."""

    stage: int
    rows: IntArray
    results: list[CallResult]
    note: Note

    def by_rows(self) -> _Called:
        size = len(self.rows)
        results: list[CallResult | None] = [*self.results] or [None] * size
        return _Called(self.stage, self.rows.tolist(), results, [self.note] * size)


class _ColumnRounds:
    """The rounds of a batch while they are columns."""

    def __init__(self, runner: RoundRunner, size: int, segments: str | Sequence[str]) -> None:
        self.runner = runner
        self.many = runner.learner.many
        self.depths = np.empty(size, dtype=np.int64)
        self.probabilities = np.empty(size)
        self.groups: list[_Group] = []
        self.columns = OutputColumns(size)
        for segment, rows in _grouped(segments, size):
            begun = self.many.begin(len(rows), segment)
            chances = np.asarray(begun.distribution)[begun.depths]
            if len(rows) == size:
                self.depths, self.probabilities = begun.depths, chances
            else:
                self.depths[rows] = begun.depths
                self.probabilities[rows] = chances
            self.groups.append(_Group(rows, begun))

    def as_rounds(self) -> dict[int, Round]:
        """All that are not counted, as objects, with what stages have said so far."""
        found: dict[int, Round] = {}
        for group in self.groups:
            if not group.counted:
                for place, row in enumerate(group.rows.tolist()):
                    found[row] = self.many.one(group.begun, place)
        for rows, outputs in self.columns.stages:
            values = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
            for row, output in zip(rows.tolist(), values, strict=True):
                if row in found:
                    found[row].observe(output)
        return found

    def end(self) -> Batch:
        """Count them and give their answers."""
        codes = self.columns.codes()
        if len(self.groups) == 1:  # as it is: copies of a whole batch would be most of the work
            costs = self.many.end(self.groups[0].begun, codes, self.groups[0])
        else:
            costs = np.empty(len(self.depths))
            for group in self.groups:
                costs[group.rows] = self.many.end(group.begun, codes[group.rows], group)
        answers = self.columns.answers()

        def single(at: int) -> Answer:
            group = next(one for one in self.groups if _place(one.rows, at) is not None)
            place = _place(group.rows, at)
            assert place is not None
            round = self.many.one(group.begun, place)
            round.__class__ = Round
            value = answers[at]
            value = value.item() if isinstance(value, np.generic) else value
            outcome = RoundOutcome(value, int(self.depths[at]), float(costs[at]))
            return self.runner.answer_of(round, outcome)

        return Batch(answers, self.depths, self.depths, self.probabilities, costs, single)


def _in_columns(
    caller: StageCaller, runner: RoundRunner, items: Any, segments: str | Sequence[str]
) -> Steps:
    batch = _ColumnRounds(runner, len(items), segments)
    call: _WholeCall | None = None
    rounds: dict[int, Round] = {}
    try:
        for at in range(int(batch.depths.max()) + 1):
            if not caller.stages[at].batch:
                break
            rows = np.flatnonzero(batch.depths >= at)
            part = take(items, rows)
            call = _WholeCall(at, rows, [], CallNote())
            whole = yield CallBatch(at, part, None, call.note)
            # A cost of its own, as after retries, is recorded round by round.
            usable = whole.error is None and whole.cost is None
            if not usable or not batch.columns.add(rows, whole.output):
                stage = caller.stages[at]
                call.results[:] = results_of(
                    stage, whole, len(rows), clock=caller.clock is not None
                )
                break
        else:
            return batch.end()
        rounds = batch.as_rounds()
        in_order = [rounds[row] for row in range(len(rounds))]
        known = None if call is None else call.by_rows()
        answers = yield from _in_rounds(caller, runner, items, in_order, None, known)
    except BaseException as error:
        rounds = rounds or batch.as_rounds()
        if call is not None:
            _tell_called(runner, rounds, call.by_rows(), error)
        for round in rounds.values():
            runner.give_up(round)
        raise
    return Batch.of_answers(answers, runner.learner.stages)


def _grouped(segments: str | Sequence[str], size: int) -> list[tuple[str, IntArray]]:
    """The rows of every segment."""
    if isinstance(segments, str):
        return [(segments, np.arange(size))]
    found: dict[str, list[int]] = {}
    for row, segment in enumerate(segments):
        found.setdefault(segment, []).append(row)
    return [(segment, np.array(rows)) for segment, rows in found.items()]


def _place(rows: IntArray, row: int) -> int | None:
    place = int(np.searchsorted(rows, row))
    return place if place < len(rows) and rows[place] == row else None
