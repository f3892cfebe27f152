"""Decisions of USS-VOI-anytime, carried along: its tests of pairs are the same Beta tails.

With evidence as it is, the rule only ever turns towards looking deeper as rounds pass, and the
round in which it first does is known. So a decision stands until then, or until a pair is seen;
and longer where a number of further rounds of its depth, whatever they show, could not change what
was said of any pair that was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stopwise.live.counters.distributions.carried import Current, Limits
from stopwise.live.counters.distributions.pair_test import PairTest
from stopwise.live.counters.distributions.tested_pairs import LEAST_STILL, MOST_STILL, CarriedTests
from stopwise.live.pairs import Added, pair_count, pair_number
from stopwise.policies.imed import bernoulli_kl
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
_SURE = 1 - 1e-6
_PATIENCE = 256  # rounds after which it is asked again, at the latest, whether a decision stands
Asked = tuple[int, int, int, bool]
"""Two stages, the deepest stage visited, and whether going from the first to the second pays."""


class CarriedVoi(CarriedTests):
    """`UssVoiAnytime` for one cascade.

    >>> voi = CarriedVoi(UssVoiAnytime(), [[0.0, 0.25], [0.0, 0.0]])
    >>> voi.anchor([50], [0])
    >>> voi.decide(51), voi.until > 51
    (0, True)
    """

    __slots__ = (
        "_depth", "_patience", "_policy", "_prices", "_stands", "_switched", "_table", "_twice",
        "_wait",
    )  # fmt: skip

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
        # While `still`, the decision is `_depth`, up to the round `_stands`; a round that went
        # deeper ends that.
        self._depth = 0
        self._stands = 0.0
        self._wait = self._patience = 0  # decisions until that is asked again

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
        if self.still and added.pairs:
            deeper = added.pairs[-1][0] >= pair_count(self._depth + 1)
            if deeper or (added.switched and self._depth < 2):
                self._catch_up()
        super().move(added)

    @property
    def unseen(self) -> int:
        """None where a round that went deeper would change the decision."""
        return self.still if self._depth == len(self._table) - 1 else 0

    def renew(self, number: int) -> Current:
        """The distribution in this round: all of it on one depth, but for limits."""
        return self._limited(self.distribution(number))

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth in a round, by the policy alone."""
        p = [0.0] * len(self._table)
        p[self.decide(number)] = 1.0
        return p

    def restore(self, form: Any, *counts: Any) -> None:
        """Take what `to_form` gave; whether a decision stands is asked again."""
        super().restore(form, *counts)
        self._catch_up()

    def decide(self, number: int) -> int:
        """The depth in this round."""
        if self.still and number <= self._stands:
            self.until = self._stands
            return self._depth
        if self._noted or self.still:
            self._catch_up()
        rounds = self._policy.rounds_to_repay(number)
        excess = self._policy.rho0 + self._twice / (self._switched + 2)
        table, pairs, prices = self._table, self._pairs, self._prices
        until = math.inf
        asked: list[Asked] = []

        def worth(i: int, j: int, last: int) -> bool:
            pays = judged(i, j, last)
            asked.append((i, j, last, pays))
            return pays

        def judged(i: int, j: int, last: int) -> bool:
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
            until = min(until, self._first_round(needed, gain, seen) * (1 - _CLOSE))
            return False

        depth = elimination_walk(len(table), worth)
        self.until = until - self._policy.rounds_to_repay(0) - 1.0
        self._wait -= 1
        if self._wait < 0:
            self._see_if_it_stands(number, depth, asked)
        return depth

    def _settled(self, pair: PairTest, steps: int) -> bool:
        return False  # what stands depends on the number of the round: `decide` sees to it

    def _see_if_it_stands(self, number: int, depth: int, asked: Sequence[Asked]) -> None:
        """Find how many rounds of this depth cannot change the decision, whatever they show."""
        ahead = self._policy.rounds_to_repay(0)
        turns = depth >= 2  # only with three answers the answer can change and change back
        still, steps, until = 0, LEAST_STILL, 0.0
        while steps <= MOST_STILL:
            # Of pairs beyond the depth nothing more is seen.
            first = min(
                self._first_change(
                    one, steps if turns else 0, steps if one[1] <= depth else 0, number + ahead
                )
                for one in asked
            )
            if first <= number + ahead + steps:
                break
            still, until = steps, first * (1 - _CLOSE) - ahead - 1.0
            steps *= 2
        patience = 0 if still else min(_PATIENCE, 2 * self._patience + LEAST_STILL)
        # All after the last call: an interrupt leaves the old ones or the new ones.
        self._depth, self._stands, self.still = depth, until, still
        self._live = self._live if still == 0 else frozenset()  # then all miss rounds
        self._wait = self._patience = patience

    def _first_change(self, asked: Asked, turns: int, more: int, rounds: float) -> float:
        """At how many rounds to repay, at the earliest, something else may be said of a pair.

        Of all that may be seen, agreement in every round makes p smallest and disagreement largest;
        and gain and loss each move one way with p, but for E[p; p < c], which is between 0 and
        c P(p < c).

        Args:
            asked: the pair, and what was said.
            turns: in how many rounds, at most, the answer may change on the way.
            more: how many may see the pair.
            rounds: to repay now.
        """
        i, j, last, pays = asked
        c = self._table[i][j]
        if c <= 0.0 or c >= 1.0:
            return math.inf
        pair, rho0 = self._pairs[pair_number(i, j)], self._policy.rho0
        seen, disagreed = pair.n - 2.0, pair.a - 1.0
        most = seen + more
        if pays:
            if seen == 0.0:
                return 0.0 if more else math.inf
            excess = rho0 + (self._twice + turns) / (self._switched + 2)
            worst = PairTest(pair.a, pair.b + more, c) if more else pair
            gain, loss, _ = stakes(worst.a, worst.b, c, worst.low, worst.high, worst.w)
            loss += excess * c * worst.low
            needed = self._prices[i] * loss * (most + 1.0)
            pays = gain * _SURE >= loss or rounds_that_count(rounds, seen) * gain * _SURE >= needed
            return math.inf if pays else 0.0
        best = PairTest(pair.a + more, pair.b, c) if more else pair
        gain, loss, under = stakes(best.a, best.b, c, best.low, best.high, best.w)
        if not more:
            loss += under * (rho0 + self._twice / (self._switched + 2 + turns))
        if i != last:
            other = self._pairs[pair_number(last, j)]
            stake = (other.a + more) / (other.n + more) - self._table[last][j]
            gain = max(gain, stake * best.high)
        if gain >= loss * _SURE:
            return 0.0
        # The fewest looks: as few seen as now, and evidence as far from the threshold as can be.
        looks = seen + 1.0
        if disagreed < c * most:
            looks /= max(1.0, 2.0 * most * bernoulli_kl(disagreed / most, c))
        return self._first_round(self._prices[i] * loss * looks * _SURE, gain, most)

    @staticmethod
    def _first_round(needed: float, gain: float, seen: float) -> float:
        """The m at which max(m, 8 sqrt(m N)) gain reaches `needed`."""
        if gain <= 0.0:
            return math.inf
        count = needed / gain
        late = count / LATE_CAUTION
        return min(count, late * late / seen)  # infinite, where a power would raise OverflowError


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
