"""The distribution of USS-TS from counts that change in every round, in plain Python.

Where evidence loses weight, is lent between segments, or costs are measured, nothing can be carried
along: every pair is evaluated again in every round. For a few stages that takes a tenth of the time
of the same with arrays. A test holds it to the policies.
"""

from __future__ import annotations

from collections.abc import Sequence

from stopwise.live.counters.distributions.pair_test import far_for, one_tail
from stopwise.live.pairs import pair_number
from stopwise.policies.base import Policy
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump

_FEW = 8
"""With more stages than this, arrays are quicker."""
_RARE = 1e-15  # where a tail is larger, it need not be asked for how long it is negligible


class FromCounts:
    """`UssTs` or `UssTsJump`, for a few stages.

    >>> FromCounts(UssTs(), 2).distribution([2], [0], [0.25])
    [0.578125, 0.421875]
    """

    __slots__ = ("_agreed", "_disagreed", "_jumps", "_rows", "_temper")

    def __init__(self, policy: UssTs | UssTsJump, stage_count: int) -> None:
        self._jumps = isinstance(policy, UssTsJump)
        self._temper = policy.temper if isinstance(policy, UssTsJump) else 1.0
        self._disagreed, self._agreed = policy.prior_disagreed, policy.prior_agreed
        self._rows = [
            [(j, pair_number(i, j)) for j in range(i + 1, stage_count)]
            for i in range(stage_count - 1)
        ]

    @classmethod
    def of(cls, policy: Policy, stage_count: int) -> FromCounts | None:
        """For this policy and number of stages; None where there is no such way.

        >>> FromCounts.of(UssTs(), 50) is None
        True
        """
        rule = type(policy)._depth_probabilities
        jumps = isinstance(policy, UssTsJump) and rule is UssTsJump._depth_probabilities
        if stage_count <= _FEW and (jumps or type(policy) is UssTs):
            return cls(policy, stage_count)  # type: ignore[arg-type]
        return None

    def distribution(
        self, seen: Sequence[float], disagreed: Sequence[float], thresholds: Sequence[float]
    ) -> list[float]:
        """The probability of every depth.

        Args:
            seen, disagreed: of every pair.
            thresholds: of every pair, from 0 to 1.
        """
        temper, first, second = self._temper, self._disagreed, self._agreed
        return self.walk(
            [
                one_tail(temper * d + first, temper * (n - d) + second, x)  # as `test` does
                for n, d, x in zip(seen, disagreed, thresholds, strict=True)
            ]
        )

    def test(
        self, seen: float, disagreed: float, threshold: float
    ) -> tuple[tuple[float, float], float]:
        """The chances that a pair's sample falls below its threshold, and that it does not.

        Returns:
            Both; and how many rounds, whatever they show, leave them as they are.
        """
        temper = self._temper
        a, b = temper * disagreed + self._disagreed, temper * (seen - disagreed) + self._agreed
        found = low, high = one_tail(a, b, threshold)
        if low > _RARE and high > _RARE:
            return found, 0.0
        return found, far_for(a, b, threshold) / max(temper, 1.0)

    def walk(self, tests: Sequence[tuple[float, float]]) -> list[float]:
        """The distribution of the depth by the tests of all pairs."""
        if len(tests) != 3:
            return self._jump_walk(tests) if self._jumps else self._step_walk(tests)
        # Three stages, the usual case, written out.
        (low, high), (second_low, second_high), (third_low, third_high) = tests
        if self._jumps:
            last = low * second_high + high * third_high
            return [low * second_low, high * third_low, last]
        go_on = high + low * second_high
        return [low * second_low, go_on * third_low, go_on * third_high]

    def _jump_walk(self, tests: Sequence[tuple[float, float]]) -> list[float]:
        """The jump walk of `policies/walks.py`."""
        result = [1.0] + [0.0] * len(self._rows)
        for i, row in enumerate(self._rows):
            passed = result[i]
            for j, number in row:
                low, high = tests[number]
                result[j] += passed * high
                passed *= low
            result[i] = passed
        return result

    def _step_walk(self, tests: Sequence[tuple[float, float]]) -> list[float]:
        """The step walk of `policies/walks.py`."""
        result = []
        arriving = 1.0
        for row in self._rows:
            passing, failing = 1.0, 0.0
            for _, number in row:
                low, high = tests[number]
                failing += passing * high
                passing *= low
            result.append(arriving * passing)
            arriving *= failing
        result.append(arriving)
        return result
