"""Deciding per item where rounds are not held in one process: keeps and counts nothing.

A service hears of a round's outputs at different times and at different replicas; the round that is
counted is made when all of it is known. What is in between is decided here, by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.round import Books, Round
from stopwise.policies.per_item.rule import Rule, RuleDecision


class ItemDecision(NamedTuple):
    """What the rule says of an item after some outputs.

    Attributes:
        stop: the first stage after which it stops; None where it goes on.
        answer: after all stages, the one whose answer loses least; None before, and where the last
            that answered gives the answer.
        steps: what it says of each situation on the way; empty before there is a rule.
    """

    stop: int | None
    answer: int | None
    steps: tuple[RuleDecision, ...]


class DrawnItem(NamedTuple):
    """How a round was decided elsewhere, for counting it; see `Learner.begin_drawn`.

    Attributes:
        full_run: whether it was to go to the end whatever its outputs.
        chance: the probability with which it was.
        stop: where the rule stopped it or would have.
        features: what was known of the item before its first call.
    """

    full_run: bool
    chance: float
    stop: int | None
    features: Mapping[str, Any] | None = None


class StatelessDecider:
    """Decides items by the rule that a learner has now. Safe to use from many threads.

    Args:
        items: what decides the learner's own rounds.
        books: of the learner.
        rounds: how many rounds have been counted.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"small": 1, "large": 5}, "per-item", mistake_cost=20)
    >>> decider = learner.item_decider
    >>> decider.full_chance()                  # no rule yet: to the end
    1.0
    >>> for number in range(64):
    ...     chance = decider.full_chance(0.05)
    ...     label = "yes" if number % 4 else "no"
    ...     found = decider.decide([label, label])
    ...     item = DrawnItem(True, chance, found.stop)
    ...     round = learner.begin_drawn(1, 1.0, item=item)
    ...     round.observe(label); round.observe(label)
    ...     _ = round.end()
    >>> decider.full_chance() < 1, decider.decide(["yes"]).stop
    (True, 0)
    """

    def __init__(self, items: ItemDecider, books: Books, rounds: Callable[[], int]) -> None:
        self._items, self._books, self._rounds = items, books, rounds

    def full_chance(self, rate: float = 0.0) -> float:
        """The probability with which the next round is a full run.

        Args:
            rate: share of rounds that are full runs in any case.
        """
        round = self._begin("")
        assert round.path is not None
        # What has ended elsewhere and is not counted here yet makes full runs a little likelier.
        return rate + (1 - rate) * (round.full_chance if round.path.by.decides else 1.0)

    def decide(
        self,
        outputs: Sequence[Any],
        confidences: Sequence[float | None] | None = None,
        segment: str = "",
        features: Mapping[str, Any] | None = None,
    ) -> ItemDecision:
        """What the rule says after these outputs, None where a stage abstained or failed."""
        round = self._begin(segment)
        if features:
            self._items.know(round, features)
        round.outputs.extend(outputs)
        round.confidences = list(confidences) if confidences is not None else None
        self._items.next_stage(round)
        return ItemDecision(
            round.rule_depth, self._items.answering(round), tuple(self._items.explain(round))
        )

    def check_features(self, features: Mapping[str, Any], segment: str = "") -> None:
        """Refuse features that the rule cannot take."""
        self._items.know(self._begin(segment), features)

    @property
    def rule(self) -> Rule | None:
        """The table of situations that rounds are decided by now; None before there is one."""
        path = self._begin("").path
        found = None if path is None else path.by.rule
        return found if isinstance(found, Rule) else None

    def _begin(self, segment: str) -> Round:
        """A round that is no open one: it takes no number, and nobody counts it."""
        round = Round(self._books, 0, self._rounds() + 1, segment, self._books.stage_count - 1, 1.0)
        self._items.begin(round, 1.0)
        return round
