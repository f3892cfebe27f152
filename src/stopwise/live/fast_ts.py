"""The depth distribution of USS-TS, carried along from round to round in plain Python.

One observation moves one Beta parameter by one. With w = x^a (1-x)^b / B(a, b):

    I_x(a+1, b) = I_x(a, b) - w/a        I_x(a, b+1) = I_x(a, b) + w/b

and w itself moves by a factor. Subtraction wears the smaller of I and 1 - I away, so both are
carried, and both are taken anew from SciPy when either has shrunk by a set factor, or after a set
number of steps. A test holds the whole to `policies/uss_ts.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopwise.live.pairs import pair_count, pair_list, pair_number
from stopwise.policies.uss_ts import UssTs

_SHRINK = 1 / 16
_STEPS = 256.0

# a, b, x, 1 - x, I, J, w, lowest I and J before the next anchor, a + b at the next anchor
_Pair = tuple[float, float, float, float, float, float, float, float, float, float]
_FIELDS = 10


class FastTs:
    """The pair tests of `UssTs` for one cascade, moved by single observations.

    Args:
        policy: gives the prior counts.
        thresholds: `C_j - C_i` in mistakes, as a table.

    >>> fast = FastTs(UssTs(), [[0.0, 0.25], [0.0, 0.0]])
    >>> fast.anchor([2], [0])
    >>> fast.distribution()
    [0.578125, 0.421875]
    """

    __slots__ = ("_pairs", "_ready", "_rows", "_thresholds", "policy")

    def __init__(self, policy: UssTs, thresholds: Sequence[Sequence[float]]) -> None:
        count = len(thresholds)
        self.policy = policy
        self._thresholds = [
            min(max(float(thresholds[i][j]), 0.0), 1.0) for i, j in pair_list(count)
        ]
        self._rows = [[pair_number(i, j) for j in range(i + 1, count)] for i in range(count - 1)]
        self._pairs: list[_Pair] = []
        self._ready: tuple[list[float], list[float]] | None = None

    def anchor(self, seen: Sequence[float], disagreed: Sequence[float]) -> None:
        """Take every pair anew from its counts."""
        self._pairs = [
            self._anchored(d + self.policy.prior_disagreed, n - d + self.policy.prior_agreed, x)
            for n, d, x in zip(seen, disagreed, self._thresholds, strict=True)
        ]
        self._ready = None

    @staticmethod
    def _anchored(a: float, b: float, x: float) -> _Pair:
        if x <= 0.0 or x >= 1.0:
            # A threshold that is never passed, or always: nothing moves, nothing to renew.
            return (a, b, x, 1.0 - x, x, 1.0 - x, 0.0, -1.0, -1.0, float("inf"))
        from scipy.special import betainc, betaincc

        low, high = float(betainc(a, b, x)), float(betaincc(a, b, x))
        # w / a is a difference of two neighbours; the smaller tail loses fewest digits by it.
        if high < low:
            w = a * (float(betaincc(a + 1.0, b, x)) - high)
        else:
            w = a * (low - float(betainc(a + 1.0, b, x)))
        return (
            a, b, x, 1.0 - x, low, high, w, low * _SHRINK, high * _SHRINK, a + b + _STEPS,
        )  # fmt: skip

    def move(self, moves: Sequence[tuple[int, bool]]) -> None:
        """Count one more observation of each of these pairs."""
        pairs = self._pairs
        for number, differs in moves:
            a, b, x, y, low, high, w, least_low, least_high, until = pairs[number]
            total = a + b
            if differs:
                step = w / a
                low -= step
                high += step
                w *= x * total / a
                a += 1.0
            else:
                step = w / b
                low += step
                high -= step
                w *= y * total / b
                b += 1.0
            if low < least_low or high < least_high or total >= until:
                pairs[number] = self._anchored(a, b, x)
            else:
                pairs[number] = (a, b, x, y, low, high, w, least_low, least_high, until)
        self._ready = None

    def ready(self) -> tuple[list[float], list[float]]:
        """The depth distribution and its running sums; kept until something moves."""
        if self._ready is None:
            p = self.distribution()
            sums = []
            total = 0.0
            for share in p:
                total += share
                sums.append(total)
            self._ready = (p, sums)
        return self._ready

    def distribution(self) -> list[float]:
        """The probability of every depth: the step walk of `policies/walks.py`."""
        pairs = self._pairs
        result = []
        arriving = 1.0
        for row in self._rows:
            passing, failing = 1.0, 0.0
            for number in row:
                pair = pairs[number]
                # The first test to fail is this one: all terms are positive, no digit is lost.
                failing += passing * pair[5]
                passing *= pair[4]
            result.append(arriving * passing)
            arriving *= failing
        result.append(arriving)
        return result

    def to_form(self) -> list[list[float | None]]:
        """The carried numbers, so that a restored learner goes on with the very same bits."""
        return [[None if v == float("inf") else v for v in pair] for pair in self._pairs]

    def restore(self, form: Any, seen: Sequence[float], disagreed: Sequence[float]) -> None:
        """Take numbers that `to_form` gave, unless they do not belong to these counts."""
        self.anchor(seen, disagreed)
        if not isinstance(form, list) or len(form) != pair_count(len(self._rows) + 1):
            return
        kept: list[_Pair] = []
        for fresh, values in zip(self._pairs, form, strict=True):
            if not isinstance(values, list) or len(values) != _FIELDS:
                return
            pair = [float("inf") if v is None else float(v) for v in values]
            close = abs(pair[4] - fresh[4]) <= 1e-9 and abs(pair[5] - fresh[5]) <= 1e-9
            if tuple(pair[:3]) != fresh[:3] or not close:
                return
            kept.append(tuple(pair))  # type: ignore[arg-type]
        self._pairs = kept
