"""IMED with the elimination walk: a deterministic rule that needs nothing but logarithms."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

from stopwise.checks import StopwiseError, finite_number, names_fields, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth
from stopwise.policies.walks import elimination_walk


def bernoulli_kl(p: float, q: float) -> float:
    """The Kullback-Leibler divergence of two coins, 0 <= p <= 1 and 0 < q < 1.

    >>> bernoulli_kl(0.5, 0.25)   # ln(2)/2 + ln(2/3)/2
    0.14384103622589042
    """
    divergence = 0.0
    if p > 0:
        divergence += p * math.log(p / q)
    if p < 1:
        divergence += (1 - p) * math.log((1 - p) / (1 - q))
    return divergence


def imed_index(seen: float, disagreed: float, threshold: float) -> float:
    """The evidence against looking again: `N kl(D/N, threshold) + ln N`.

    >>> imed_index(10, 5, 0.25) == 10 * bernoulli_kl(0.5, 0.25) + math.log(10)
    True
    """
    return seen * bernoulli_kl(disagreed / seen, threshold) + math.log(seen)


@names_fields
@dataclass(frozen=True)
class Imed(Policy):
    """Go to a deeper stage while the evidence against it, N kl + ln N, is less than ln T - 2.

    The index is that of IMED (Honda and Takemura, JMLR 2015) for a coin against a known threshold;
    the elimination walk combines the pairs. A pair is worth looking at if it was never seen, if its
    share of disagreements reaches its threshold, or if `N kl(share, threshold) + ln N` is at most
    `ln T - sooner`. No bound is proved for the combination.

    Args:
        horizon: rounds in all, T; a simulation fills it in.
        sooner: how much less evidence than IMED asks for is enough; 2 was found by experiment.

    >>> evidence = Evidence.from_counts([[0, 20], [0, 0]], [[0, 0], [0, 0]])
    >>> Imed(horizon=10_000).probabilities(evidence, 21, Costs.from_cumulative((0.0, 0.25)))
    array([1., 0.])
    >>> Imed(horizon=10_000).probabilities(evidence, 21, Costs.from_cumulative((0.0, 0.1)))
    array([0., 1.])
    """

    horizon: int | None = None
    sooner: float = 2.0
    name: ClassVar[str] = "imed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon is not None:
            whole_number("horizon", self.horizon, least=1)
        finite_number("sooner", self.sooner, "a number")

    def for_horizon(self, horizon: int) -> Imed:
        """Take the horizon, unless one was set."""
        return dataclasses.replace(self, horizon=horizon) if self.horizon is None else self

    def most_index(self) -> float:
        """The index up to which a look is worth it: `ln T - sooner`.

        >>> Imed(horizon=1, sooner=0.5).most_index()
        -0.5
        """
        if self.horizon is None:
            raise StopwiseError("imed: needs the horizon, as in imed:horizon=10000")
        return math.log(self.horizon) - self.sooner

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        most = self.most_index()

        def worth(i: int, j: int, last: int) -> bool:
            threshold = float(costs.thresholds[i, j])
            seen, disagreed = evidence.counts(i, j)
            if threshold >= 1:
                return False
            if threshold <= 0 or seen == 0 or disagreed >= threshold * seen:
                return True
            return imed_index(seen, disagreed, threshold) <= most

        return certain_depth(costs.stage_count, elimination_walk(costs.stage_count, worth))
