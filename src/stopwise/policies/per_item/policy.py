"""`per-item`: stop where going on does not pay in this item's situation; learn from every round.

Each round either is a *full run*, with a known probability that falls as the square root of the
rounds, or follows the rule made from all transitions counted so far. Full runs are what stops after
the first stage cannot teach, and being random they give unbiased figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stopwise.arrays import IntArray
from stopwise.checks import fail, finite_number, names_fields, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import optimal_stage
from stopwise.evidence import Evidence
from stopwise.policies.base import certain_depth
from stopwise.policies.per_item.rule import Rule
from stopwise.policies.per_item.situation import ItemPolicy, SituationPolicy
from stopwise.situations.references import TRUST, check_reference
from stopwise.situations.transitions import Transitions


@dataclass(frozen=True)
class ReferencePolicy(ItemPolicy):
    """Base of the policies that hold answers against a reference, and learn it from full runs."""

    reference: str | int = "auto"
    trust: float | None = None
    kappa: float = 0.25
    always_full: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reference(self.reference, self.trust)
        if finite_number("kappa", self.kappa) < 0:
            raise fail("kappa", self.kappa, "a number of 0 or more")
        whole_number("always_full", self.always_full, least=1)

    @property
    def first_rounds(self) -> int:
        """Rounds at the start that are full runs, from which the bins are made."""
        return self.always_full

    def full_run_probability(self, round: int, costs: Costs) -> float:
        """min(1, kappa / sqrt(round x price)); 1 at the start, 0 where no deeper stage can pay.

        >>> costs = Costs.from_stages([1, 4], mistake_cost=16)
        >>> PerItem().full_run_probability(10_000, costs)
        0.005
        """
        mistakes = costs.in_mistakes
        if mistakes[1] - mistakes[0] >= (self.trust or TRUST):
            return 0.0  # no difference could pay for the second stage
        if round <= self.always_full:
            return 1.0
        price = float(mistakes[-1] - mistakes[0])
        return 1.0 if price <= 0 else min(1.0, self.kappa / math.sqrt(round * price))

    def full_run_probabilities(self, rounds: IntArray, costs: Costs) -> FloatArray:
        """The chances of many rounds, equal to the last bit to those of one after the other.

        >>> costs = Costs.from_stages([1, 4], mistake_cost=16)
        >>> PerItem().full_run_probabilities(np.array([1, 10_000]), costs)
        array([1.   , 0.005])
        """
        if self.full_run_probability(1, costs) == 0.0:
            return np.zeros(len(rounds))
        price = float(costs.in_mistakes[-1] - costs.in_mistakes[0])
        if price <= 0:
            return np.ones(len(rounds))
        chances = np.minimum(1.0, self.kappa / np.sqrt(rounds * price))
        return np.asarray(np.where(rounds <= self.always_full, 1.0, chances))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        """Where nothing is known of an item: the best single stage against the reference.

        >>> costs = Costs.from_stages([1, 4], mistake_cost=16)
        >>> PerItem(reference="last").probabilities(Evidence(2), 1, costs)
        array([0., 1.])
        """
        full, last = self.full_run_probability(round, costs), costs.stage_count - 1
        if full == 0.0:
            return certain_depth(last + 1, 0)
        check_reference(self.reference, self.trust, last + 1)
        stage = self.reference if isinstance(self.reference, int) else last
        seen = evidence.seen[:, stage] + evidence.seen[stage, :]
        differed = evidence.disagreed[:, stage] + evidence.disagreed[stage, :]
        # One row that differs half: what was never seen together is not taken for agreement.
        share = (differed + 0.5) / (seen + 1.0)
        share[stage] = 0.0
        trusted = TRUST if self.trust is None else self.trust
        best = optimal_stage(trusted * share + np.asarray(costs.in_mistakes))
        return full * certain_depth(last + 1, last) + (1 - full) * certain_depth(last + 1, best)


@names_fields
@dataclass(frozen=True)
class PerItem(ReferencePolicy, SituationPolicy):
    """Stop per item, without labels.

    Args:
        reference: what answers are held against: "auto" (the last stage, as far as the consensus
            of all stages does not doubt it), "last", "consensus", or a stage by number.
        trust: what a difference from the last stage counts for, in mistakes; None for the usual.
        kappa: how often full runs are made: min(1, kappa / sqrt(round x price)), where the price is
            that of all deeper stages in mistakes.
        always_full: rounds at the start that are full runs, from which the bins are made.

    >>> PerItem().full_run_probability(10_000, Costs.from_stages([1, 4], mistake_cost=16))
    0.005
    """

    name = "per-item"

    def rule(self, stages: tuple[str, ...], counts: Transitions, costs: Costs) -> Rule:
        """The rule that follows from what was counted."""
        made = Rule(stages, counts, costs, self.reference, self.trust)
        _ = made.going_on  # now: the counts go on counting, and a rule is of this moment
        return made
