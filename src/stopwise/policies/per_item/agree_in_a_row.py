"""`agree-in-a-row`: go on until stages in a row say the same. A baseline that learns nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.arrays import IntArray
from stopwise.checks import names_fields, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import certain_depth
from stopwise.policies.per_item.situation import SituationPolicy
from stopwise.situations.keys import decode
from stopwise.situations.transitions import Transitions


@dataclass(frozen=True)
class InARow:
    """The rule: whether the last outputs are all the same."""

    number: int

    def stops(self, stage: int, key: int) -> bool:
        """Whether to stop after a stage, in a situation.

        >>> from stopwise.situations.keys import encode, partition_code
        >>> [InARow(2).stops(2, encode(partition_code(groups), 0, 0, 0, 0))
        ...  for groups in ((0, 1, 1), (0, 1, 0), (0, -1, -1))]
        [True, False, False]
        """
        latest = decode(key).partition[-self.number :]
        return len(latest) == self.number and latest[-1] >= 0 and len(set(latest)) == 1

    def depths_of(self, keys: IntArray) -> IntArray:
        """Where each item stops, given its situations after every stage."""
        last = keys.shape[1] - 1
        depths = np.full(len(keys), last, dtype=np.int64)
        for stage in range(last - 1, -1, -1):
            known = {key: self.stops(stage, key) for key in np.unique(keys[:, stage]).tolist()}
            stops = np.asarray([known[key] for key in keys[:, stage].tolist()], dtype=np.bool_)
            depths[stops] = stage
        return depths


@names_fields
@dataclass(frozen=True)
class AgreeInARow(SituationPolicy):
    """Stop at the first stage that says the same as the ones just before it.

    Args:
        number: how many stages in a row must agree, the one that is stopped at included.

    >>> from stopwise.situations.binning import Binning
    >>> rule = AgreeInARow().rule((), Transitions(Binning(((), ()), ((), ()))), None)
    >>> rule
    InARow(number=2)
    """

    number: int = 2

    name = "agree-in-a-row"
    learns = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("number", self.number, least=2)

    def full_run_probability(self, round: int, costs: Costs) -> float:
        """Never: it has nothing to learn."""
        return 0.0

    def rule(self, stages: tuple[str, ...], counts: Transitions, costs: Costs) -> InARow:
        """Always the same rule."""
        return InARow(self.number)

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        """Where outputs cannot be looked at, it is never known that they agree: to the end."""
        return certain_depth(costs.stage_count, costs.stage_count - 1)
