"""Distributions of the depth that are carried along from round to round, not computed again.

A policy whose tests of pairs are Beta tails needs them after every round; one observation moves one
of them by one step, see `pair_test`. And while no test can change by anything that matters for a
number of observations, whatever they show, the distribution stands still and they are only noted.
A test holds the whole to `policies/uss_ts.py` and `policies/uss_ts_jump.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from stopwise.live.counters.pair_test import NEGLIGIBLE, PairTest, count_observations, tails
from stopwise.live.pairs import Added, pair_list, pair_number
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump

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


def of_three(stop: float, middle: float, last: float, limits: Limits | None) -> Current:
    """What `current` holds of three depths: `Limits.of` and running sums, written out.

    >>> of_three(0.5, 0.25, 0.25, Limits(0.0, 1))
    ((0.5, 0.5, 0.0), (0.5, 1.0, 1.0), 1.0)
    """
    if limits is not None:
        rate, deepest = limits
        if rate:
            keep = 1 - rate
            stop, middle, last = keep * stop, keep * middle, keep * last + rate
        if deepest == 1:
            middle, last = middle + last, 0.0
        elif deepest == 0:
            stop, middle, last = stop + middle + last, 0.0, 0.0
    both = stop + middle
    total = both + last
    return (stop, middle, last), (stop, both, total), total


LEAST_STILL, MOST_STILL = 32, 1024
"""How many rounds at least, and at most, are only noted where they cannot matter."""


def warm_up() -> None:
    """Import what the first anchor needs, so that the first round does not wait for it."""
    tails(1.0, 1.0, 0.5)


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


class CarriedTests(Carried):
    """The tests of all pairs of one segment, moved by single observations.

    Args:
        thresholds: `C_j - C_i` in mistakes, as a table.
        priors: of disagreements and agreements.
        limits: see `Carried`.
    """

    __slots__ = ("_noted", "_pairs", "_priors", "_rows", "_thresholds")

    def __init__(
        self,
        thresholds: Sequence[Sequence[float]],
        priors: tuple[float, float],
        limits: Limits | None,
    ) -> None:
        super().__init__(limits)
        stage_count = len(thresholds)
        self._priors = priors
        self._thresholds = [
            min(max(float(thresholds[i][j]), 0.0), 1.0) for i, j in pair_list(stage_count)
        ]
        self._rows = [
            [pair_number(i, j) for j in range(i + 1, stage_count)] for i in range(stage_count - 1)
        ]
        self._pairs: list[PairTest] = []
        self._noted: list[Added] = []

    @abstractmethod
    def _settled(self, steps: int) -> bool:
        """Whether `steps` rounds, whatever they show, cannot change the distribution."""

    def anchor(
        self,
        seen: Sequence[float],
        disagreed: Sequence[float],
        switched: float = 0,
        twice: float = 0,
    ) -> None:
        """Take every pair from its counts again."""
        del switched, twice  # of use to other policies
        self.sure = False
        first, second = self._priors
        self._pairs = self._gathered(
            PairTest(d + first, n - d + second, x)
            for n, d, x in zip(seen, disagreed, self._thresholds, strict=True)
        )
        self._noted = []
        self._stand_still()
        self.sure = True

    def move(self, added: Added) -> None:
        """Count one more observation of each pair that a round saw."""
        if self.still:
            self.still -= 1
            self._noted.append(added)
            return
        if self._noted:
            self._catch_up()
        self.current = None  # first, lest an interrupt leaves an old one
        if count_observations(self._pairs, added.pairs):
            self._stand_still()

    def _gathered(self, pairs: Iterable[PairTest]) -> list[PairTest]:
        """The tests of all pairs as they are kept."""
        return list(pairs)

    def _stand_still(self) -> None:
        """See how many rounds cannot matter any more: powers of two."""
        self.current = None
        self.still = 0
        steps = LEAST_STILL
        while steps <= MOST_STILL and self._settled(steps):
            self.still = steps
            steps *= 2

    def _catch_up(self) -> None:
        """Count what was only noted."""
        pairs = self._pairs
        moved = set()
        for added, times in Counter(self._noted).items():
            for number, differs in added.pairs:
                pair = pairs[number]
                if differs:
                    pair.a += times
                else:
                    pair.b += times
                moved.add(number)
        self._noted.clear()
        for number in moved:
            pairs[number].anchor(pairs[number].a, pairs[number].b)
        self._stand_still()

    # ---- as a snapshot holds it --------------------------------------------------------------

    def to_form(self) -> dict[str, Any]:
        """The carried numbers, so that a restored learner goes on with the very same bits."""
        return {
            "pairs": [pair.to_form() for pair in self._pairs],
            "still": self.still,
            "noted": [[list(move) for move in added.pairs] for added in self._noted],
        }

    def restore(self, form: Any, *counts: Any) -> None:
        """Take what `to_form` gave, unless it does not belong to these counts; see `anchor`."""
        self.anchor(*counts)
        fresh, fresh_still = self._pairs, self.still
        try:
            pairs = self._gathered(PairTest.from_form(pair) for pair in form["pairs"])
            noted = [
                Added(0, tuple((int(k), bool(d)) for k, d in moves)) for moves in form["noted"]
            ]
            still = int(form["still"])
            self._pairs = self._gathered(PairTest.from_form(pair) for pair in form["pairs"])
            self._noted = noted[:]
            if noted:
                self._catch_up()
            belongs = len(pairs) == len(fresh) and all(
                mine.belongs_to(theirs) for mine, theirs in zip(self._pairs, fresh, strict=True)
            )
            belongs = belongs and 0 <= still <= MOST_STILL and (not still or self._settled(still))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            belongs = False
        if belongs:
            self._pairs, self.still, self._noted = pairs, still, noted
        else:
            self._pairs, self.still, self._noted = fresh, fresh_still, []
        self.current = None


class FastTs(CarriedTests):
    """`UssTs` or `UssTsJump` for one cascade.

    >>> fast = FastTs(UssTs(), [[0.0, 0.25], [0.0, 0.0]])
    >>> fast.anchor([2], [0])
    >>> fast.distribution(3)
    [0.578125, 0.421875]
    """

    __slots__ = ("_jumps",)

    def __init__(
        self,
        policy: UssTs | UssTsJump,
        thresholds: Sequence[Sequence[float]],
        limits: Limits | None = None,
    ) -> None:
        super().__init__(thresholds, (policy.prior_disagreed, policy.prior_agreed), limits)
        self._jumps = isinstance(policy, UssTsJump)

    def move_all(self, rounds: Sequence[Added]) -> None:
        """Count more rounds, in their order."""
        if len(rounds) <= self.still:
            self.still -= len(rounds)
            self._noted.extend(rounds)
        else:
            super().move_all(rounds)

    def renew(self, number: int) -> Current:
        """Make the distribution again; it stays in `current` until a pair moves."""
        if len(self._pairs) != 3:
            return self._limited(self.distribution(number))
        # Three stages, the usual case, written out.
        first, second, third = self._pairs
        low, high = first.low, first.high
        stop = low * second.low
        if self._jumps:
            middle = high * third.low
            last = low * second.high + high * third.high
        else:
            go_on = high + low * second.high
            middle = go_on * third.low
            last = go_on * third.high
        self.current = current = of_three(stop, middle, last, self._limits)
        return current

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        return self._jump_walk() if self._jumps else self._step_walk()

    def _settled(self, steps: int) -> bool:
        return all(min(pair.low, pair.high) <= NEGLIGIBLE for pair in self._pairs) and all(
            pair.settled(steps) for pair in self._pairs
        )

    def _jump_walk(self) -> list[float]:
        """The jump walk of `policies/walks.py`."""
        pairs = self._pairs
        result = [1.0] + [0.0] * len(self._rows)
        for i, row in enumerate(self._rows):
            passed = result[i]
            for j, number in enumerate(row, i + 1):
                if passed <= NEGLIGIBLE:
                    break  # what is left of it cannot be drawn
                pair = pairs[number]
                result[j] += passed * pair.high
                passed *= pair.low
            result[i] = passed
        return result

    def _step_walk(self) -> list[float]:
        """The step walk of `policies/walks.py`."""
        pairs = self._pairs
        result = []
        arriving = 1.0
        for row in self._rows:
            passing, failing = 1.0, 0.0
            for number in row:
                pair = pairs[number]
                # The first test to fail is this one: all terms are positive, no digit is lost.
                failing += passing * pair.high
                passing *= pair.low
            result.append(arriving * passing)
            arriving *= failing
        result.append(arriving)
        return result
