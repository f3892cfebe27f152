"""What results do to a round: whether it goes on, what it records, which answer it ends with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from stopwise.checks import StopwiseError
from stopwise.live.calling.errors import NoAnswerError, describe, warn
from stopwise.live.calling.result import CallResult, Together
from stopwise.live.comparing.comparator import MisusedComparatorError
from stopwise.live.comparing.reader import NOT_COMPARED
from stopwise.live.interrupts import calls_begun, from_signal
from stopwise.live.learner import Learner
from stopwise.live.record import RoundOutcome
from stopwise.live.round import Round
from stopwise.live.running.answer import Answer
from stopwise.live.running.explaining import Decisions

OnFailure = Literal["stop", "skip", "raise"]


class RoundRunner:
    """Follows rounds from their first result to their answer.

    Args:
        learner: opens and counts the rounds.
        on_failure: what a failure of a stage means for the round; see `Cascade`.
    """

    def __init__(self, learner: Learner, on_failure: OnFailure) -> None:
        self.learner = learner
        self.on_failure = on_failure
        self.takes_time = learner.reader.takes_time
        self.goes_on = learner.settings.abstentions == "go on"
        self._names = learner.stages
        self._limited = learner.limits_items
        self._advises = learner.settings.mode == "advise"
        # Whether there is an answer is for a function of the user to say.
        self.asks = self.goes_on and self.takes_time and learner.reader.comparator.key is not None

    async def listen(self, round: Round) -> None:
        """Ask whether a round at its depth has an answer, sparing the event loop.

        `wants_more` asks by itself where that takes no time.
        """
        if self.asks and len(round.outputs) == round.depth + 1 and round.silent is None:
            reader = self.learner.reader
            round.silent = await asyncio.to_thread(reader.is_silent, round.outputs)

    def wants_more(self, round: Round) -> bool:
        """Whether the next stage is to be called."""
        at = len(round.outputs)
        if round.unusual:  # as all that failed or are decided per item
            if round.failed:
                if round.answer_from is not None:
                    return False
                if round.failed >> (at - 1) & 1:
                    if self.on_failure == "stop":
                        return False
                    if at > round.depth and not self.learner.go_deeper(round):
                        return False
            if at and round.per_item and self.learner.stops(round):
                return False
        if self.goes_on and at == round.depth + 1 and self.learner.goes_on(round):
            return True
        if at == 0 or not self._limited:
            return at <= round.depth
        return at <= round.depth and self.learner.can_pay(round)

    def tell(self, round: Round, result: CallResult) -> None:
        """Tell a round what its next stage gave."""
        output, cost, error, confidence, _ = result
        if error is None and cost is None and confidence is None:
            round.observe(output)
            return
        self._tell(round, result)
        if error is not None and self.on_failure == "raise":
            raise error

    def tell_all(self, round: Round, results: Sequence[CallResult | None]) -> None:
        """Tell a round what stages gave that were called together.

        All are counted before a failure is raised. The answer is the one that calling them one
        after another would have given: with "stop", of the stages before the first failure.
        """
        for at, result in enumerate(results):
            assert result is not None
            self._tell(round, result)
            if result.error is not None and self.on_failure == "stop" and round.answer_from is None:
                round.answer_from = at
        if self.on_failure == "raise":
            for result in results:
                if result is not None and result.error is not None:
                    raise result.error

    @staticmethod
    def _tell(round: Round, result: CallResult) -> None:
        if result.error is not None:
            round.fail(result.error, result.cost)
            return
        try:
            round.observe(result.output, result.cost, result.confidence)
        except StopwiseError as error:
            # A cost or a confidence that is no number: what else was reported is as good as any.
            if round.ended or len(round.outputs) > round.depth:
                raise
            warn(f"what a stage reported with its output was not used: {describe(error)}")
            _tell_the_rest(round, result)

    # ---- ending ------------------------------------------------------------------------------

    def tell_interrupted(
        self, round: Round, error: BaseException, result: CallResult | None, calls: int
    ) -> None:
        """Tell a round what came of its next stage, which was called: it is paid at any rate.

        Args:
            round: the round.
            error: the interrupt.
            result: what the stage gave, if that is known.
            calls: how many calls of it have begun.
        """
        if result is not None:
            self._tell(round, result)
        else:
            cost = calls * self.learner.settings.costs[len(round.outputs)]
            round.fail(error, None if calls == 1 else cost)

    def give_up_together(self, round: Round, error: BaseException, together: Together) -> None:
        """The same as `give_up`, for a round whose stages were called at the same time."""
        at = len(round.outputs)
        calls = [calls_begun(note, stage) for stage, note in enumerate(together.notes)]
        called = [stage for stage, number in enumerate(calls) if number]
        for stage in range(at, called[-1] + 1 if called else 0):
            # What was not called, while a later stage was, costs nothing.
            self.tell_interrupted(round, error, together.results[stage], calls[stage])
        self.give_up(round)

    def give_up(self, round: Round, error: BaseException | None = None) -> None:
        """Count what was seen, and let nothing stand in the way of the error under way.

        Args:
            round: the round.
            error: what came in between, where a stage may have been called whose result the round
                does not have yet.
        """
        if not round.ended:
            calls = calls_begun(round, len(round.outputs)) if error is not None else 0
            if error is not None and calls:
                self.tell_interrupted(round, error, None, calls)
            # Comparing may be what failed, or take long: an interrupt does not wait for it.
            if self.takes_time and round.compared is None:
                round.compared = NOT_COMPARED
            try:
                round.abandon(wait=False)  # the error under way does not wait, nor does a loop
            except Exception as lost:  # noqa: BLE001
                _warn_lost(lost)

    def conclude(self, round: Round, *, wait: bool = True) -> Answer:
        """End a round and give its answer, whether or not it can be counted and kept."""
        try:
            outcome = round.end(wait=wait)
        except MisusedComparatorError:
            self.give_up(round)
            raise
        except Exception as error:  # the answer is there: it must not be lost
            if from_signal(error):
                self.give_up(round)
                raise
            return self._uncounted(round, error)
        return self.answer_of(round, outcome)

    async def conclude_async(self, round: Round) -> Answer:
        """The same, awaiting a comparator that takes its time, and the store."""
        reader = self.learner.reader
        if reader.blocks and len(round.outputs) > (reader.combine is None):
            try:
                round.compared = await reader.compare_async(round.outputs)
            except BaseException:  # misused, or cancelled
                self.give_up(round)
                raise
        answer = self.conclude(round, wait=False)
        try:
            await round.kept()
        except Exception as error:  # noqa: BLE001
            _warn_lost(error)
            return replace(answer, recorded=False)
        return answer

    def wait_for_store(self) -> bool:
        """Wait until all rounds that have ended are kept, where the store is to be waited for."""
        try:
            self.learner.wait_as_durable()
        except Exception as error:  # noqa: BLE001
            _warn_lost(error)
            return False
        return True

    def _uncounted(self, round: Round, error: Exception) -> Answer:
        """The answer of a round that could not be counted, or only without comparing."""
        _warn_lost(error)
        if not round.ended:
            round.compared = NOT_COMPARED
            round.unusual |= 1
            try:
                return self.answer_of(round, round.end(), recorded=False)
            except NoAnswerError:
                raise
            except Exception as again:  # noqa: BLE001
                _warn_lost(again)
        usable = len(round.outputs) if round.answer_from is None else round.answer_from
        answer, stage = self.learner.reader.after(round.outputs, usable - 1)
        return self.answer_of(round, RoundOutcome(answer, stage, round.cost), recorded=False)

    def answer_of(self, round: Round, outcome: RoundOutcome, *, recorded: bool = True) -> Answer:
        """The answer of a round that has ended."""
        names = self._names
        answer, stage, cost = outcome
        if stage is None and round.failed:
            failed, error = round.errors[-1]
            raise NoAnswerError(
                f"no stage answered; {names[failed]} failed last ({describe(error)})"
            ) from (error if isinstance(error, Exception) else None)
        compared = round.compared
        return Answer(
            answer,
            None if stage is None else names[stage],
            names[round.depth if round.drawn_depth is None else round.drawn_depth],
            round.probability,
            cost,
            tuple([(names[at], error) for at, error in round.errors]),
            round.advice if self._advises else None,
            recorded and (compared is None or compared.complete),
            decisions=None if round.path is None else self._decisions(round),
        )

    def _decisions(self, round: Round) -> Decisions:
        return Decisions(round, self._names, self.learner.explain)

    def unanswered(self, round: Round, error: Exception) -> Answer:
        """What stands among many answers for an item that has none."""
        names = self._names
        return Answer(
            None,
            None,
            names[round.depth if round.drawn_depth is None else round.drawn_depth],
            round.probability,
            round.cost,
            tuple((names[at], failed) for at, failed in round.errors),
            error=error,
            decisions=None if round.path is None else self._decisions(round),
        )


def _warn_lost(error: Exception) -> None:
    if from_signal(error):
        raise error
    warn(f"this round was answered but could not be counted: {describe(error)}", stacklevel=5)


def _tell_the_rest(round: Round, result: CallResult) -> None:
    """The output with what can be used of its cost and its confidence: one of them, or neither."""
    for cost, confidence in ((result.cost, None), (None, result.confidence)):
        with suppress(StopwiseError):
            round.observe(result.output, cost, confidence)
            return
    round.observe(result.output)
