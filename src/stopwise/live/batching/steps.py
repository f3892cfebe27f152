"""How one batch is answered, step by step, whoever calls the stages and however.

`answer_batch` is a generator: it yields what is to be done (a stage called on items, rounds ended)
and is sent what came of it. So sync and async callers follow one and the same course.

Where nothing is in the way (answers compared as they are, no store, no failures) the rounds of a
batch are columns from end to end. Everywhere else they are `Round` objects, told one by one; a
batch turns from the one into the other at the stage where it becomes necessary.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopwise.live.batching.batch import Batch
from stopwise.live.batching.columns import OutputColumns
from stopwise.live.batching.items import take
from stopwise.live.calling.answer import Answer
from stopwise.live.calling.caller import LEAST_SECONDS, StageCaller
from stopwise.live.calling.result import CallResult, results_of
from stopwise.live.calling.runner import RoundRunner
from stopwise.live.choosing.budgets import BudgetError
from stopwise.live.round import Round, RoundOutcome
from stopwise.problem import IntArray


class CallBatch(NamedTuple):
    """Call a stage that takes batches, once; send back one `CallResult`."""

    stage: int
    items: Any
    limit: float | None = None


class CallEach(NamedTuple):
    """Call a stage on each of these items; put a `CallResult` for each into `results`.

    They are put there one by one, so that an interrupt loses none of them.
    """

    stage: int
    items: Any
    limits: Sequence[float] | None
    results: list[CallResult | None]


class Conclude(NamedTuple):
    """End these rounds; send back an `Answer` for each."""

    rounds: Sequence[Round]


Step = CallBatch | CallEach | Conclude
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
    if runner.learner.in_columns and caller.stages[0].batch and deadline is None:
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


# ---- rounds told one by one ------------------------------------------------------------------


def _in_rounds(
    caller: StageCaller,
    runner: RoundRunner,
    items: Any,
    rounds: Sequence[Round],
    deadline: float | None = None,
    told: Sequence[CallResult] = (),
) -> Generator[Step, Any, list[Answer]]:
    """Stage after stage, each on the items whose rounds want it; all may begin part way.

    Args:
        told: results of the next stage, where it has been called already.
    """
    left = None if deadline is None else [deadline] * len(rounds)
    try:
        for at, stage in enumerate(caller.stages):
            rows = [
                k
                for k, round in enumerate(rounds)
                if len(round.outputs) == at
                and runner.wants_more(round)
                and (left is None or left[k] > LEAST_SECONDS)
            ]
            if not rows:
                continue
            results = told
            if not results:
                part = take(items, np.asarray(rows))
                limits = None if left is None else [left[k] for k in rows]
                if stage.batch:
                    whole = yield CallBatch(at, part, None if limits is None else min(limits))
                    results = results_of(stage, whole, len(rows), clock=caller.clock)
                else:
                    found: list[CallResult | None] = [None] * len(rows)
                    try:
                        yield CallEach(at, part, limits, found)
                    finally:
                        results = [one for one in found if one is not None]
                        if len(results) < len(rows):  # interrupted: what was called is told
                            _tell_called(runner, rounds, rows, found)
            told = ()
            _tell(runner, rounds, rows, results)
            if left is not None:
                for k, result in zip(rows, results, strict=True):
                    left[k] -= result.seconds
    except BaseException:
        for round in rounds:
            runner.give_up(round)
        raise
    answers: list[Answer] = yield Conclude(rounds)
    return answers


def _tell_called(
    runner: RoundRunner,
    rounds: Sequence[Round],
    rows: Sequence[int],
    found: Sequence[CallResult | None],
) -> None:
    """Tell rounds what an interrupted stage gave until then; the interrupt goes on."""
    for k, result in zip(rows, found, strict=True):
        if result is not None:
            runner.tell_all(rounds[k], [result], raises=False)


def _tell(
    runner: RoundRunner, rounds: Sequence[Round], rows: Sequence[int], results: Sequence[CallResult]
) -> None:
    """Tell rounds what a stage gave; all are told before a failure is raised."""
    failure: Exception | None = None
    for k, result in zip(rows, results, strict=True):
        try:
            runner.tell(rounds[k], result)
        except Exception as error:  # noqa: BLE001
            failure = failure or error
    if failure is not None:
        raise failure


# ---- rounds as columns -----------------------------------------------------------------------


class _Group(NamedTuple):
    """Items of one segment, whose rounds were begun together."""

    segment: str
    rows: IntArray
    first: int
    number: int
    p: Sequence[float]


class _ColumnRounds:
    """The rounds of a batch while they are columns."""

    def __init__(self, runner: RoundRunner, size: int, segments: str | Sequence[str]) -> None:
        self.runner = runner
        self.learner = runner.learner
        self.depths = np.empty(size, dtype=np.int64)
        self.probabilities = np.empty(size)
        self.groups: list[_Group] = []
        self.columns = OutputColumns(size)
        for segment, rows in _grouped(segments, size):
            first, number, depths, p = self.learner.begin_many(len(rows), segment)
            if len(rows) == size:
                self.depths, self.probabilities = depths, np.asarray(p)[depths]
            else:
                self.depths[rows] = depths
                self.probabilities[rows] = np.asarray(p)[depths]
            self.groups.append(_Group(segment, rows, first, number, p))

    def round(self, group: _Group, place: int) -> Round:
        """The round of one item, given by its place in its group."""
        depth = int(self.depths[group.rows[place]])
        return self.learner.round_of(
            group.first + place, group.number + place, group.segment, depth, group.p
        )

    def as_rounds(self) -> list[Round]:
        """All of them as objects, told what stages have said so far."""
        found: dict[int, Round] = {}
        for group in self.groups:
            for place, row in enumerate(group.rows.tolist()):
                found[row] = self.round(group, place)
        for rows, outputs in self.columns.stages:
            values = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
            for row, output in zip(rows.tolist(), values, strict=True):
                found[row].observe(output)
        return [found[row] for row in range(len(found))]

    def end(self) -> Batch:
        """Count them and give their answers."""
        codes = self.columns.codes()
        costs = np.empty(len(self.depths))
        for group in self.groups:
            # All rows are taken as they are: copies of a whole batch would be most of the work.
            rows = group.rows if len(self.groups) > 1 else slice(None)
            costs[rows] = self.learner.end_many(group.segment, self.depths[rows], codes[rows])
        answers = self.columns.answers()

        def single(at: int) -> Answer:
            group = next(one for one in self.groups if _place(one.rows, at) is not None)
            place = _place(group.rows, at)
            assert place is not None
            round = self.round(group, place)
            round.ended = True
            value = answers[at]
            value = value.item() if isinstance(value, np.generic) else value
            outcome = RoundOutcome(value, int(self.depths[at]), float(costs[at]))
            return self.runner.answer_of(round, outcome)

        return Batch(answers, self.depths, self.depths, self.probabilities, costs, single)


def _in_columns(
    caller: StageCaller, runner: RoundRunner, items: Any, segments: str | Sequence[str]
) -> Steps:
    batch = _ColumnRounds(runner, len(items), segments)
    told: Sequence[CallResult] = ()
    complete = False
    try:
        for at in range(int(batch.depths.max()) + 1):
            rows = np.flatnonzero(batch.depths >= at)
            if not caller.stages[at].batch:
                break
            whole = yield CallBatch(at, take(items, rows))
            # A cost of its own, as after retries, is told to rounds one by one.
            usable = whole.error is None and whole.cost is None
            if not usable or not batch.columns.add(rows, whole.output):
                told = results_of(caller.stages[at], whole, len(rows), clock=caller.clock)
                break
        else:
            complete = True
    except BaseException:
        for round in batch.as_rounds():
            runner.give_up(round)
        raise
    if complete:
        return batch.end()
    answers = yield from _in_rounds(caller, runner, items, batch.as_rounds(), None, told)
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
