"""Algorithm 2 of Hanawal, Szepesvari, Saligrama (AISTATS 2017): a one-sided confidence test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from stopwise.checks import names_fields, positive_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth
from stopwise.policies.uss_ucb import bound_of


@names_fields
@dataclass(frozen=True)
class Hanawal2(Policy):
    """Play the first stage i with C_j - C_i >= u_ij for all deeper j (note `>=`), or the last.

    As printed, only the last stage's counter starts at 1 after the first round; for all others the
    first sample is overwritten. `record` keeps that: the first round counts pairs with the last
    stage only.

    Args:
        alpha: width of the confidence bounds, 1.5 in the source.

    >>> Hanawal2().probabilities(Evidence(3), 1, Costs.from_cumulative((0.0, 0.1, 0.2)))
    array([0., 0., 1.])
    """

    alpha: float = 1.5
    name: ClassVar[str] = "hanawal-2"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", positive_number("alpha", self.alpha))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        thresholds, last = costs.thresholds, costs.stage_count - 1
        scaled_log = self.alpha * math.log(round)
        for i in range(last):
            if all(
                thresholds[i, j] >= bound_of(evidence, i, j, scaled_log)
                for j in range(i + 1, last + 1)
            ):
                return certain_depth(costs.stage_count, i)
        return certain_depth(costs.stage_count, last)

    def record(self, evidence: Evidence, round: int, prefix: Sequence[Hashable]) -> None:
        """Count the round; of the first one, only the pairs with the last stage."""
        last = evidence.stage_count - 1
        if round > 1:
            evidence.add(prefix)
        elif len(prefix) == evidence.stage_count:
            for i in range(last):
                pair: list[Hashable] = [None] * evidence.stage_count
                pair[i], pair[last] = prefix[i], prefix[last]
                evidence.add(pair)
