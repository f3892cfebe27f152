"""Decisions of USS-VOI-anytime, carried along: its tests of pairs are the same Beta tails.

With evidence as it is, the rule only ever turns towards looking deeper as rounds pass, and the
round in which it first does is known. So a decision stands until then, or until a pair is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stopwise.live.counters.carried import CarriedTests, Current, Limits
from stopwise.live.counters.pair_test import PairTest
from stopwise.live.pairs import Added, pair_number
from stopwise.policies.voi import (
    LATE_CAUTION,
    UssVoiAnytime,
    looks_to_learn,
    price_of_looks,
    rounds_that_count,
    stakes,
    value_of_looking,
)
from stopwise.policies.walks import elimination_walk

_CLOSE = 1e-9
"""Two sides nearer than this, as a share of the larger, are computed once more from the counts."""


class CarriedVoi(CarriedTests):
    """`UssVoiAnytime` for one cascade.

    >>> voi = CarriedVoi(UssVoiAnytime(), [[0.0, 0.25], [0.0, 0.0]])
    >>> voi.anchor([50], [0])
    >>> voi.decide(51), voi.until > 51
    (0, True)
    """

    __slots__ = ("_policy", "_prices", "_switched", "_table", "_twice")

    def __init__(
        self,
        policy: UssVoiAnytime,
        thresholds: Sequence[Sequence[float]],
        limits: Limits | None = None,
    ) -> None:
        super().__init__(thresholds, (1.0, 1.0), limits)
        self._policy = policy
        self._table = thresholds
        stage_count = len(thresholds)
        self._prices = [
            price_of_looks(policy.kappa, stage_count, i) for i in range(stage_count - 1)
        ]
        self._switched = self._twice = 0.0

    def anchor(
        self,
        seen: Sequence[float],
        disagreed: Sequence[float],
        switched: float = 0,
        twice: float = 0,
    ) -> None:
        """Take everything from the counts again."""
        self._switched, self._twice = switched, twice
        super().anchor(seen, disagreed)

    def move(self, added: Added) -> None:
        """Count one more observation of each pair that a round saw."""
        self._switched += added.switched
        self._twice += added.switched_twice
        super().move(added)

    def renew(self, number: int) -> Current:
        """The distribution in this round: all of it on one depth, but for limits."""
        return self._limited(self.distribution(number))

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth in a round, by the policy alone."""
        p = [0.0] * len(self._table)
        p[self.decide(number)] = 1.0
        return p

    def decide(self, number: int) -> int:
        """The depth in this round."""
        if self.still:
            self.until = math.inf
            return len(self._table) - 1
        if self._noted:
            self._catch_up()
        rounds = self._policy.rounds_to_repay(number)
        excess = self._policy.rho0 + self._twice / (self._switched + 2)
        table, pairs, prices = self._table, self._pairs, self._prices
        until = math.inf

        def worth(i: int, j: int, last: int) -> bool:
            nonlocal until
            threshold = table[i][j]
            if threshold >= 1:
                return False
            pair = pairs[pair_number(i, j)]
            seen = pair.n - 2.0
            if threshold <= 0 or seen == 0:
                return True
            stake = 0.0
            if i != last:
                other = pairs[pair_number(last, j)]
                stake = max(0.0, other.a / other.n - table[last][j])
            gain, loss, looks = _value(pair, threshold, excess, stake)
            needed = prices[i] * loss * looks
            promised = rounds_that_count(rounds, seen) * gain
            if abs(gain - loss) <= _CLOSE * loss or abs(promised - needed) <= _CLOSE * needed:
                disagreed = pair.a - 1.0
                gain, loss, looks = value_of_looking(seen, disagreed, threshold, excess, stake)
                needed = prices[i] * loss * looks
                promised = rounds_that_count(rounds, seen) * gain
            if gain >= loss or promised >= needed:
                return True
            if gain > 0:
                # max(m, 8 sqrt(m N)) gain reaches `needed` in the round that is first here.
                count = needed / gain
                first = min(count, (count / LATE_CAUTION) ** 2 / seen)
                until = min(until, first * (1 - _CLOSE))
            return False

        depth = elimination_walk(len(table), worth)
        self.until = until - self._policy.rounds_to_repay(0) - 1.0
        return depth

    def _settled(self, steps: int) -> bool:
        """Whether all stages are worth it after `steps` rounds, whatever they show and cost.

        Of all that may be seen, agreement in every round makes every p smallest; and gain and loss
        each move one way with p, but for E[p; p < c], which is at most c P(p < c).
        """
        excess = self._policy.rho0 + (self._twice + steps) / (self._switched + 2)
        for pair in self._pairs:
            c = pair.x
            if c <= 0.0:
                continue
            if c >= 1.0 or pair.n <= 2.0 or pair.a / (pair.n + steps) < 2.0 * c:
                return False
            worst = PairTest(pair.a, pair.b + steps, c)
            gain, loss, _ = stakes(worst.a, worst.b, c, worst.low, worst.high, worst.w)
            if gain < 2.0 * (loss + excess * c * worst.low):
                return False
        return True


def _value(
    pair: PairTest, threshold: float, excess: float, stake: float
) -> tuple[float, float, float]:
    """`value_of_looking`, from tails that are carried along."""
    gain, lost, under = stakes(pair.a, pair.b, threshold, pair.low, pair.high, pair.w)
    return (
        max(gain, stake * pair.high),
        lost + excess * under,
        looks_to_learn(pair.n - 2.0, pair.a - 1.0, threshold),
    )
