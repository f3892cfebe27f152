"""A cascade: real stages, called one after another, and not deeper than it pays."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Unpack, get_args

from stopwise.checks import StopwiseError, fail
from stopwise.live.answers import Answers, Progress
from stopwise.live.calls import call_in_thread, call_within
from stopwise.live.learner import Learner
from stopwise.live.options import LearnerOptions, refuse_unknown
from stopwise.live.round import Advice, Round, RoundOutcome
from stopwise.live.stage import Reported, Stage
from stopwise.policies.base import Policy

OnFailure = Literal["stop", "skip", "raise"]
CostSource = Literal["known", "reported", "clock"]


class NoAnswerError(StopwiseError):
    """Stages failed and none answered. The last failure is its cause."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a cascade gives for one item.

    Attributes:
        answer: None where every stage that was called abstained.
        stage: the name of the stage that gave it; `depth` is the stage it was to stop at.
        probability: of that depth, exactly.
        cost: of all calls for this item.
        failures: (stage, error) of every stage that raised or ran out of time.
        advice: in the mode "advise", what enforcing would have done.
        recorded: False where the round could not be written to the store (a warning says why).
    """

    answer: Any
    stage: str | None
    depth: str
    probability: float
    cost: float
    failures: tuple[tuple[str, object], ...] = ()
    advice: Advice | None = None
    recorded: bool = True


class _Result(NamedTuple):
    output: Any
    cost: float | None
    error: Exception | None = None
    confidence: float | None = None


class Cascade:
    """Stages from cheap to dear, and a learner that decides how many of them an item needs.

    Args:
        stages: `Stage` objects, cheapest first.
        policy: a policy, or the name of a registered one.
        mistake_cost: what one wrong answer costs, in the units of the stages' costs.
        seed: of the depths that are drawn.
        costs: "known" uses the stages' costs; "reported" running means of what stages report with
            `Reported`; "clock" running means of their seconds.
        on_failure: when a stage raises or runs out of time: "stop" with the last good answer,
            "skip" to the next stage (beyond the depth if need be), or "raise". Whichever it is,
            what was seen is counted.
        at_once: call the stages of an item at the same time; the depth is known beforehand, so that
            no call is wasted unless a stage fails.
        workers: threads for stages called at once.
        settings: all else that `Learner` takes: comparator, combine, store, half_life, mode, ...

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
        policy: str | Policy = "uss-ts",
        *,
        costs: CostSource = "known",
        on_failure: OnFailure = "stop",
        at_once: bool = False,
        workers: int | None = None,
        **settings: Unpack[LearnerOptions],
    ) -> None:
        self.stages = tuple(stages)
        for at, stage in enumerate(self.stages):
            if not isinstance(stage, Stage):
                raise fail(f"stages[{at}]", stage, "a Stage, or a function decorated with @stage")
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise fail("stages", names, "a different name for each stage")
        if on_failure not in get_args(OnFailure):
            raise fail("on_failure", on_failure, "stop, skip or raise")
        if costs not in get_args(CostSource):
            raise fail("costs", costs, "known, reported or clock")
        if "measured" in settings:
            raise StopwiseError("measured: say costs='reported' or costs='clock' to a cascade")
        own = ("costs", "on_failure", "at_once", "workers")
        refuse_unknown(settings, [*LearnerOptions.__annotations__, *own], "Cascade")
        settings["measured"] = costs != "known"
        self.on_failure = on_failure
        self.at_once = at_once
        self._clock = costs == "clock"
        self._is_async = [stage.is_async for stage in self.stages]
        self._workers = workers
        self._pool: ThreadPoolExecutor | None = None
        self.learner = Learner(
            {stage.name: stage.cost for stage in self.stages},
            policy,
            **settings,
        )

    # ---- one item ----------------------------------------------------------------------------

    def answer(self, item: Any, *, segment: str = "") -> Answer:
        """Answer one item, calling only the stages that are needed."""
        if any(self._is_async):
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run(self.answer_async(item, segment=segment))
            raise StopwiseError("answer: some stages are async; await answer_async instead")
        round = self.learner.begin(segment)
        try:
            if self.at_once and round.depth:
                calls = [
                    self._executor().submit(self._call, at, item) for at in range(round.depth + 1)
                ]
                self._tell_all(round, [call.result() for call in calls])
            while self._wants_more(round):
                self._tell(round, self._call(len(round.outputs), item))
        except BaseException:
            self._give_up(round)
            raise
        return self._conclude(round)

    async def answer_async(self, item: Any, *, segment: str = "") -> Answer:
        """The same, awaiting async stages and running plain ones in threads."""
        round = self.learner.begin(segment)
        try:
            if self.at_once and round.depth:
                calls = [self._call_async(at, item) for at in range(round.depth + 1)]
                self._tell_all(round, await asyncio.gather(*calls))
            while self._wants_more(round):
                self._tell(round, await self._call_async(len(round.outputs), item))
        except BaseException:
            self._give_up(round)
            raise
        return self._conclude(round)

    def answer_many(
        self,
        items: Iterable[Any],
        *,
        batch_size: int | None = None,
        segment: str = "",
        progress: Progress = False,
        concurrency: int = 32,
    ) -> Answers:
        """Answer many items; each stage is called once on the whole sub-batch that needs it.

        Depths of a batch are drawn together, from what was known before it. Iterate over the result
        to have answers as batches are done, or `collect()` them all.

        Args:
            items: a list, an array, a frame (sliced by rows), or any iterable.
            batch_size: items in a batch. None begins small and doubles up to 4096, so that few
                items are spent before there is any evidence.
            progress: True shows a bar on a terminal; or a function of (done, total or None).
            concurrency: how many calls of an async stage may be open at once.
        """
        return Answers(self, items, batch_size, segment, progress, concurrency)

    # ---- calling -----------------------------------------------------------------------------

    def _call(self, at: int, item: Any) -> _Result:
        stage = self.stages[at]
        start = time.perf_counter()
        try:
            if stage.timeout is None:
                value = stage.call([item])[0] if stage.batch else stage.call(item)
            else:
                value = call_within(stage.timeout, stage.call, [item] if stage.batch else item)
                value = value[0] if stage.batch else value
        except Exception as error:  # noqa: BLE001  # whatever a stage raises is its failure
            return _Result(None, self._elapsed(start), error)
        return self._result(value, start)

    async def _call_async(self, at: int, item: Any) -> _Result:
        stage = self.stages[at]
        start = time.perf_counter()
        given = [item] if stage.batch else item
        try:
            if self._is_async[at]:
                work = stage.call(given)
            elif stage.timeout is None:
                work = asyncio.to_thread(stage.call, given)
            else:
                work = call_in_thread(stage.call, given)
            value = await asyncio.wait_for(work, stage.timeout)
            value = value[0] if stage.batch else value
        except Exception as error:  # noqa: BLE001
            return _Result(None, self._elapsed(start), error)
        return self._result(value, start)

    def _call_whole(self, at: int, items: Any) -> _Result:
        """One call of a batch stage; its cost is of all items together."""
        stage = self.stages[at]
        start = time.perf_counter()
        try:
            if self._is_async[at]:
                value = asyncio.run(asyncio.wait_for(stage.call(items), stage.timeout))
            elif stage.timeout is None:
                value = stage.call(items)
            else:
                value = call_within(stage.timeout, stage.call, items)
        except Exception as error:  # noqa: BLE001
            return _Result(None, self._elapsed(start), error)
        return _Result(value, self._elapsed(start))

    @staticmethod
    def _split(value: Any, cost: float | None) -> _Result:
        """One item's part of what a batch stage returned."""
        if type(value) is Reported:
            spent = value.cost if cost is None else cost
            return _Result(value.output, spent, confidence=value.confidence)
        return _Result(value, cost)

    def _result(self, value: Any, start: float) -> _Result:
        return self._split(value, self._elapsed(start))

    def _elapsed(self, start: float) -> float | None:
        return time.perf_counter() - start if self._clock else None

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="stopwise")
        return self._pool

    # ---- following a round -------------------------------------------------------------------

    def _wants_more(self, round: Round) -> bool:
        """Whether the next stage is to be called."""
        at = len(round.outputs)
        if round.failed and self._failed_last(round):
            if self.on_failure == "stop":
                return False
            if at > round.depth and not self.learner.go_deeper(round):
                return False
        return at <= round.depth and (at == 0 or self.learner.can_pay(round))

    @staticmethod
    def _failed_last(round: Round) -> bool:
        return bool(round.failed >> (len(round.outputs) - 1) & 1)

    def _tell(self, round: Round, result: _Result) -> None:
        if result.error is None:
            round.observe(result.output, result.cost, result.confidence)
            return
        round.fail(result.error, result.cost)
        if self.on_failure == "raise":
            raise result.error

    def _tell_all(self, round: Round, results: Sequence[_Result]) -> None:
        for result in results:
            if result.error is None:
                round.observe(result.output, result.cost, result.confidence)
            else:
                round.fail(result.error, result.cost)
        if self.on_failure == "raise":
            for result in results:
                if result.error is not None:
                    raise result.error

    def _give_up(self, round: Round) -> None:
        """Count what was seen, and let nothing stand in the way of the error under way."""
        if not round.ended:
            try:
                round.abandon()
            except Exception as error:  # noqa: BLE001
                _warn(error)

    def _conclude(self, round: Round) -> Answer:
        recorded = True
        try:
            outcome = round.end()
        except Exception as error:  # noqa: BLE001  # the answer is there: it must not be lost
            _warn(error)
            recorded = False
            answer, stage = self.learner.reader.after(round.outputs, len(round.outputs) - 1)
            outcome = RoundOutcome(answer, stage, round.cost)
        return self._as_answer(round, outcome, recorded)

    def _as_answer(self, round: Round, outcome: RoundOutcome, recorded: bool = True) -> Answer:
        names = self.learner.stages
        if outcome.stage is None and round.failed:
            failed, error = round.errors[-1]
            raise NoAnswerError(
                f"no stage answered; {names[failed]} failed last ({error!r})"
            ) from (error if isinstance(error, Exception) else None)
        return Answer(
            outcome.answer,
            None if outcome.stage is None else names[outcome.stage],
            names[round.depth if round.drawn_depth is None else round.drawn_depth],
            round.probability,
            outcome.cost,
            tuple((names[at], error) for at, error in round.errors),
            round.advice if self.learner.settings.mode == "advise" else None,
            recorded,
        )

    # ---- the learner's memory ----------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write a snapshot of the learner; see `Learner.save`."""
        self.learner.save(path)

    def load(self, path: Any, *, fork: int | None = None) -> None:
        """Go on from a snapshot; see `Learner.load`."""
        self.learner.load(path, fork=fork)

    def close(self) -> None:
        """Let go of threads and of the store."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self.learner.close()

    def __enter__(self) -> Cascade:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def _warn(error: Exception) -> None:
    warnings.warn(
        f"this round was answered but could not be counted: {error!r}", RuntimeWarning, stacklevel=4
    )
