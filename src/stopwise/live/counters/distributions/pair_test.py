"""The test of one pair of stages, carried along from observation to observation in plain Python.

One observation moves one Beta parameter by one. With w = x^a (1-x)^b / B(a, b):

    I_x(a+1, b) = I_x(a, b) - w/a        I_x(a, b+1) = I_x(a, b) + w/b

and w itself moves by a factor. Subtraction wears the smaller of I and 1 - I away, so both are
carried, and both are taken from SciPy again when either has shrunk by a set factor, or after a set
number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from math import isclose
from typing import Any

_SHRINK = 1 / 16
_STEPS = 256.0
NEGLIGIBLE = 1e-18
"""Below this a probability cannot differ from zero for a random number of 53 bits: it is carried
without its last digits, and only kept from turning negative."""


def tails(a: float, b: float, x: float) -> tuple[float, float]:
    """I_x(a, b) and its complement.

    >>> tails(1.0, 1.0, 0.25)
    (0.25, 0.75)
    """
    low, high = _functions()
    return float(low(a, b, x)), float(high(a, b, x))


def warm_up() -> None:
    """Import what the first anchor needs, so that the first round does not wait for it."""
    tails(1.0, 1.0, 0.5)


_MIRRORED = 5000.0
_FAR = 41.5  # exp(-41.5) is below `NEGLIGIBLE`


def one_tail(a: float, b: float, x: float) -> tuple[float, float]:
    """The same as `tails`, with one of them evaluated: the smaller one, as far as that matters.

    Far from its mean a Beta sample is as rare as a normal one of variance 1 / (4 (a + b + 1)) at
    most (Marchal and Arbel 2017), so that the tail need not be evaluated at all.

    >>> one_tail(1.0, 1.0, 0.25), one_tail(10.0, 9000.0, 0.5)
    ((0.25, 0.75), (1.0, 0.0))
    """
    n = a + b
    gap = x - a / n
    if 2.0 * gap * gap * (n + 1.0) > _FAR:
        return (1.0, 0.0) if gap > 0 else (0.0, 1.0)
    low, high = _functions()
    if gap > 0:
        # The same by symmetry, several times quicker; rounding of 1 - x costs n of its last digits.
        above: float = low(b, a, 1.0 - x) if n < _MIRRORED else high(a, b, x)
        return 1.0 - above, above
    below: float = low(a, b, x)
    return below, 1.0 - below


def far_for(a: float, b: float, x: float) -> float:
    """By how much a and b may change, each up or down, while the smaller tail stays negligible.

    A Beta sample is that far from its mean m with a chance of at most (x/m)^a ((1-x)/(1-m))^b:
    Chernoff's bound, as a sample is G / (G + H) of two Gamma samples. Its logarithm is concave in
    (a, b), so that it is below its tangent.

    >>> far_for(10.0, 9000.0, 0.5) > 500, far_for(10.0, 90.0, 0.2), far_for(10.0, 90.0, 0.0)
    (True, 0.0, inf)
    """
    if not 0.0 < x < 1.0:
        return math.inf  # never passed, or always
    n = a + b
    of_a, of_b = math.log(a / (n * x)), math.log(b / (n * (1.0 - x)))
    return max(0.0, (a * of_a + b * of_b - _FAR) / (abs(of_a) + abs(of_b) or 1.0))


def _functions() -> tuple[Any, Any]:
    """SciPy's functions; it is imported at the first call, then this name gives them."""
    from scipy.special.cython_special import betainc, betaincc  # for numbers, not for arrays

    globals()["_functions"] = lambda: (betainc, betaincc)
    return betainc, betaincc


