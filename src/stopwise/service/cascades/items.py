"""Per item: a request goes on or stops after each stage, by what the stages answered to it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stopwise.live import Comparator
from stopwise.live.choosing.stateless_decider import ItemDecision, StatelessDecider
from stopwise.live.items.path import stop_probability
from stopwise.logs.items.why import stopping_shares
from stopwise.policies.per_item.rule import Rule
from stopwise.service.cascades.counting import compare
from stopwise.service.cascades.drawing import with_full_runs
from stopwise.service.cascades.forms import Call, Finished, ItemOutcome, RequestDecision

_LABEL = 8  # hexadecimal digits: enough to tell answers apart, and no text


class ItemRequests:
    """Decides the requests of one cascade per item.

    Answers are known to the rule by a keyed hash of what the comparator reads in them: equal where
    they agree, and no text in the counters.

    Args:
        decider: the rule, as the learner has it now.
        comparator: when answers agree.
        secret: shared by all replicas, so that equal answers have equal labels.
        last: the number of the last stage.
    """

    def __init__(
        self, decider: StatelessDecider, comparator: Comparator, secret: bytes, last: int
    ) -> None:
        self._decider, self._last = decider, last
        self._comparator = comparator
        self._secret = secret

    @property
    def rule(self) -> Rule | None:
        """The rule in force; None while every request goes through all stages."""
        return self._decider.rule

    def full_chance(self, rate: float) -> float:
        """The probability that the next request goes through all stages whatever they answer."""
        return self._decider.full_chance(rate)

    def law(self, rate: float) -> list[float]:
        """The share of requests that would stop after each stage, full runs included."""
        rule, chance = self.rule, self.full_chance(rate)
        if rule is None:
            return [0.0] * self._last + [1.0]
        return with_full_runs(stopping_shares(rule), chance)

    def check_features(self, features: Mapping[str, Any], segment: str) -> None:
        """Refuse what the rule cannot take."""
        self._decider.check_features(features, segment)

    def labels(self, calls: Sequence[Call], codes: Sequence[int]) -> list[str | None]:
        """What each answer is known by; None where there is none."""
        keys = list(self._comparator.keys([call.output for call in calls]))
        first: dict[int, int] = {}
        for at, code in enumerate(codes):
            first.setdefault(code, at)
        return [
            None
            if code < 0
            else hmac.new(
                self._secret, repr(keys[first[code]]).encode("utf-8", "replace"), hashlib.sha256
            ).hexdigest()[:_LABEL]
            for code in codes
        ]

    def decide(self, decision: RequestDecision, calls: Sequence[Call]) -> ItemDecision:
        """What the rule says after these calls, which are those of the first stages in order."""
        codes = compare(self._comparator, tuple(calls)).codes
        return self._decider.decide(
            self.labels(calls, codes),
            [call.confidence for call in calls],
            decision.segment,
            decision.features,
        )

    def concluded(self, finished: Finished) -> Finished:
        """A request with what was decided of it, once all of it is known."""
        item = finished.item
        if item is None:
            said = self.decide(finished.decision, finished.calls)
            item = ItemOutcome(said.stop, said.steps)
        decision = self.decided(finished.decision, item.stop)
        return replace(finished, decision=decision, item=item)

    def decided(self, decision: RequestDecision, stop: int | None) -> RequestDecision:
        """A decision, now that it is known where the rule stops: its exact probability, or advice.

        Args:
            decision: as it was made before the first call.
            stop: the stage after which the rule stopped the request or would have.
        """
        assert decision.chance is not None
        if decision.mode == "enforce":
            probability = stop_probability(
                stop, self._last, decision.chance, full_run=decision.full_run
            )
            return replace(decision, probability=probability)
        if decision.advised is not None:
            return decision
        advised = self._last if stop is None else stop
        return replace(decision, advised=advised, advised_probability=1 - decision.chance)


def given(decision: RequestDecision, calls: Sequence[Call], said: ItemDecision) -> int | None:
    """The stage whose answer is given: enforced, the likeliest after all stages; else the deepest.

    >>> one = RequestDecision("r", "c", "", "enforce", 1, 1.0, chance=0.1)
    >>> given(one, [Call(0, "yes"), Call(1, "no")], ItemDecision(1, 0, ()))
    0
    """
    answered = [call.stage for call in calls if call.output is not None]
    if decision.mode == "enforce" and said.answer in answered:
        return said.answer
    return answered[-1] if answered else None
