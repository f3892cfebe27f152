"""One batch: depths drawn together, each stage called once on the items that still need it.

Where nothing is in the way (answers compared as they are, no store, no failures) the rounds of a
batch are columns of arrays from end to end. Everywhere else they are `Round` objects, told one by
one; a batch turns from the one into the other at the stage where it becomes necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.evidence import ABSTAINED
from stopwise.live.batching.answers import Batch
from stopwise.live.calling.answer import Answer
from stopwise.live.calling.caller import StageCaller
from stopwise.live.calling.result import CallResult
from stopwise.live.calling.runner import RoundRunner
from stopwise.live.choosing.budgets import BudgetError
from stopwise.live.round import Round, RoundOutcome
from stopwise.problem import IntArray

_NUMBERS, _TEXT = "iufb", "U"


def run_batch(
    caller: StageCaller, runner: RoundRunner, items: Any, *, segment: str, concurrency: int
) -> Batch:
    """Answer the items of one batch."""
    learner = runner.learner
    if learner.in_columns and caller.stages[0].batch:
        return _run_columns(caller, runner, items, segment, concurrency)
    rounds: list[Round] = []
    try:
        for _ in range(len(items)):
            rounds.append(learner.begin(segment))
    except BudgetError:
        if not rounds:
            raise
        # What can still be paid is answered; the next batch will say that the budget is spent.
        items = items[: len(rounds)]
    return _run_rounds(caller, runner, items, rounds, concurrency)


def _run_columns(
    caller: StageCaller, runner: RoundRunner, items: Any, segment: str, concurrency: int
) -> Batch:
    learner = runner.learner
    first, number, depths, p = learner.begin_many(len(items), segment)
    where: list[IntArray] = []
    columns: list[Any] = []
    deepest = int(depths.max())
    for at in range(deepest + 1):
        rows = np.flatnonzero(depths >= at)
        part = _take(items, rows)
        whole = caller.call_batch(at, part) if caller.stages[at].batch else None
        column = None
        if whole is not None and whole.error is None:
            column = _column(whole.output, len(rows), columns)
        if column is None:
            rounds = [
                learner.round_of(first + k, number + k, segment, int(depth), p)
                for k, depth in enumerate(depths.tolist())
            ]
            for earlier, column in zip(where, columns, strict=True):
                for k, output in zip(earlier.tolist(), column.tolist(), strict=True):
                    rounds[k].observe(output)
            told = () if whole is None else caller.for_each(at, whole, len(rows))
            return _run_rounds(caller, runner, items, rounds, concurrency, told)
        where.append(rows)
        columns.append(column)
    answers = columns[0].astype(np.result_type(*columns)) if deepest else columns[0]
    for rows, column in zip(where[1:], columns[1:], strict=True):
        answers[rows] = column
    costs = learner.end_many(segment, depths, where, columns)
    shares = np.asarray(p)[depths]

    def single(at: int) -> Answer:
        round = learner.round_of(first + at, number + at, segment, int(depths[at]), p)
        round.ended = True
        outcome = RoundOutcome(answers[at], int(depths[at]), float(costs[at]))
        return runner.answer_of(round, outcome)

    return Batch(answers, depths, depths, shares, costs, single)


def _column(outputs: Any, size: int, others: Sequence[Any]) -> Any:
    """Outputs as an array that compares as a whole with the other stages', or None."""
    if outputs is None:
        return None
    column = outputs if isinstance(outputs, np.ndarray) else None
    if column is None:
        if not isinstance(outputs, (list, tuple)) or not outputs:
            return None
        kind = type(outputs[0])
        if kind not in (int, bool, str) or any(type(output) is not kind for output in outputs):
            return None
        column = np.asarray(outputs)
    if column.shape != (size,) or column.dtype.kind not in _NUMBERS + _TEXT:
        return None
    if column.dtype.kind == "f" and np.isnan(column).any():
        return None
    if others and (others[0].dtype.kind in _TEXT) != (column.dtype.kind in _TEXT):
        return None
    return column


def _run_rounds(
    caller: StageCaller,
    runner: RoundRunner,
    items: Any,
    rounds: list[Round],
    concurrency: int,
    told: Sequence[CallResult] = (),
) -> Batch:
    """Stage after stage, each on the items whose rounds want it; all may begin part way.

    Args:
        told: results of the next stage, where it has been called already.
    """
    try:
        for at in range(len(caller.stages)):
            rows = [
                k
                for k, round in enumerate(rounds)
                if len(round.outputs) == at and runner.wants_more(round)
            ]
            if not rows:
                continue
            part = _take(items, np.asarray(rows))
            results = told or caller.call_each(at, part, concurrency)
            told = ()
            failure: Exception | None = None
            for k, result in zip(rows, results, strict=True):
                try:
                    runner.tell(rounds[k], result)
                except Exception as error:  # noqa: BLE001  # all are told before one is raised
                    failure = error
            if failure is not None:
                raise failure
    except BaseException:
        for round in rounds:
            runner.give_up(round)
        raise
    given: list[Answer | Exception] = []
    for round in rounds:
        try:
            given.append(runner.conclude(round))
        except StopwiseError as error:
            given.append(error)

    def single(at: int) -> Answer:
        found = given[at]
        if isinstance(found, Exception):
            raise found
        return found

    answers = [ABSTAINED if isinstance(one, Exception) else one.answer for one in given]
    return Batch(
        answers,
        np.array([-1 if round.stage is None else round.stage for round in rounds], dtype=np.int64),
        np.array(
            [round.depth if round.drawn_depth is None else round.drawn_depth for round in rounds],
            dtype=np.int64,
        ),
        np.array([round.probability for round in rounds], dtype=np.float64),
        np.array([round.cost for round in rounds], dtype=np.float64),
        single,
    )


def _take(items: Any, rows: IntArray) -> Any:
    if len(rows) == len(items):
        return items
    if hasattr(items, "iloc"):
        return items.iloc[rows]
    if isinstance(items, np.ndarray):
        return items[rows]
    return [items[k] for k in rows.tolist()]
