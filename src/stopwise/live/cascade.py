"""A cascade: real stages, called one after another, and not deeper than it pays."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never, Unpack, get_args

from stopwise.checks import (
    StopwiseError,
    fail,
    known_names,
    names_settings_of,
    one_of,
    positive_number,
    whole_number,
)
from stopwise.live.batching.answers import Answers, AsyncAnswers
from stopwise.live.batching.batch import Batch
from stopwise.live.batching.calls import BatchCalls
from stopwise.live.batching.items import Segments, each
from stopwise.live.batching.progress import Progress
from stopwise.live.batching.steps import Steps, answer_batch
from stopwise.live.calling import background
from stopwise.live.calling.caller import LEAST_SECONDS, StageCaller
from stopwise.live.calling.clocks import Clock
from stopwise.live.calling.result import Together
from stopwise.live.calling.stage import Stage
from stopwise.live.interrupts import CallNote, SharedNote
from stopwise.live.items.known import FeatureFunction, FeaturesOf, check_function
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.learner import Learner
from stopwise.live.round import Round
from stopwise.live.running.answer import Answer
from stopwise.live.running.cascade_keywords import CascadeKeywords, CostSource
from stopwise.live.running.hints import hint_at_costs
from stopwise.live.running.runner import OnFailure, RoundRunner
from stopwise.policies.base import Policy
from stopwise.policies.registry import DEFAULT_POLICY

_CLOCKS: Mapping[str, Clock] = {"clock": "work", "elapsed": "elapsed"}


@names_settings_of("answer_many", "answer_many_async", "load")
class Cascade:
    """Stages from cheap to expensive, and a learner that decides how many of them an item needs.

    Args:
        stages: `Stage` objects, cheapest first.
        policy: a policy, or the name of a registered one.
        mistake_cost: what one wrong answer costs, in the units of the stages' costs.
        seed: of the depths that are drawn.
        costs: "known" uses the stages' costs; "reported" running means of what stages report with
            `Reported`; "clock" running means of the seconds that calls work, "elapsed" of all the
            seconds until their result is there. To "clock", waiting for a free thread or for a turn
            of the event loop does not count (see `stopwise.live.calling.clocks`).
        on_failure: when a stage raises or runs out of time: "stop" with the last good answer,
            "skip" to the next stage (beyond the depth if need be), or "raise". Whichever it is,
            what was seen is counted.
        at_once: call the stages of an item at the same time; the depth is known beforehand, so that
            no call is wasted unless a stage fails. The answer is the same as one after another.
        workers: how many plain stages may work at the same time in threads.
        deadline: seconds that calls for one item may take together. When they are over, the item is
            answered with what there is.
        features: a function from an item to what is known of it before its first call, by name:
            numbers and texts (and vectors, where a rule takes them). For policies that decide per
            item.

    Further settings are those of `Learner`: comparator, combine, store, half_life, mode, ...

    >>> cascade = Cascade(
    ...     [Stage("length", lambda text: len(text) > 3, 0), Stage("exact", lambda text: True, 1)],
    ...     "fixed:stage=0", mistake_cost=10,
    ... )
    >>> cascade.answer("hello").answer
    True
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        policy: str | Policy = DEFAULT_POLICY,
        *,
        mistake_cost: float = 1.0,
        seed: int = 0,
        costs: CostSource = "known",
        on_failure: OnFailure = "stop",
        at_once: bool = False,
        workers: int | None = None,
        deadline: float | None = None,
        features: FeatureFunction | None = None,
        **settings: Unpack[LearnerKeywords],
    ) -> None:
        self.stages = _checked_stages(stages)
        one_of("on_failure", on_failure, get_args(OnFailure))
        one_of("costs", costs, get_args(CostSource))
        if "measured" in settings:
            raise StopwiseError("measured: say costs='reported', 'clock' or 'elapsed' to a cascade")
        known_names("Cascade", settings, ("policy", *CascadeKeywords.__optional_keys__), "setting")
        self.learner = Learner(
            {stage.name: stage.cost for stage in self.stages},
            policy,
            mistake_cost=mistake_cost,
            seed=seed,
            measured=costs != "known",
            **settings,
        )
        self._features = check_function(features)
        if features is not None and not self.learner.per_item:
            raise fail("features", features, "a policy that decides per item to use them")
        if workers is not None:
            workers = whole_number("workers", workers, least=1)
        self.at_once = at_once
        self.deadline = None if deadline is None else positive_number("deadline", deadline)
        self._caller = StageCaller(
            self.stages,
            clock=_CLOCKS.get(costs),
            workers=workers,
            as_labels=self.learner.reader.comparator.label == "exact",
        )
        self._runner = RoundRunner(self.learner, on_failure)
        self._shares_budget = self.learner.shares_budget
        if costs == "known":
            hint_at_costs(self.learner)

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.stages)
        learner = self.learner
        return f"Cascade({names}; {learner.policy.label()!r}, {learner.rounds} rounds)"

    @property
    def on_failure(self) -> OnFailure:
        """What happens when a stage fails."""
        return self._runner.on_failure

    # ---- one item ----------------------------------------------------------------------------

    def answer(
        self,
        item: Any,
        *,
        segment: str = "",
        deadline: float | None = None,
        features: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> Answer:
        """Answer one item, calling only the stages that are needed.

        Args:
            item: what the stages are called with.
            segment: whose evidence the item uses and adds to.
            deadline: seconds for this item, in the place of the cascade's.
            features: what is known of it, in the place of what the cascade's function says.

        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> cascade = Cascade(stages, mistake_cost=10)
        >>> answer = cascade.answer("a1")
        >>> answer.answer, answer.stage, answer.cost
        (True, 'long', 1.0)
        """
        if unknown:
            known_names("answer", unknown, _OF_AN_ITEM, "setting")
        caller, runner = self._caller, self._runner
        if caller.any_async:
            background.refuse_in_loop("some stages are async; await answer_async instead")
        no_deadline = deadline is None and self.deadline is None
        until = None if no_deadline else self._until(deadline)
        if features is None and self._features is not None:
            features = self._features(item)
        round = self.learner.begin(segment, features)
        together: Together | None = None
        try:
            if self.at_once and round.depth and not (round.per_item or round.skipped):
                together = Together(round.depth + 1, SharedNote)
                caller.call_together(item, together, _left(until))
                runner.tell_all(round, together.results)
                together = None
            while runner.wants_more(round):
                left = None if until is None else _left(until)
                if left is not None and left <= LEAST_SECONDS and round.called:
                    break
                runner.tell(round, caller.call(len(round.outputs), item, left, round))
        except BaseException as error:
            _give_up(runner, round, error, together)
            raise
        return runner.conclude(round)

    async def answer_async(
        self,
        item: Any,
        *,
        segment: str = "",
        deadline: float | None = None,
        features: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> Answer:
        """The same, awaiting async stages and running plain ones in threads.

        >>> import asyncio
        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> cascade = Cascade(stages, mistake_cost=10)
        >>> asyncio.run(cascade.answer_async("a1")).stage
        'long'
        """
        if unknown:
            known_names("answer_async", unknown, _OF_AN_ITEM, "setting")
        caller, runner = self._caller, self._runner
        no_deadline = deadline is None and self.deadline is None
        until = None if no_deadline else self._until(deadline)
        if features is None and self._features is not None:
            features = self._features(item)
        if self._shares_budget:
            round = await self.learner.begin_async(segment, features)
        else:
            round = self.learner.begin(segment, features)
        together: Together | None = None
        try:
            if self.at_once and round.depth and not (round.per_item or round.skipped):
                together = Together(round.depth + 1, CallNote)
                await caller.call_together_async(item, together, _left(until))
                runner.tell_all(round, together.results)
                together = None
            while True:
                if runner.asks:
                    await runner.listen(round)
                if not runner.wants_more(round):
                    break
                left = None if until is None else _left(until)
                if left is not None and left <= LEAST_SECONDS and round.called:
                    break
                runner.tell(round, await caller.call_async(len(round.outputs), item, left, round))
        except BaseException as error:
            _give_up(runner, round, error, together)
            raise
        return await runner.conclude_async(round)

    def _until(self, deadline: float | None) -> float | None:
        """When an item's time is over."""
        seconds = self.deadline if deadline is None else positive_number("deadline", deadline)
        return None if seconds is None else time.monotonic() + seconds

    # ---- many items --------------------------------------------------------------------------

    def answer_many(
        self,
        items: Iterable[Any],
        *,
        batch_size: int | None = None,
        segment: Segments = "",
        progress: Progress = False,
        concurrency: int = 32,
        features: FeatureFunction | Sequence[Mapping[str, Any]] | None = None,
    ) -> Answers:
        """Answer many items; each stage is called once on the whole sub-batch that needs it.

        Depths of a batch are drawn together, from what was known before it. Iterate over the result
        to have answers as batches are done, or `collect()` them all. Every item comes back: one
        without an answer has `error` set.

        Args:
            items: a list, an array, a frame (sliced by rows), or any iterable.
            batch_size: items in a batch. None begins small and doubles up to 4096, so that few
                items are spent before there is any evidence.
            segment: whose evidence the items use and add to: one for all, a sequence with one for
                each, or a function of an item.
            progress: True shows a bar on a terminal; or a function of (done, total or None).
            concurrency: how many calls of an async stage may be open at once.
            features: what is known of the items: a sequence with one entry for each, or a function
                of an item, in the place of the cascade's.

        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> cascade = Cascade(stages, mistake_cost=10)
        >>> cascade.answer_many(["1", "a1", "?"]).collect().answers
        [True, True, False]
        """
        calls = self._calls(concurrency)
        known = FeaturesOf(self._features, features)

        def run(part: Any, segments: Any) -> Batch:
            return calls.run(self._steps(part, segments, known))

        return Answers(run, items, batch_size, segment, progress)

    def answer_many_async(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        batch_size: int | None = None,
        segment: Segments = "",
        progress: Progress = False,
        concurrency: int = 32,
        features: FeatureFunction | Sequence[Mapping[str, Any]] | None = None,
    ) -> AsyncAnswers:
        """The same where an event loop runs: use `async for`, or `await ....collect()`.

        Takes what `answer_many` takes; items may also come from an asynchronous iterable. Plain
        stages work in threads, `concurrency` counts their calls too.

        >>> import asyncio
        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> cascade = Cascade(stages, mistake_cost=10)
        >>> async def main():
        ...     return (await cascade.answer_many_async(["1", "?"]).collect()).answers
        >>> asyncio.run(main())
        [True, False]
        """
        calls = self._calls(concurrency)
        known = FeaturesOf(self._features, features)

        async def run(part: Any, segments: Any) -> Batch:
            return await calls.run_async(self._steps(part, segments, known))

        return AsyncAnswers(run, items, batch_size, segment, progress)

    def _steps(self, part: Any, segments: Any, known: FeaturesOf) -> Steps:
        features = known.of(each(part)) if known.any else None
        return answer_batch(self._caller, self._runner, part, segments, self.deadline, features)

    def _calls(self, concurrency: int) -> BatchCalls:
        concurrency = whole_number("concurrency", concurrency, least=1)
        return BatchCalls(self._caller, self._runner, concurrency)

    # ---- the learner's memory ----------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a snapshot of the learner; see `Learner.save`.

        >>> import tempfile
        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> Cascade(stages, mistake_cost=10).save(tempfile.mkdtemp() + "/kept.json")
        """
        self.learner.save(path)

    def load(self, path: str | Path, *, fork: int | None = None) -> None:
        """Go on from a snapshot; see `Learner.load`.

        >>> import tempfile
        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> cascade, path = Cascade(stages, mistake_cost=10), tempfile.mkdtemp() + "/kept.json"
        >>> answer = cascade.answer("a1")
        >>> cascade.save(path)
        >>> again = Cascade(stages, mistake_cost=10)
        >>> again.load(path)
        >>> again.learner.rounds
        1
        """
        self.learner.load(path, fork=fork)

    def close(self) -> None:
        """Let go of threads and of the store.

        >>> stages = [Stage("short", str.isdigit, 0), Stage("long", str.isalnum, 1)]
        >>> with Cascade(stages, mistake_cost=10) as cascade:   # closed at the end
        ...     answer = cascade.answer("a1")
        >>> cascade.close()                                     # and may be again
        """
        self._caller.close()
        self.learner.close()

    def __enter__(self) -> Cascade:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


# Of `answer`, which is called too often to be wrapped. `Never`: checkers of types refuse others.
_OF_AN_ITEM = ("item", "segment", "deadline", "features")


def _give_up(
    runner: RoundRunner, round: Round, error: BaseException, together: Together | None
) -> None:
    if together is None:
        runner.give_up(round, error)
    else:
        runner.give_up_together(round, error, together)


def _left(until: float | None) -> float | None:
    return None if until is None else until - time.monotonic()


def _checked_stages(given: Iterable[Stage]) -> tuple[Stage, ...]:
    if not isinstance(given, Iterable):
        raise fail("stages", given, "a list of Stage objects, cheapest first")
    stages = tuple(given)
    for at, stage in enumerate(stages):
        if not isinstance(stage, Stage):
            raise fail(f"stages[{at}]", stage, "a Stage, or a function decorated with @stage")
    names = [stage.name for stage in stages]
    if len(set(names)) != len(names):
        raise fail("stages", names, "a different name for each stage")
    return stages
