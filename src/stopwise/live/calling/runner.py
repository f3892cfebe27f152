"""What results do to a round: whether it goes on, what it is told, which answer it ends with."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

from stopwise.live.calling.answer import Answer, NoAnswerError
from stopwise.live.calling.result import CallResult
from stopwise.live.learner import Learner
from stopwise.live.round import Round, RoundOutcome

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

    def wants_more(self, round: Round) -> bool:
        """Whether the next stage is to be called."""
        at = len(round.outputs)
        if round.failed and round.failed >> (at - 1) & 1:
            if self.on_failure == "stop":
                return False
            if at > round.depth and not self.learner.go_deeper(round):
                return False
        return at <= round.depth and (at == 0 or self.learner.can_pay(round))

    def tell(self, round: Round, result: CallResult) -> None:
        """Tell a round what its next stage gave."""
        if result.error is None:
            round.observe(result.output, result.cost, result.confidence)
            return
        round.fail(result.error, result.cost)
        if self.on_failure == "raise":
            raise result.error

    def tell_all(self, round: Round, results: Sequence[CallResult]) -> None:
        """Tell a round what several stages gave; all are told before a failure is raised."""
        for result in results:
            if result.error is None:
                round.observe(result.output, result.cost, result.confidence)
            else:
                round.fail(result.error, result.cost)
        if self.on_failure == "raise":
            for result in results:
                if result.error is not None:
                    raise result.error

    def give_up(self, round: Round) -> None:
        """Count what was seen, and let nothing stand in the way of the error under way."""
        if not round.ended:
            try:
                round.abandon()
            except Exception as error:  # noqa: BLE001
                _warn(error)

    def conclude(self, round: Round) -> Answer:
        """End a round and give its answer, whether or not it can be counted."""
        recorded = True
        try:
            outcome = round.end()
        except Exception as error:  # noqa: BLE001  # the answer is there: it must not be lost
            _warn(error)
            recorded = False
            answer, stage = self.learner.reader.after(round.outputs, len(round.outputs) - 1)
            outcome = RoundOutcome(answer, stage, round.cost)
        return self.answer_of(round, outcome, recorded)

    def answer_of(self, round: Round, outcome: RoundOutcome, recorded: bool = True) -> Answer:
        """The answer of a round that has ended."""
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


def _warn(error: Exception) -> None:
    warnings.warn(
        f"this round was answered but could not be counted: {error!r}", RuntimeWarning, stacklevel=4
    )
