"""Distributions of the depth whose counts or prices move in every round: no test can be carried.

Where older rounds lose weight every count changes in every round, where segments lend each other
evidence every round of one changes what all may read, and where costs are measured every call
changes what would pay. The counts themselves are carried here, from round to round, and the
distribution is made from them when a round begins. Where only evidence moves, a pair whose test is
as good as settled is left alone for as many rounds as cannot unsettle it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stopwise.live.counters.distributions.carried import Carried, Current, Limits
from stopwise.live.counters.distributions.lend import lend, lend_pair
from stopwise.live.pairs import Added

_LONG, _LONGEST = 96, 1024  # rounds for which a test is left alone
_UNSEEN = 63
"""Where segments lend, this number of rounds may end before anybody looks at what they showed."""


class PairRule(Protocol):
    """A policy that tests each pair by itself, and makes the distribution from these tests."""

    def distribution(
        self, seen: Sequence[float], disagreed: Sequence[float], thresholds: Sequence[float]
    ) -> list[float]:
        """The distribution of the depth, from the counts and thresholds of all pairs."""

    def test(
        self, seen: float, disagreed: float, threshold: float
    ) -> tuple[tuple[float, float], float]:
        """The chances that a pair's sample falls below its threshold, and that it does not.

        Returns:
            Both; and how many rounds, whatever they show, leave them as they are.
        """

    def walk(self, tests: Sequence[tuple[float, float]]) -> list[float]:
        """The distribution of the depth by the tests of all pairs."""


@dataclass(frozen=True)
class CountRule:
    """How a distribution is made from counts.

    Attributes:
        pairs: by the tests of all pairs.
        thresholds: those of this moment, of every pair.
        limits: what full runs and budgets make of a distribution, if there are any.
        fixed: whether the thresholds stay as they are.
    """

    pairs: PairRule
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

    >>> from stopwise.live.choosing.from_counts import FromCounts
    >>> from stopwise.policies.uss_ts import UssTs
    >>> counts = CountRule(FromCounts(UssTs(), 2), lambda: [0.25]).aging(0.5)
    >>> counts.anchor([4], [4])
    >>> counts.move(Added(0b11, ((0, False),)))
    >>> counts.seen, counts.disagreed
    ([3.0], [2.0])
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
        self.count(added)

    def count(self, added: Added, times: int = 1) -> None:
        """Count equal rounds, and leave the distribution as it is; one by one where counts age."""
        if self.ages:
            d = self._discount
            self.seen = [value * d for value in self.seen]
            self.disagreed = [value * d for value in self.disagreed]
        seen, disagreed = self.seen, self.disagreed
        for number, differs in added.pairs:
            seen[number] += times
            if differs:
                disagreed[number] += times

    def renew(self, number: int) -> Current:
        """Make the distribution again."""
        current = self._drawn_from(self.distribution(number))
        if not self._rule.fixed:
            self.current = None  # a round of another segment may change the prices
        return current

    def _drawn_from(self, p: Sequence[float]) -> Current:
        """A distribution as `current` holds it."""
        if len(p) != 3:
            return self._limited(p)
        stop, middle, last = p
        if self._limits is not None:
            stop, middle, last = self._limits.of_three(stop, middle, last)
        both = stop + middle
        total = both + last
        self.current = current = ((stop, middle, last), (stop, both, total), total)
        return current

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        rule = self._rule
        return rule.pairs.distribution(self.seen, self.disagreed, rule.thresholds())

    def to_form(self) -> dict[str, Any] | None:
        """Nothing: the counters hold these counts to the last bit."""
        return None

    def restore(self, form: Any, *counts: Any) -> None:
        """Take the counts."""
        del form
        self.anchor(*counts)


class PoolCounts(Recounted):
    """The counts of all segments together, from which they lend each other.

    Attributes:
        clock: how many rounds have moved it.
    """

    __slots__ = ("clock",)

    def __init__(self, rule: CountRule) -> None:
        super().__init__(rule)
        self.clock = 0
        self.sure = False

    @property
    def unseen(self) -> int:
        """How many further rounds may end before anybody looks at what they showed."""
        return _UNSEEN

    def anchor(self, *counts: Any) -> None:
        """Take the counts again."""
        self.sure = False
        self.clock += 2 * _LONGEST  # nothing that was made before holds
        super().anchor(*counts)

    def move(self, added: Added, times: int = 1) -> None:
        """Count one more round, or several equal ones, of whichever segment."""
        self.clock += times
        self.count(added, times)


class Lent(Recounted):
    """The counts of one segment, and the distribution by them and what the others lend.

    Args:
        rule: how it is made.
        pool: the counts of all segments.
        strength: how many rounds the others may count for.
    """

    __slots__ = ("_held", "_holds", "_pool", "_rests", "_strength", "_tests", "_unseen", "_until")

    def __init__(self, rule: CountRule, pool: PoolCounts, strength: float) -> None:
        self._pool = pool
        super().__init__(rule)
        self._strength = strength
        # The tests of all pairs; up to which clock of the pool each of them is left alone, and up
        # to which it holds whatever rounds that nobody has looked at have shown.
        self._tests = [(0.0, 1.0)] * len(self.seen)
        self._until = [-1] * len(self.seen)
        self._unseen = [-1] * len(self.seen)

    @property
    def current(self) -> Current | None:
        """The distribution, after limits, where no rounds that nobody has looked at can change it.

        A segment does not see the rounds of the others: only the clock of the pool tells of them.
        """
        pool = self._pool
        return self._held if pool.sure and pool.clock <= self._rests else None

    @current.setter
    def current(self, made: Current | None) -> None:
        self._held = made
        self._holds = self._rests = -1  # up to which clock of the pool; `renew` knows

    def anchor(self, *counts: Any) -> None:
        """Take the counts again."""
        self._until = [-1] * len(self._until)
        super().anchor(*counts)

    # By a round the pool moves too, and so its clock: what holds for longer is kept.
    move = Recounted.count

    def renew(self, number: int) -> Current:
        """Make the distribution again, unless it still holds."""
        if not self._rule.fixed:
            return super().renew(number)
        held = self._held
        if held is None or self._pool.clock > self._holds:
            held = self._drawn_from(self._rule.pairs.walk(self._tested()))
            self._holds = holds = min(self._until)
            self._rests = min(self._unseen) if holds > self._pool.clock else -1
        return held

    def _tested(self) -> list[tuple[float, float]]:
        """The tests of all pairs; those that hold are not made again."""
        pool, rule, until = self._pool, self._rule.pairs, self._until
        clock = pool.clock
        for at, x in enumerate(self._rule.thresholds()):
            if until[at] < clock:
                n, d = lend_pair(
                    self.seen[at], self.disagreed[at], pool.seen[at], pool.disagreed[at],
                    self._strength,
                )  # fmt: skip
                self._tests[at], stands = rule.test(n, d, x)
                rests = clock + int(stands if stands < _LONGEST else _LONGEST)
                unseen = self._unseen[at] = rests - _UNSEEN
                # One that stands for long is tested again before it might no longer do so unseen.
                until[at] = unseen if unseen > clock + _LONG else rests
        return self._tests

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        rule, pool = self._rule, self._pool
        seen, disagreed = lend(self.seen, self.disagreed, pool.seen, pool.disagreed, self._strength)
        return rule.pairs.distribution(seen, disagreed, rule.thresholds())
