"""The optimal stage from the first round on: what regret is measured against."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from stopwise.checks import StopwiseError, fail, names_fields, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth


@names_fields
@dataclass(frozen=True)
class Oracle(Policy):
    """Stop at the optimal stage, which only a simulation can tell.

    Args:
        stage: the optimal stage, 0-based; a simulation fills it in.

    >>> costs = Costs.from_cumulative((0, 1))
    >>> with_oracle_stage(Oracle(), 1).probabilities(Evidence(2), 1, costs)
    array([0., 1.])
    """

    stage: int | None = None
    name: ClassVar[str] = "oracle"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stage is not None:
            object.__setattr__(self, "stage", whole_number("stage", self.stage, least=0))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        if self.stage is None:
            raise StopwiseError("oracle: only a simulation can tell it the optimal stage")
        if self.stage >= costs.stage_count:
            raise fail("stage", self.stage, f"a stage from 0 to {costs.stage_count - 1}")
        return certain_depth(costs.stage_count, self.stage)


def with_oracle_stage(policy: Policy, optimal_stage: int) -> Policy:
    """Tell the optimal stage to an oracle that has none; every other policy is left as it is.

    A function and not a method of policies, so that no other rule can ever see the truth.

    >>> with_oracle_stage(Oracle(), 1)
    Oracle(stage=1)
    """
    if isinstance(policy, Oracle) and policy.stage is None:
        return dataclasses.replace(policy, stage=optimal_stage)
    return policy
