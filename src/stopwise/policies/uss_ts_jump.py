"""USS-TS with the jump walk, so that no pair of stages is starved of data; and a tempered form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stopwise.checks import names_fields, positive_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy
from stopwise.policies.walks import jump_walk


@names_fields
@dataclass(frozen=True)
class UssTsJump(Policy):
    """Thompson sampling that goes to the stage whose sampled disagreement sent it on.

    USS-TS (Verma, Hanawal, Hemachandra, ACML 2020) walks i -> i+1: it can leave the first stage
    because of the third and stop at the second, and then the pair that sent it on is not observed.
    This goes to the nearest deeper stage whose sample reaches its threshold C_j - C_i, and stops
    where there is none. The samples are independent, so the distribution over depths is exact.

    Args:
        temper: multiply the counts by this before sampling. Above 1 it trusts what it saw sooner:
            less regret on average, more in the tails.
        prior_disagreed: prior count of disagreements (1 in the paper).
        prior_agreed: prior count of agreements (1 in the paper).

    >>> evidence = Evidence.from_counts([[0, 2], [0, 0]], [[0, 0], [0, 0]])
    >>> costs = Costs.from_cumulative((0.0, 0.25))
    >>> UssTsJump().probabilities(evidence, 3, costs)[0]   # 1 - (3/4)^3
    np.float64(0.578125)
    >>> costs = Costs.from_cumulative((0.0, 0.25))
    >>> UssTsJump(temper=2).probabilities(evidence, 3, costs)[0]   # 1 - (3/4)^5
    np.float64(0.7626953125)
    """

    temper: float = 1.0
    prior_disagreed: float = 1.0
    prior_agreed: float = 1.0
    name: ClassVar[str] = "uss-ts-jump"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("temper", "prior_disagreed", "prior_agreed"):
            positive_number(field, getattr(self, field))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        from scipy.special import betainc, betaincc

        a = self.temper * evidence.disagreed + self.prior_disagreed
        b = self.temper * (evidence.seen - evidence.disagreed) + self.prior_agreed
        # A disagreement is a probability: a threshold <= 0 is never passed, one >= 1 always is.
        x = np.clip(costs.thresholds, 0.0, 1.0)
        return jump_walk(betainc(a, b, x), betaincc(a, b, x))


@names_fields
@dataclass(frozen=True)
class UssTsTempered(UssTsJump):
    """USS-TS with the jump walk and doubled counts: less regret on average, heavier tails.

    Args:
        temper: multiply the counts by this before sampling.
        prior_disagreed: prior count of disagreements (1 in the paper).
        prior_agreed: prior count of agreements (1 in the paper).

    >>> UssTsTempered() == UssTsTempered(temper=2.0)
    True
    """

    temper: float = 2.0
    name: ClassVar[str] = "uss-ts-tempered"
