"""The wider frame: policies that decide after each stage, from the situation an item is in.

A depth-first policy draws the depth before the first stage is called; it is the special case that
looks at nothing. An `ItemPolicy` decides item by item, and sends some rounds through all stages
with a known probability, whatever their outputs. There are two kinds: a `SituationPolicy` makes its
rule from transition counts, a `RowPolicy` from the rounds themselves, with their numbers as they
are.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import FloatArray, IntArray
from stopwise.costs import Costs
from stopwise.policies.base import Policy
from stopwise.situations.observations import Observations
from stopwise.situations.transitions import Transitions


class StoppingRule(Protocol):
    """What a policy decides by until it has counted more: a function of the situation alone."""

    def stops(self, stage: int, key: int) -> bool:
        """Whether to stop after a stage (never asked after the last), in a situation."""

    def depths_of(self, keys: IntArray) -> IntArray:
        """The same for many items: where each stops, given its situations after every stage."""


class ItemLearner(Protocol):
    """What a policy has learned from the rounds so far, and how it decides by it."""

    round: int

    def until_next(self) -> int:
        """How many rounds may pass before something is to be made again."""

    def depths(self, rows: Observations) -> IntArray:
        """Where items would stop; of complete rows, but it looks at no stage beyond."""

    def answering(self, rows: Observations) -> IntArray:
        """Of rows that called every stage: whose answer is the likeliest to be right."""

    def record(self, rows: Observations, full: NDArray[np.bool_]) -> None:
        """Take finished rounds; `full` says which were full runs."""

    def refresh(self) -> None:
        """Make again what is due."""


class ItemPolicy(Policy):
    """Base of the policies that decide item by item.

    Asked without items, by `probabilities`, such a policy decides as a depth-first one does: from
    pair evidence, for all items alike.

    >>> from stopwise.policies import PerItem, UssTs
    >>> isinstance(PerItem(), ItemPolicy), isinstance(UssTs(), ItemPolicy)
    (True, False)
    >>> costs = Costs.from_stages([1, 4], mistake_cost=16)
    >>> PerItem().full_run_probability(1, costs)          # the first rounds all go to the end
    1.0
    """

    learns: ClassVar[bool] = True
    """Whether the rule changes with the rounds; if not, it is made once and holds always."""

    @property
    def first_rounds(self) -> int:
        """Rounds at the start from which the bins are made; then it begins to decide."""
        return 32

    @abstractmethod
    def full_run_probability(self, round: int, costs: Costs) -> float:
        """The chance that a round (the first is 1) goes to the end whatever its outputs."""

    def full_run_probabilities(self, rounds: IntArray, costs: Costs) -> FloatArray:
        """The same for many rounds; a rule may override it to be faster, never to differ."""
        return np.asarray([self.full_run_probability(at, costs) for at in rounds.tolist()])


class SituationPolicy(ItemPolicy):
    """A policy whose rule is a pure function of transition counts.

    >>> from stopwise.policies import AgreeInARow
    >>> from stopwise.situations.binning import Binning
    >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    >>> isinstance(AgreeInARow(), SituationPolicy)
    True
    >>> AgreeInARow().rule(("rule", "model"), counts, Costs.from_stages([1, 4]))
    InARow(number=2)
    """

    @abstractmethod
    def rule(self, stages: tuple[str, ...], counts: Transitions, costs: Costs) -> StoppingRule:
        """The rule that follows from the counts. A pure function of its arguments."""


class RowPolicy(ItemPolicy):
    """A policy that learns from the rounds themselves: confidences and features as numbers.

    >>> from stopwise.policies import PerItemLogistic
    >>> learner = PerItemLogistic().learner(("rule", "model"), Costs.from_stages([1, 4]))
    >>> learner.round
    0
    """

    @abstractmethod
    def learner(self, stages: tuple[str, ...], costs: Costs) -> ItemLearner:
        """One that has seen nothing yet."""
