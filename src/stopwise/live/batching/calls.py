"""Takes the steps of a batch: calls stages on many items, here or awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from stopwise.live.batching.batch import Batch
from stopwise.live.batching.items import each
from stopwise.live.batching.steps import CallBatch, CallEach, Conclude, Listen, Step, Steps
from stopwise.live.calling import background
from stopwise.live.calling.caller import StageCaller, failure
from stopwise.live.calling.errors import NoAnswerError, describe
from stopwise.live.calling.jobs import Attempt
from stopwise.live.calling.outputs import check_outputs
from stopwise.live.calling.result import CallResult
from stopwise.live.calling.tasks import await_all
from stopwise.live.interrupts import SharedNote
from stopwise.live.round import Round
from stopwise.live.running.answer import Answer
from stopwise.live.running.runner import RoundRunner

_T = TypeVar("_T")
_R = TypeVar("_R")
_LOOP_FIX = "some stages are async; use answer_many_async instead"
_OF_ONE_ITEM = (TypeError, ValueError, AttributeError, IndexError, KeyError)


class BatchCalls:
    """Calls stages on the items of batches and ends their rounds.

    Args:
        caller: calls stages.
        runner: ends rounds.
        concurrency: how many calls of a stage that takes one item may be open at once.
    """

    def __init__(self, caller: StageCaller, runner: RoundRunner, concurrency: int) -> None:
        self._caller = caller
        self._runner = runner
        self._concurrency = concurrency

    def run(self, steps: Steps) -> Batch:
        """Take all steps of a batch, in this thread."""
        return _drive(steps, self._take)

    async def run_async(self, steps: Steps) -> Batch:
        """The same, awaited."""
        result: Any = None
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._take_async(step)
                except BaseException as error:  # noqa: BLE001  # raised again by the steps
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        except BaseException:
            steps.close()
            raise

    # ---- one step ----------------------------------------------------------------------------

    def _take(self, step: Step) -> Any:
        caller = self._caller
        if isinstance(step, CallBatch):
            return self._whole(step, *caller.persist(*step))
        if isinstance(step, CallEach):
            if caller.is_async[step.stage]:
                shared = [SharedNote() for _ in step.notes]
                for note, one in zip(step.notes, shared, strict=True):
                    note.begun = one
                return background.run(self._each_async(step._replace(notes=shared)), _LOOP_FIX)
            items = zip(each(step.items), _limits(step), step.notes, strict=True)
            for at, item in enumerate(items):
                step.results[at] = caller.call(step.stage, *item)
            return self._note(step)
        if isinstance(step, Listen):
            return None  # here nobody waits for the loop: the rounds ask by themselves
        if self._runner.learner.reader.comparator.is_async:
            return background.run(self._conclude_async(step), _LOOP_FIX)
        return self._conclude_all(step)

    async def _take_async(self, step: Step) -> Any:
        caller = self._caller
        if isinstance(step, CallBatch):
            tried = await caller.persist_async(*step)
            return self._whole(step, *tried)
        if isinstance(step, CallEach):
            return await self._each_async(step)
        if isinstance(step, Listen):
            for round in step.rounds:
                await self._runner.listen(round)
            return None
        return await self._conclude_async(step)

    def _whole(self, step: CallBatch, tried: Attempt, calls: int) -> CallResult:
        cost = self._caller.cost_of(step.stage, tried, calls, len(step.items))
        if tried.error is not None:
            return failure(tried, cost)
        check_outputs(self._caller.stages[step.stage].name, tried.value)
        return CallResult(tried.value, cost, seconds=tried.seconds)

    async def _each_async(self, step: CallEach) -> None:
        items = zip(each(step.items), _limits(step), step.notes, strict=True)
        await _gather(
            lambda item: self._caller.call_async(step.stage, *item),
            items,
            self._concurrency,
            step.results,
        )
        self._note(step)

    def _note(self, step: CallEach) -> None:
        """Warn where a stage failed on every item, as one does that takes a list of them."""
        errors = [one.error for one in step.results if one is not None]
        if len(errors) > 1 and all(isinstance(error, _OF_ONE_ITEM) for error in errors):
            name = self._caller.stages[step.stage].name
            self._caller.warn_once(
                f"stage {name} failed on all of {len(errors)} items ({describe(errors[0])});"
                " if its function takes a list of items, give batch=True"
            )

    # ---- ending rounds -----------------------------------------------------------------------

    async def _conclude_async(self, step: Conclude) -> list[Answer]:
        if not self._runner.learner.reader.blocks:
            answers = [self._concluded(round) for round in step.rounds]
            kept = await asyncio.to_thread(self._runner.wait_for_store)
            return answers if kept else [replace(one, recorded=False) for one in answers]

        async def conclude(round: Round) -> Answer:
            try:
                return await self._runner.conclude_async(round)
            except NoAnswerError as error:
                return self._runner.unanswered(round, error)

        found: list[Answer | None] = [None] * len(step.rounds)
        await _gather(conclude, step.rounds, self._concurrency, found)
        return [one for one in found if one is not None]

    def _conclude_all(self, step: Conclude) -> list[Answer]:
        """End all rounds, then wait once for the store."""
        answers = [self._concluded(round) for round in step.rounds]
        kept = self._runner.wait_for_store()
        return answers if kept else [replace(one, recorded=False) for one in answers]

    def _concluded(self, round: Round) -> Answer:
        try:
            return self._runner.conclude(round, wait=False)
        except NoAnswerError as error:
            return self._runner.unanswered(round, error)


def _drive(steps: Steps, take: Callable[[Step], Any]) -> Batch:
    try:
        step = next(steps)
        while True:
            try:
                result = take(step)
            except BaseException as error:  # noqa: BLE001  # raised again by the steps
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    except BaseException:
        steps.close()  # an interrupt between two steps: what was called is counted now
        raise


def _limits(step: CallEach) -> Iterable[float | None]:
    return [None] * len(step.items) if step.limits is None else step.limits


async def _gather(
    call: Callable[[_T], Awaitable[_R]], items: Iterable[_T], most: int, results: list[_R | None]
) -> None:
    """Await a call for each item, with a number of them open at once; one error ends all."""
    source = iter(enumerate(items))

    async def work() -> None:
        for at, item in source:
            results[at] = await call(item)

    await await_all(work() for _ in range(min(most, len(results))))
