"""USS-UCB (Verma, Hanawal, Szepesvari, Saligrama, AISTATS 2019): a two-sided confidence test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stopwise.checks import positive_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth


def upper_bounds(evidence: Evidence, round: int, alpha: float) -> FloatArray:
    """`D/N + sqrt(alpha ln t / N)` for every pair; infinite where nothing was seen.

    >>> seen, disagreed = [[0, 4], [0, 0]], [[0, 1], [0, 0]]
    >>> upper_bounds(Evidence.from_counts(seen, disagreed), 1, 0.5)[0, 1]
    np.float64(0.25)
    """
    seen = np.where(evidence.seen > 0, evidence.seen, 1)
    bounds = evidence.disagreed / seen + np.sqrt(alpha * np.log(round) / seen)
    return np.where(evidence.seen > 0, bounds, np.inf)


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
        u = upper_bounds(evidence, round, self.alpha)
        x = costs.thresholds
        count = costs.stage_count
        for i in range(count - 1):
            low = bool((x[:i, i] <= u[:i, i]).all())
            high = bool((x[i, i + 1 :] > u[i, i + 1 :]).all())
            if low and high:
                return certain_depth(count, i)
        return certain_depth(count, count - 1)
