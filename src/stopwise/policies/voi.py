"""USS-VOI: stop when looking deeper no longer pays. A rule of this project, found by experiment."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stopwise.checks import (
    StopwiseError,
    names_fields,
    number_within,
    positive_number,
    whole_number,
)
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy, certain_depth
from stopwise.policies.imed import bernoulli_kl
from stopwise.policies.walks import elimination_walk

# How far looks count beyond the rounds left: see `rounds_that_count`.
LATE_CAUTION = 8.0


def rounds_that_count(rounds: float, seen: float) -> float:
    """By how many rounds a gain is multiplied: `max(m, 8 sqrt(m N))`; m are left, N were looks.

    The optimal stopping rule of one pair, computed backwards from the horizon, is bold while nearly
    all rounds lie ahead, and becomes more careful as they run out: it asks less and less of a look.
    The second term, which takes over once m < 64 N, imitates that.

    >>> rounds_that_count(6_400, 1), rounds_that_count(100, 100)
    (6400.0, 800.0)
    """
    return max(float(rounds), LATE_CAUTION * math.sqrt(float(rounds) * seen))


def price_of_looks(kappa: float, stage_count: int, stage: int) -> float:
    """What a look from a stage must promise for its cost: kappa (deeper stages)^(-1/4).

    Every deeper stage is one more chance to be wrong about stopping here.

    >>> price_of_looks(1.5, 17, 0)
    0.75
    """
    return kappa / math.sqrt(math.sqrt(stage_count - 1.0 - stage))


def looks_to_learn(seen: float, disagreed: float, threshold: float) -> float:
    """About how many looks change the evidence by one unit.

    >>> looks_to_learn(0, 0, 0.5), looks_to_learn(10, 5, 0.5)
    (1.0, 11.0)
    """
    looks = seen + 1.0
    if disagreed < threshold * seen:
        looks /= max(1.0, 2.0 * seen * bernoulli_kl(disagreed / seen, threshold))
    return looks


def stakes(
    a: float, b: float, threshold: float, below: float, above: float, weight: float
) -> tuple[float, float, float]:
    """E(p - c)+, E(c - p)+ and E[p; p < c] for p ~ Beta(a, b), from its tails at c, the threshold.

    With weight = c^a (1-c)^b / B(a, b): E[p; p > c] = mean P(Beta(a+1, b) > c), and that tail is
    P(Beta(a, b) > c) + weight/a.

    >>> stakes(1.0, 1.0, 0.5, 0.5, 0.5, 0.25)   # p is uniform
    (0.125, 0.125, 0.125)
    """
    mean, step = a / (a + b), weight / (a + b)
    return (
        max(0.0, (mean - threshold) * above + step),
        max(0.0, (threshold - mean) * below + step),
        max(0.0, mean * (below - weight / a)),
    )


def value_of_looking(
    seen: float, disagreed: float, threshold: float, excess: float, stake: float = 0.0
) -> tuple[float, float, float]:
    """What one pair has at stake: (gain, loss, looks), for a threshold within (0, 1).

    With p ~ Beta(disagreed + 1, agreed + 1) and c the threshold:

    - gain: E(p - c)+, what stopping for ever would lose in a round; or `stake P(p > c)` if that is
      more, where giving up this pair would leave the walk at a stage that is worse by `stake`;
    - loss: E(c - p)+ + excess E[p; p < c], what one more look costs where it is not needed;
    - looks: about how many of them move the evidence by one unit.

    >>> gain, loss, looks = value_of_looking(0, 0, 0.5, 0.0)   # p is uniform
    >>> gain, loss, looks
    (0.125, 0.125, 1.0)
    """
    from scipy.special import betainc, betaincc, betaln, xlog1py, xlogy

    c = threshold
    a, b = disagreed + 1.0, seen - disagreed + 1.0
    weight = float(np.exp(xlogy(a, c) + xlog1py(b, -c) - betaln(a, b)))  # c^a (1-c)^b / B(a, b)
    below, above = float(betainc(a, b, c)), float(betaincc(a, b, c))
    gain, lost, under = stakes(a, b, c, below, above, weight)
    return (
        max(gain, stake * above),
        lost + excess * under,
        looks_to_learn(seen, disagreed, c),
    )


@dataclass(frozen=True)
class _Voi(Policy):
    """What the two forms share: all but the number of rounds that a look can pay for."""

    kappa: float = 1.5
    rho0: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("kappa", self.kappa)
        number_within("rho0", self.rho0, "a number, 0 or more", least=0)

    def excess(self, evidence: Evidence) -> float:
        """What an unneeded look costs beyond its margin, as a share of the disagreement: rho.

        Under strong dominance the outputs of a round switch at most once along the cascade, so the
        share of rounds that switch again shows how far that fails. A deeper stage that is no worse
        is wrong in at most half of its disagreements, so the share is not doubled.

        >>> UssVoi().excess(Evidence(3))
        0.05
        """
        return self.rho0 + evidence.switched_twice / (evidence.switched + 2)

    def _worth(
        self, evidence: Evidence, rounds: int, costs: Costs
    ) -> Callable[[int, int, int], bool]:
        excess = self.excess(evidence)

        def expected_margin(i: int, j: int) -> float:
            seen, disagreed = evidence.counts(i, j)
            return (disagreed + 1) / (seen + 2) - float(costs.thresholds[i, j])

        def worth(i: int, j: int, last: int) -> bool:
            threshold = float(costs.thresholds[i, j])
            if threshold >= 1:
                return False
            seen, disagreed = evidence.counts(i, j)
            if threshold <= 0 or seen == 0:
                return True
            stake = 0.0 if i == last else max(0.0, expected_margin(last, j))
            gain, loss, looks = value_of_looking(seen, disagreed, threshold, excess, stake)
            price = price_of_looks(self.kappa, costs.stage_count, i)
            return gain >= loss or rounds_that_count(rounds, seen) * gain >= price * loss * looks

        return worth

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        worth = self._worth(evidence, self.rounds_to_repay(round), costs)
        return certain_depth(costs.stage_count, elimination_walk(costs.stage_count, worth))

    @abstractmethod
    def rounds_to_repay(self, round: int) -> int:
        """How many rounds a look in this round may pay for: m."""


@names_fields
@dataclass(frozen=True)
class UssVoi(_Voi):
    """Go deeper while the rounds left can repay the looks; for a known number of rounds.

    For one pair of stages the question is a one-armed bandit: stopping teaches nothing, and a look
    deeper costs something now and may save something in each of the m rounds left. A deeper stage
    is worth it while `M gain >= kappa deeper^(-1/4) loss looks`: see `value_of_looking`; M is m
    with a correction, `rounds_that_count`; `deeper` is how many stages there are beyond. The
    elimination walk combines the pairs. A stage that an earlier one refuses, but where the walk now
    is does not, has more at stake than the refusing pair shows: the walk would stay here.
    Deterministic. No bound on its regret is proved.

    Args:
        kappa: how much a look must promise for its price; larger stops sooner: more regret
            where a deeper stage is optimal, less where the first is. 2 is bolder.
        rho0: what an unneeded look costs beyond its margin, before outputs have shown it.
        horizon: rounds in all; a simulation fills it in. When it has passed, it is doubled.

    >>> evidence = Evidence.from_counts([[0, 50], [0, 0]], [[0, 0], [0, 0]])
    >>> UssVoi(horizon=10_000).probabilities(evidence, 51, Costs.from_cumulative((0.0, 0.25)))
    array([1., 0.])
    >>> UssVoi(horizon=10_000).probabilities(evidence, 51, Costs.from_cumulative((0.0, 0.1)))
    array([0., 1.])
    """

    horizon: int | None = None
    name: ClassVar[str] = "uss-voi"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon is not None:
            whole_number("horizon", self.horizon, least=1)

    def for_horizon(self, horizon: int) -> UssVoi:
        """Take the horizon, unless one was set."""
        return dataclasses.replace(self, horizon=horizon) if self.horizon is None else self

    def rounds_to_repay(self, round: int) -> int:
        """The rounds left. A horizon that has passed was wrong: go on with twice as many.

        >>> [UssVoi(horizon=100).rounds_to_repay(round) for round in (1, 100, 101, 201)]
        [100, 1, 100, 200]
        """
        if self.horizon is None:
            raise StopwiseError(
                "uss-voi: needs the horizon, as in uss-voi:horizon=10000; where it is not known,"
                " take uss-voi-anytime"
            )
        horizon = self.horizon
        while horizon < round:
            horizon *= 2
        return horizon - round + 1


@names_fields
@dataclass(frozen=True)
class UssVoiAnytime(_Voi):
    """Go deeper while as many rounds again can repay the looks; needs no horizon.

    The rule of `UssVoi` with m = round + head_start: at any time it plans for as many rounds as
    have passed. A stage given up is therefore looked at again, ever more rarely. No bound is
    proved.

    Args:
        kappa: how much a look must promise for its price; larger stops sooner: more regret
            where a deeper stage is optimal, less where the first is.
        rho0: what an unneeded look costs beyond its margin, before outputs have shown it.
        head_start: rounds to plan for at the start.

    >>> evidence = Evidence.from_counts([[0, 50], [0, 0]], [[0, 0], [0, 0]])
    >>> UssVoiAnytime().probabilities(evidence, 51, Costs.from_cumulative((0.0, 0.25)))
    array([1., 0.])
    """

    kappa: float = 1.25
    head_start: int = 3000
    name: ClassVar[str] = "uss-voi-anytime"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("head_start", self.head_start, least=0)

    def rounds_to_repay(self, round: int) -> int:
        """As many rounds as have passed, and a head start.

        >>> UssVoiAnytime().rounds_to_repay(1)
        3001
        """
        return round + self.head_start
