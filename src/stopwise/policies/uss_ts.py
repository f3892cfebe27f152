"""USS-TS (Verma, Hanawal, Hemachandra, ACML 2020), as its exact depth distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stopwise.checks import names_fields, positive_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy
from stopwise.policies.walks import step_walk


@names_fields
@dataclass(frozen=True)
class UssTs(Policy):
    """Thompson sampling: stop at i when every sampled disagreement p_ij is below C_j - C_i.

    The samples `Beta(S_ij, F_ij)` of Algorithm USS-TS, line 6, are independent, so the chance that
    line 7 stops at stage i is the product over j > i of the Beta distribution function at
    C_j - C_i. Nothing needs to be sampled but the depth.

    Args:
        prior_disagreed: prior count of disagreements, S at the start (1 in the paper).
        prior_agreed: prior count of agreements, F at the start (1 in the paper).

    >>> UssTs().probabilities(Evidence(2), 1, Costs.from_cumulative((0.0, 0.25)))
    array([0.25, 0.75])
    >>> evidence = Evidence.from_counts([[0, 2], [0, 0]], [[0, 0], [0, 0]])
    >>> UssTs().probabilities(evidence, 3, Costs.from_cumulative((0.0, 0.25)))[0]   # 1 - (3/4)^3
    np.float64(0.578125)
    """

    prior_disagreed: float = 1.0
    prior_agreed: float = 1.0
    name: ClassVar[str] = "uss-ts"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("prior_disagreed", "prior_agreed"):
            object.__setattr__(self, field, positive_number(field, getattr(self, field)))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        passes, fails = self.pair_tests(evidence, costs)
        return step_walk(passes, fails)

    def pair_tests(self, evidence: Evidence, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """P(sample < C_j - C_i) and P(sample >= C_j - C_i) for every pair.

        >>> passes, fails = UssTs().pair_tests(Evidence(2), Costs.from_cumulative((0.0, 0.25)))
        >>> passes[0, 1], fails[0, 1]
        (np.float64(0.25), np.float64(0.75))
        """
        from scipy.special import betainc, betaincc

        a = evidence.disagreed + self.prior_disagreed
        b = evidence.seen - evidence.disagreed + self.prior_agreed
        # A disagreement is a probability: a threshold <= 0 is never passed, one >= 1 always is.
        x = np.clip(costs.thresholds, 0.0, 1.0)
        return betainc(a, b, x), betaincc(a, b, x)
