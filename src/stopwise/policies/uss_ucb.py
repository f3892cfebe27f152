"""USS-UCB (Verma, Hanawal, Szepesvari, Saligrama, AISTATS 2019): a two-sided confidence test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from stopwise.checks import names_fields, positive_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth


def upper_bound(disagreed: float, seen: float, scaled_log: float) -> float:
    """`D/N + sqrt(alpha ln t / N)`, infinite where nothing was seen; `scaled_log` is alpha ln t.

    >>> upper_bound(1, 4, 0.0), upper_bound(1, 4, 1.0)
    (0.25, 0.75)
    """
    if seen == 0.0:
        return math.inf
    return disagreed / seen + math.sqrt(scaled_log / seen)


def bound_of(evidence: Evidence, i: int, j: int, scaled_log: float) -> float:
    """The upper bound on the disagreement of stages i < j.

    >>> bound_of(Evidence.from_codes([[0, 1], [0, 0]]), 0, 1, 0.0)
    0.5
    """
    seen, disagreed = evidence.counts(i, j)
    return upper_bound(disagreed, seen, scaled_log)


@names_fields
@dataclass(frozen=True)
class UssUcb(Policy):
    """Play the first stage that passes upwards and downwards, with upper bounds in both tests.

    B_low = {i : C_i - C_j <= u_ji for all j < i}, B_high = {i : C_j - C_i > u_ij for all j > i},
    both with their trivial member (the first, the last); play the smallest common one, or the last.
    The first round plays the last stage, since bounds of unseen pairs are infinite.

    Args:
        alpha: width of the confidence bounds; the theory wants above 0.5, the paper runs 0.5.

    >>> UssUcb().probabilities(Evidence(3), 1, Costs.from_cumulative((0.0, 0.1, 0.2)))
    array([0., 0., 1.])
    """

    alpha: float = 0.5
    name: ClassVar[str] = "uss-ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", positive_number("alpha", self.alpha))

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        thresholds, last = costs.thresholds, costs.stage_count - 1
        scaled_log = self.alpha * math.log(round)
        for i in range(last):
            low = all(thresholds[j, i] <= bound_of(evidence, j, i, scaled_log) for j in range(i))
            if low and all(
                thresholds[i, j] > bound_of(evidence, i, j, scaled_log)
                for j in range(i + 1, last + 1)
            ):
                return certain_depth(costs.stage_count, i)
        return certain_depth(costs.stage_count, last)