class PairTest:
    """The chances that a sample of Beta(a, b) falls below a threshold, and that it does not.

    Attributes:
        a, b: prior and observed disagreements; prior and observed agreements.
        n: their sum.
        x, y: the threshold and one minus it.
        low, high: I_x(a, b) and its complement.
        w: x^a (1-x)^b / B(a, b).
        least_low, least_high, until: below these, or when n comes there, SciPy is asked again.

    >>> test = PairTest(1.0, 1.0, 0.25)
    >>> test.low
    0.25
    """

    __slots__ = ("a", "b", "high", "least_high", "least_low", "low", "n", "until", "w", "x", "y")

    def __init__(self, a: float, b: float, x: float) -> None:
        self.x = x
        self.y = 1.0 - x
        self.anchor(a, b)

    def anchor(self, a: float, b: float) -> None:
        """Take all from SciPy."""
        self.a, self.b, self.n = a, b, a + b
        x = self.x
        if x <= 0.0 or x >= 1.0:
            # A threshold that is never passed, or always: nothing moves, nothing to renew.
            self.low, self.high, self.w = x, self.y, 0.0
            self.least_low = self.least_high = -1.0
            self.until = float("inf")
            return
        low, high = tails(a, b, x)
        # w / a is a difference of two neighbours; the smaller tail loses fewest digits by it.
        low_next, high_next = tails(a + 1.0, b, x)
        self.w = a * (high_next - high if high < low else low - low_next)
        self.low, self.high = low, high
        self.least_low = low * _SHRINK if low > NEGLIGIBLE else 0.0
        self.least_high = high * _SHRINK if high > NEGLIGIBLE else 0.0
        self.until = self.n + _STEPS

    def settled(self, steps: int) -> bool:
        """Whether the smaller chance stays negligible for `steps` observations, whatever they show.

        I_x(a, b) falls in a and rises in b.
        """
        if not 0.0 < self.x < 1.0:
            return True
        below, above = _functions()  # one of the two tails is enough
        if self.low < self.high:
            return bool(below(self.a, self.b + steps, self.x) <= NEGLIGIBLE)
        return bool(above(self.a + steps, self.b, self.x) <= NEGLIGIBLE)

    def to_form(self) -> list[float | None]:
        """All numbers, as JSON holds them."""
        until = None if self.until == float("inf") else self.until
        return [
            self.a, self.b, self.n, self.x, self.y, self.low, self.high, self.w, self.least_low,
            self.least_high, until,
        ]  # fmt: skip

    @classmethod
    def from_form(cls, form: Any) -> PairTest:
        """Take what `to_form` gave; a ValueError, TypeError or OverflowError where it is none."""
        test = cls.__new__(cls)
        (
            test.a, test.b, test.n, test.x, test.y, test.low, test.high, test.w, test.least_low,
            test.least_high, test.until,
        ) = (float("inf") if value is None else float(value) for value in form)  # fmt: skip
        return test

    def belongs_to(self, other: PairTest) -> bool:
        """Whether this is the other, taken from SciPy just now, but for rounding.

        What says when SciPy is asked again may be older, but not such that it never is.
        """
        same = (self.a, self.b, self.n, self.x, self.y) == (
            other.a, other.b, other.n, other.x, other.y,
        )  # fmt: skip
        near = all(
            abs(mine - its) <= 1e-9
            for mine, its in ((self.low, other.low), (self.high, other.high))
        ) and isclose(self.w, other.w, rel_tol=1e-6, abs_tol=1e-9)
        renewed = (
            self.least_low >= min(other.least_low, 0.0)
            and self.least_high >= min(other.least_high, 0.0)
            and self.until <= other.until
        )
        return same and near and renewed


def count_observations(observations: Iterable[tuple[PairTest, bool]]) -> bool:
    """Count observations, each of a pair: whether it disagreed.

    Returns:
        Whether SciPy had to be asked again for any of them.

    >>> test = PairTest(1.0, 1.0, 0.25)
    >>> count_observations([(test, False)]), test.low
    (False, 0.4375)
    """
    anchored = False
    for pair, differs in observations:
        n = pair.n
        if differs:
            step = pair.w / pair.a
            pair.a += 1.0
            pair.high += step
            pair.w = step * pair.x * n
            pair.n = n + 1.0
            low = pair.low = pair.low - step
            if low >= pair.least_low and n < pair.until:
                continue
        else:
            step = pair.w / pair.b
            pair.b += 1.0
            pair.low += step
            pair.w = step * pair.y * n
            pair.n = n + 1.0
            high = pair.high = pair.high - step
            if high >= pair.least_high and n < pair.until:
                continue
        pair.anchor(pair.a, pair.b)
        anchored = True
    return anchored
