"""The wider frame: policies that decide after each stage, from the situation an item is in.

A depth-first policy draws the depth before the first stage is called; it is the special case that
looks at nothing. A `SituationPolicy` makes a rule from transition counts, follows it item by item,
and sends some rounds through all stages with a known probability, whatever their outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

from stopwise.costs import Costs
from stopwise.policies.base import Policy
from stopwise.situations.observations import IntArray
from stopwise.situations.transitions import Transitions


class StoppingRule(Protocol):
    """What a policy decides by until it has counted more: a function of the situation alone."""

    def stops(self, stage: int, key: int) -> bool:
        """Whether to stop after a stage (never asked after the last), in a situation."""

    def depths_of(self, keys: IntArray) -> IntArray:
        """The same for many items: where each stops, given its situations after every stage."""


class SituationPolicy(Policy):
    """Base of the policies that look at the situation. A subclass says two things more.

    Asked without situations, by `probabilities`, such a policy decides as a depth-first one does:
    from pair evidence, for all items alike.
    """

    learns: ClassVar[bool] = True
    """Whether the rule changes with the counts; if not, it is made once and holds always."""

    @abstractmethod
    def full_run_probability(self, round: int, costs: Costs) -> float:
        """The chance that a round (the first is 1) goes to the end whatever its outputs."""

    @abstractmethod
    def rule(self, stages: tuple[str, ...], counts: Transitions, costs: Costs) -> StoppingRule:
        """The rule that follows from the counts. A pure function of its arguments."""
