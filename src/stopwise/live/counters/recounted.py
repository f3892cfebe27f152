"""Distributions of the depth whose counts or prices move in every round: no test can be carried.

Where older rounds lose weight every count changes in every round, where segments lend each other
evidence every round of one changes what all may read, and where costs are measured every call
changes what would pay. The counts themselves are carried here, from round to round, and the
distribution is made from them when a round begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.live.counters.carried import Carried, Current, Limits
from stopwise.live.counters.lending import lend
from stopwise.live.pairs import Added


@dataclass(frozen=True)
class CountRule:
    """How a distribution is made from counts.

    Attributes:
        from_counts: from how often pairs were seen, how often they disagreed, and their thresholds.
        thresholds: those of this moment, of every pair.
        limits: what full runs and budgets make of a distribution, if there are any.
        fixed: whether the thresholds stay as they are.
    """

    from_counts: Callable[[Sequence[float], Sequence[float], Sequence[float]], list[float]]
    thresholds: Callable[[], Sequence[float]]
    limits: Limits | None = None
    fixed: bool = True

    def aging(self, discount: float) -> Recounted:
        """The counts of a segment; `discount` is what a round leaves of older ones."""
        return Recounted(self, discount)

    def pool(self) -> PoolCounts:
        """The counts of all segments together."""
        return PoolCounts(self)

    def lent(self, pool: PoolCounts, strength: float) -> Lent:
        """The counts of a segment to which the others lend up to `strength` rounds."""
        return Lent(self, pool, strength)


class Recounted(Carried):
    """The counts of one segment, and the distribution by them.

    Args:
        rule: how it is made.
        discount: what a round leaves of older counts.

    >>> def share(seen, disagreed, thresholds): return [disagreed[0] / seen[0], seen[0]]
    >>> counts = CountRule(share, lambda: [0.25]).aging(0.5)
    >>> counts.anchor([4], [4])
    >>> counts.move(Added(0b11, ((0, False),)))
    >>> counts.distribution(1)
    [0.6666666666666666, 3.0]
    """

    __slots__ = ("_discount", "_rule", "disagreed", "seen")

    def __init__(self, rule: CountRule, discount: float = 1.0) -> None:
        super().__init__(rule.limits)
        self._rule = rule
        self._discount = discount
        self.ages = discount != 1.0
        self.seen: list[float] = [0] * len(rule.thresholds())
        self.disagreed: list[float] = self.seen[:]

    def anchor(
        self,
        seen: Sequence[float],
        disagreed: Sequence[float],
        switched: float = 0,
        twice: float = 0,
    ) -> None:
        """Take the counts again."""
        del switched, twice
        self.sure = False
        self.current = None
        self.seen, self.disagreed = list(seen), list(disagreed)
        self.sure = True

    def move(self, added: Added) -> None:
        """Count one more round, with the very steps of `Tally.add_recent`."""
        self.current = None
        if self.ages:
            d = self._discount
            self.seen = [value * d for value in self.seen]
            self.disagreed = [value * d for value in self.disagreed]
        seen, disagreed = self.seen, self.disagreed
        for number, differs in added.pairs:
            seen[number] += 1
            if differs:
                disagreed[number] += 1

    def renew(self, number: int) -> Current:
        """Make the distribution again."""
        current = self._limited(self.distribution(number))
        if not self._rule.fixed:
            self.current = None  # a round of another segment may change the prices
        return current

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        rule = self._rule
        return rule.from_counts(self.seen, self.disagreed, rule.thresholds())

    def to_form(self) -> dict[str, Any] | None:
        """Nothing: the counters hold these counts to the last bit."""
        return None

    def restore(self, form: Any, *counts: Any) -> None:
        """Take the counts."""
        del form
        self.anchor(*counts)


class PoolCounts(Recounted):
    """The counts of all segments together, from which they lend each other."""

    __slots__ = ("made",)

    def __init__(self, rule: CountRule) -> None:
        super().__init__(rule)
        self.made: list[Lent] = []  # those whose distribution holds until the next move
        self.sure = False

    def anchor(self, *counts: Any) -> None:
        """Take the counts again."""
        self._forget()
        super().anchor(*counts)

    def move(self, added: Added) -> None:
        """Count one more round, of whichever segment."""
        self._forget()
        super().move(added)

    def _forget(self) -> None:
        for one in self.made:
            one.current = None
        self.made.clear()


class Lent(Recounted):
    """The counts of one segment, and the distribution by them and what the others lend.

    Args:
        rule: how it is made.
        pool: the counts of all segments.
        strength: how many rounds the others may count for.
    """

    __slots__ = ("_pool", "_strength")

    def __init__(self, rule: CountRule, pool: PoolCounts, strength: float) -> None:
        super().__init__(rule)
        self._pool = pool
        self._strength = strength

    def renew(self, number: int) -> Current:
        """Make the distribution again; it holds until any segment sees a pair."""
        if self._rule.fixed:  # else it is made again in every round
            self._pool.made.append(self)
        return super().renew(number)

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        rule, pool = self._rule, self._pool
        seen, disagreed = lend(self.seen, self.disagreed, pool.seen, pool.disagreed, self._strength)
        return rule.from_counts(seen, disagreed, rule.thresholds())
