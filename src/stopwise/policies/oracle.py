"""The optimal stage from the first round on: what regret is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stopwise.checks import StopwiseError, fail, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth


@dataclass(frozen=True)
class Oracle(Policy):
    """Stop at the optimal stage, which only a simulation can tell.

    Args:
        stage: the optimal stage, 0-based; a simulation fills it in.

    >>> costs = Costs.from_cumulative((0, 1))
    >>> Oracle().told(horizon=10, optimal_stage=1).probabilities(Evidence(2), 1, costs)
    array([0., 1.])
    """

    stage: int | None = None
    name: ClassVar[str] = "oracle"

    def __post_init__(self) -> None:
        if self.stage is not None:
            object.__setattr__(self, "stage", whole_number("stage", self.stage, least=0))

    def told(self, *, horizon: int, optimal_stage: int) -> Oracle:
        """Take the optimal stage, unless one was set."""
        del horizon
        return Oracle(optimal_stage) if self.stage is None else self

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        if self.stage is None:
            raise StopwiseError("oracle: only a simulation can tell it the optimal stage")
        if self.stage >= costs.stage_count:
            raise fail("stage", self.stage, f"a stage from 0 to {costs.stage_count - 1}")
        return certain_depth(costs.stage_count, self.stage)
