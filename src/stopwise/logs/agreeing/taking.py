"""Taking items one after the other, on a ladder of designs.

A design that ends at its first find is cheap if all goes well, and bad luck if not. So a few
designs stand ready, each with a share of the chance, each looking at more items than the one before
it. An item has *one* coin, a number between 0 and 1: under a design it is looked at if the number
is below the design's rate. When a design has ended, the next one may go on: it also looks at the
items taken so far whose numbers lie below its own rate, and counts what it finds from the first
item on. To each design the looks of the others are only part of what has been seen, so that what
`looks.py` says holds for each one by itself, and all together break the promise no more often than
their shares add up to. Which design to end with may be chosen at will.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.logs.agreeing.looks import Design, least_rate

SHARES = (0.6, 0.25, 0.15)
"""What each design of a ladder may use of the chance that the promise is broken."""

_HIGHEST = 0.6


def ladder(first: Design, allowed: int, alpha: float) -> tuple[Design, ...]:
    """A design and those that stand ready behind it, each for more finds.

    Args:
        first: made for `SHARES[0]` of alpha.

    >>> from stopwise.logs.agreeing.looks import chance_of_breaking, designs
    >>> rungs = ladder(designs(50, 0.06)[0], 50, 0.1)
    >>> [rung.found for rung in rungs]
    [0, 2, 6]
    >>> sum(chance_of_breaking(50, rung) for rung in rungs) <= 0.1
    True
    """
    rungs = [first]
    for share in SHARES[1:]:
        found = 2 * rungs[-1].found + 2
        rate = max(least_rate(allowed, found, share * alpha), rungs[-1].rate)
        if rate > _HIGHEST:
            break
        rungs.append(Design(found, rate))
    return tuple(rungs)


class Taking:
    """Items in the order in which they are taken, and how far each design goes.

    Args:
        rungs: the ladder; the first is the present one until `climb`.
        look: calls the last stage on items and says which of their answers differ.
        random: where the coins come from.

    Attributes:
        items: in order.
        rung: the number of the present design.

    >>> found = {3: True, 7: True}
    >>> look = lambda items: np.array([int(at) in found for at in items], dtype=bool)
    >>> rungs = (Design(0, 1.0), Design(1, 1.0))
    >>> taking = Taking(rungs, look, np.random.default_rng(0))
    >>> taking.take(np.arange(5)), taking.end         # item 3 is found, and ends it
    (False, 3)
    >>> taking.climb(), taking.take(np.arange(5, 9)), taking.end
    (True, False, 7)
    """

    def __init__(
        self,
        rungs: tuple[Design, ...],
        look: Callable[[IntArray], NDArray[np.bool_]],
        random: np.random.Generator,
    ) -> None:
        self.rungs = rungs
        self.rung = 0
        self.items = np.zeros(0, dtype=np.int64)
        self._look = look
        self._random = random
        self._coins = np.zeros(0)
        self._looked = np.zeros(0, dtype=np.bool_)
        self._differs = np.zeros(0, dtype=np.bool_)

    @property
    def design(self) -> Design:
        """The present design."""
        return self.rungs[self.rung]

    def take(self, items: IntArray) -> bool:
        """Take these items next; whether the present design goes on behind them."""
        self.items = np.concatenate([self.items, items])
        # A coin is thrown when the item's place is fixed, and never again.
        self._coins = np.concatenate([self._coins, self._random.random(len(items))])
        nothing = np.zeros(len(items), dtype=np.bool_)
        self._looked = np.concatenate([self._looked, nothing])
        self._differs = np.concatenate([self._differs, nothing])
        return self._look_on()

    def climb(self) -> bool:
        """Go over to the next design; whether it goes on behind the items taken so far."""
        self.rung += 1
        return self._look_on()

    def _look_on(self) -> bool:
        new = np.flatnonzero((self._coins < self.design.rate) & ~self._looked)
        if len(new):
            self._looked[new] = True
            self._differs[new] = self._look(self.items[new])
        return self.end == len(self.items)

    @property
    def looked(self) -> IntArray:
        """The items that were looked at."""
        return self.items[self._looked]

    @property
    def end(self) -> int:
        """How many items the present design answers or looks at before it ends."""
        return self._end(self.rung)

    @property
    def found(self) -> int:
        """Differences found under the present design, up to the one that ended it."""
        found = int((self._differs & (self._coins < self.design.rate)).sum())
        return min(found, self.design.found + 1)

    def answered_early(self) -> IntArray:
        """Items that keep their early answer, under the design that has most of them."""
        ends = [self._end(rung) for rung in range(self.rung + 1)]
        best = max(range(len(ends)), key=ends.__getitem__)
        self.rung = best
        upto = ends[best]
        return self.items[:upto][~self._looked[:upto]]

    def _end(self, rung: int) -> int:
        design = self.rungs[rung]
        found = np.cumsum(self._differs & (self._coins < design.rate))
        return int(np.searchsorted(found, design.found + 1))
