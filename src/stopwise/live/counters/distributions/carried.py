"""Distributions of the depth that are carried along from round to round, not computed again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from stopwise.live.pairs import Added

Current = tuple[Sequence[float], Sequence[float], float]
"""A distribution of depths, its running sums, and the last of these."""


class Limits(NamedTuple):
    """What full runs and the budget of an item make of a distribution.

    Attributes:
        rate: the share of rounds that are sent all the way.
        deepest: the last stage that can be paid; None: all can.

    >>> Limits(0.1).of([0.5, 0.5, 0.0])
    [0.45, 0.45, 0.1]
    >>> Limits(0.0, 1).of([0.5, 0.25, 0.25])
    [0.5, 0.5, 0.0]
    """

    rate: float = 0.0
    deepest: int | None = None

    def of(self, p: Sequence[float]) -> list[float]:
        """The distribution after limits."""
        rate, deepest = self
        if rate:
            p = [(1 - rate) * share for share in p]
            p[-1] += rate
        last = len(p) - 1
        if deepest is not None and deepest < last:
            p = [*p[:deepest], sum(p[deepest:]), *[0.0] * (last - deepest)]
        return list(p)

    def of_three(self, stop: float, middle: float, last: float) -> tuple[float, float, float]:
        """The same of three depths, written out.

        >>> Limits(0.0, 1).of_three(0.5, 0.25, 0.25)
        (0.5, 0.5, 0.0)
        """
        rate, deepest = self
        if rate:
            keep = 1 - rate
            stop, middle, last = keep * stop, keep * middle, keep * last + rate
        if deepest == 1:
            middle, last = middle + last, 0.0
        elif deepest == 0:
            stop, middle, last = stop + middle + last, 0.0, 0.0
        return stop, middle, last


class Carried(ABC):
    """The distribution of one segment, moved by single rounds.

    Args:
        limits: what full runs and budgets make of a distribution, if there are any.

    Attributes:
        current: the distribution, after limits; None where it is to be made again by `renew`.
        sure: False while a move is under way: an interrupt then leaves it so, and `anchor` is due.
        still: number of further rounds that cannot change the distribution.
        until: up to this round the distribution holds while no pair is seen.
        ages: whether a round that saw no pair moves it too.
    """

    __slots__ = ("_limits", "ages", "current", "still", "sure", "until")

    def __init__(self, limits: Limits | None) -> None:
        self._limits = limits
        self.still = 0
        self.sure = True
        self.ages = False
        self.until = float("inf")
        self.current: Current | None = None

    def doubt(self) -> None:
        """Say that the counts are about to change: nothing is drawn from what is held now."""
        self.sure = False
        self.current = None

    @property
    def unseen(self) -> int:
        """How many further rounds may end before anybody looks at what they showed."""
        return self.still

    @abstractmethod
    def anchor(
        self,
        seen: Sequence[float],
        disagreed: Sequence[float],
        switched: float = 0,
        twice: float = 0,
    ) -> None:
        """Take everything from the counts again.

        Args:
            seen, disagreed: of every pair.
            switched, twice: how often the answer changed once, and twice, on the way.
        """

    @abstractmethod
    def move(self, added: Added) -> None:
        """Count one more round."""

    def move_all(self, rounds: Sequence[Added]) -> None:
        """Count more rounds, in their order."""
        for added in rounds:
            self.move(added)

    @abstractmethod
    def renew(self, number: int) -> Current:
        """Make the distribution of a round; it stays in `current` while it holds."""

    @abstractmethod
    def distribution(self, number: int) -> list[float]:
        """The probability of every depth in a round, by the policy alone."""

    @abstractmethod
    def to_form(self) -> dict[str, Any] | None:
        """What a snapshot must hold beside the counters to go on with the very same bits."""

    @abstractmethod
    def restore(self, form: Any, *counts: Any) -> None:
        """Take what `to_form` gave, unless it does not belong to these counts; see `anchor`."""

    def _limited(self, p: Sequence[float]) -> Current:
        """A distribution as `current` holds it."""
        if self._limits is not None:
            p = self._limits.of(p)
        sums = list(accumulate(p))
        self.current = current = (p, sums, sums[-1])
        return current
