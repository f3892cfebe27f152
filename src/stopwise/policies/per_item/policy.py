"""`per-item`: stop where going on does not pay in this item's situation; learn from every round.

Each round either is a *full run*, with a known probability that falls as the square root of the
rounds, or follows the rule made from all transitions counted so far. Full runs are what stops after
the first stage cannot teach, and being random they give unbiased figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stopwise.checks import fail, finite_number, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import optimal_stage
from stopwise.evidence import Evidence
from stopwise.policies.base import certain_depth
from stopwise.policies.per_item.rule import Rule
from stopwise.policies.per_item.situation import SituationPolicy
from stopwise.situations.references import TRUST
from stopwise.situations.transitions import Transitions


@dataclass(frozen=True)
class PerItem(SituationPolicy):
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

    reference: str | int = "auto"
    trust: float | None = None
    kappa: float = 0.25
    always_full: int = 32

    name = "per-item"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.reference, int) and self.reference not in _REFERENCES:
            raise fail("reference", self.reference, f"one of {_REFERENCES} or a stage by number")
        if self.trust is not None and not 0 < finite_number("trust", self.trust) <= 1:
            raise fail("trust", self.trust, "a number above 0 and at most 1")
        if finite_number("kappa", self.kappa) < 0:
            raise fail("kappa", self.kappa, "a number of 0 or more")
        whole_number("always_full", self.always_full, least=1)

    def full_run_probability(self, round: int, costs: Costs) -> float:
        """The chance that a round is a full run, whatever its outputs."""
        mistakes = costs.in_mistakes
        if mistakes[1] - mistakes[0] >= (self.trust or TRUST):
            return 0.0  # no difference could pay for the second stage
        if round <= self.always_full:
            return 1.0
        price = float(mistakes[-1] - mistakes[0])
        return 1.0 if price <= 0 else min(1.0, self.kappa / math.sqrt(round * price))

    def rule(self, stages: tuple[str, ...], counts: Transitions, costs: Costs) -> Rule:
        """The rule that follows from what was counted."""
        return Rule(stages, counts, costs, self.reference, self.trust)

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        """Where nothing is known of an item: the best single stage against the reference."""
        count = costs.stage_count
        full = self.full_run_probability(round, costs)
        if full == 0.0:
            return certain_depth(count, 0)
        stage = self.reference if isinstance(self.reference, int) else count - 1
        if not 0 <= stage < count:
            raise fail("reference", self.reference, f"the number of a stage, 0 to {count - 1}")
        seen = evidence.seen[:, stage] + evidence.seen[stage, :]
        differed = evidence.disagreed[:, stage] + evidence.disagreed[stage, :]
        # One row that differs half: what was never seen together is not taken for agreement.
        share = (differed + 0.5) / (seen + 1.0)
        share[stage] = 0.0
        trusted = TRUST if self.trust is None else self.trust
        best = optimal_stage(trusted * share + np.asarray(costs.in_mistakes))
        return full * certain_depth(count, count - 1) + (1 - full) * certain_depth(count, best)


_REFERENCES = ("auto", "last", "consensus")
