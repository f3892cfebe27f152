"""Rounds of stages that are called alone: the policy's stage by itself, or, to learn, all of them.

A stage that is called alone tells nothing of the others, so only full runs teach. Whether a round
is one is a coin of known probability that looks at nothing; so what full runs show is a fair sample
of all items, and may be counted as pairs.
"""

from __future__ import annotations

from stopwise.costs import Costs
from stopwise.live.bookkeeping.ledger import Ledger
from stopwise.live.choosing.chooser import pick
from stopwise.live.counters.tally import Tally
from stopwise.policies.per_item.alone.full_runs import (
    ALWAYS_FULL,
    KAPPA,
    chance_at,
    price_of,
)
from stopwise.policies.per_item.policy import PerItem


class LoneCalls:
    """Draws which stage a round calls alone, or that it is a full run.

    Args:
        ledger: what has been counted, at which prices.
    """

    __slots__ = ("_kappa", "_ledger", "_price", "_priced", "_rate", "_start")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rate = ledger.settings.full_run_rate
        policy = ledger.chooser.policy
        self._priced: Costs | None = None
        self._price: float | None = None
        self._kappa, self._start = KAPPA, ALWAYS_FULL
        if isinstance(policy, PerItem):
            self._kappa, self._start = policy.kappa, policy.always_full

    def full_chance(self, number: int) -> float:
        """The probability that a round is a full run; 0 where the budget has no room for one."""
        ledger = self._ledger
        prices, budgets = ledger.prices, ledger.budgets
        if budgets.limited:
            whole = prices.cumulative[-1]
            if not budgets.allows(0.0, whole) or not budgets.has(whole, ledger.spent):
                return 0.0
        if self._priced is not prices.own:  # it changes only where costs are measured
            self._priced, self._price = prices.own, price_of(prices.own)
        chance = chance_at(number, self._price, self._kappa, self._start)
        return self._rate + (1 - self._rate) * chance

    def draw(
        self, tally: Tally, number: int, sequence: int, deepest: int
    ) -> tuple[int, float, int]:
        """The last stage of a round, its exact probability, and the bits of what it skips."""
        ledger = self._ledger
        u = ledger.chooser.draws.uniform(sequence)
        chance = self.full_chance(number)
        if u < chance:
            return len(ledger.prices.reach) - 1, chance, 0
        p = ledger.chooser.distribution(ledger.counters, tally, number, ledger.prices, deepest)
        # What is left of the round's one random number is uniform again.
        depth = pick(p, (u - chance) / (1 - chance))
        return depth, (1 - chance) * p[depth], (1 << depth) - 1

    def mixed(self, p: list[float], number: int) -> list[float]:
        """The distribution of the last stage of a round, from that of the stage called alone."""
        chance = self.full_chance(number)
        found = [(1 - chance) * share for share in p]
        found[-1] += chance
        return found
