"""Always the same stage: the baseline that learns nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stopwise.checks import fail, names_fields, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth


@names_fields
@dataclass(frozen=True)
class FixedStage(Policy):
    """Stop at the same stage in every round.

    Args:
        stage: 0-based; negative counts from the end, so that -1 is always-last.

    >>> FixedStage(-1).probabilities(Evidence(3), 1, Costs.from_cumulative((0, 1, 2)))
    array([0., 0., 1.])
    """

    stage: int = -1
    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "stage", whole_number("stage", self.stage, least=None))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        if not -costs.stage_count <= self.stage < costs.stage_count:
            raise fail(
                "stage", self.stage, f"a stage from 0 to {costs.stage_count - 1}, or -1 for last"
            )
        return certain_depth(costs.stage_count, self.stage)
