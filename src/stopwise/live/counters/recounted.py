"""Distributions of the depth whose counts move in every round, so that no test can be carried.

Where older rounds lose weight every count changes in every round, and where segments lend each
other evidence every round of one changes what all may read. The counts themselves are carried here,
from round to round, and the distribution is made from them when a round begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stopwise.live.counters.carried import Carried, Current, Limits
from stopwise.live.counters.lending import lend
from stopwise.live.pairs import Added

FromCounts = Callable[[Sequence[float], Sequence[float], Sequence[float]], list[float]]
"""From how often pairs were seen, how often they disagreed, and their thresholds."""


class Recounted(Carried):
    """The counts of one segment, and the distribution by them.

    Args:
        from_counts: the rule.
        thresholds, limits: see `Carried`.
        discount: what a round leaves of older counts.

    >>> def share(seen, disagreed, thresholds): return [disagreed[0] / seen[0], seen[0]]
    >>> counts = Recounted(share, [[0.0, 0.25], [0.0, 0.0]], discount=0.5)
    >>> counts.anchor([4], [4])
    >>> counts.move(Added(0b11, ((0, False),)))
    >>> counts.distribution(1)
    [0.6666666666666666, 3.0]
    """

    __slots__ = ("_discount", "_from_counts", "disagreed", "seen")

    def __init__(
        self,
        from_counts: FromCounts,
        thresholds: Sequence[Sequence[float]],
        limits: Limits | None = None,
        discount: float = 1.0,
    ) -> None:
        super().__init__(thresholds, (0.0, 0.0), limits)
        self._from_counts = from_counts
        self._discount = discount
        self.ages = discount != 1.0
        self.seen: list[float] = [0] * len(self._thresholds)
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
        return self._limited(self.distribution(number))

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        return self._from_counts(self.seen, self.disagreed, self._thresholds)

    def _settled(self, steps: int) -> bool:
        return False

    def to_form(self) -> dict[str, Any] | None:
        """Nothing: the counters hold these counts to the last bit."""
        return None

    def restore(self, form: Any, *counts: Any) -> None:
        """Take the counts."""
        del form
        self.anchor(*counts)


class PoolCounts(Recounted):
    """The counts of all segments together, which lent distributions are made from.

    Args:
        from_counts, thresholds, limits: see `Recounted`; used by the segments.
    """

    __slots__ = ("made",)

    def __init__(
        self,
        from_counts: FromCounts,
        thresholds: Sequence[Sequence[float]],
        limits: Limits | None = None,
    ) -> None:
        super().__init__(from_counts, thresholds, limits)
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
        from_counts, thresholds, limits: see `Recounted`.
        pool: the counts of all segments.
        strength: how many rounds the others may count for.
    """

    __slots__ = ("_pool", "_strength")

    def __init__(
        self,
        from_counts: FromCounts,
        thresholds: Sequence[Sequence[float]],
        limits: Limits | None,
        pool: PoolCounts,
        strength: float,
    ) -> None:
        super().__init__(from_counts, thresholds, limits)
        self._pool = pool
        self._strength = strength

    def renew(self, number: int) -> Current:
        """Make the distribution again; it holds until any segment sees a pair."""
        self._pool.made.append(self)
        return super().renew(number)

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        pool = self._pool
        seen, disagreed = lend(
            self.seen, self.disagreed, pool.seen, pool.disagreed, self._strength
        )
        return self._from_counts(seen, disagreed, self._thresholds)


class Recounting:
    """Makes the counts of the segments of one learner.

    Args:
        from_counts, thresholds, limits: see `Recounted`.

    >>> def all_deep(seen, disagreed, thresholds): return [0.0, 1.0]
    >>> making = Recounting(all_deep, [[0.0, 0.25], [0.0, 0.0]], None)
    >>> making.aging(0.5).distribution(1)
    [0.0, 1.0]
    """

    def __init__(
        self,
        from_counts: FromCounts,
        thresholds: Sequence[Sequence[float]],
        limits: Limits | None,
    ) -> None:
        self._given = (from_counts, thresholds, limits)

    def aging(self, discount: float) -> Recounted:
        """Of a segment whose older rounds lose weight."""
        return Recounted(*self._given, discount)

    def pool(self) -> PoolCounts:
        """Of all segments together."""
        return PoolCounts(*self._given)

    def lent(self, pool: PoolCounts, strength: float) -> Lent:
        """Of a segment that others lend to."""
        return Lent(*self._given, pool, strength)
