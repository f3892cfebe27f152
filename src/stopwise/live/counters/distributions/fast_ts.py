"""The distribution of USS-TS, carried along: its tests of pairs are Beta tails.

A test holds it to `policies/uss_ts.py` and `policies/uss_ts_jump.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from stopwise.live.counters.distributions.carried import Current, Limits
from stopwise.live.counters.distributions.pair_test import NEGLIGIBLE, PairTest
from stopwise.live.counters.distributions.tested_pairs import CarriedTests
from stopwise.live.pairs import Added
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump


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
        limits = self._limits
        if limits is not None:
            stop, middle, last = limits.of_three(stop, middle, last)
        both = stop + middle
        total = both + last
        self.current = current = ((stop, middle, last), (stop, both, total), total)
        return current

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        del number
        return self._jump_walk() if self._jumps else self._step_walk()

    def _settled(self, pair: PairTest, steps: int) -> bool:
        return min(pair.low, pair.high) <= NEGLIGIBLE and pair.settled(steps)

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
