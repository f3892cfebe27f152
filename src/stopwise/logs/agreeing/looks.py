"""How many looks a promise needs: an exact test by counting the differences that were found.

Items are taken one after the other, in any order that depends only on what has been seen so far,
to be answered by an early stage. For each a coin is thrown first: with the chance `rate` the last
stage is called all the same, and answers. Of the items whose early answer differs from the last
stage's, each is *found* with this chance, independently of everything before it. So whatever the
items are, the number found before the (allowed + 1)-th that is *missed* has a negative binomial
distribution, and

    P(at most d found before it) = P(Binomial(allowed + 1 + d, rate) <= d).

A design is a pair (d, rate) for which this is at most `alpha`: take items until more than d
differences have been found. Then more than `allowed` differences are missed with a chance of at
most alpha. Nothing is assumed of the items, and no bound is looked at twice.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.stats import binom, nbinom

from stopwise.checks import fail

_MOST_FOUND = 400
_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)


class Design(NamedTuple):
    """When to look, and when to end.

    Attributes:
        found: with more differences found than this, no further item is answered early.
        rate: the chance with which an item is looked at.
    """

    found: int
    rate: float

    @property
    def differences(self) -> float:
        """How many differences, found and missed, are met on average before the end."""
        return (self.found + 1) / self.rate


@lru_cache(maxsize=8192)
def differences_met(design: Design) -> tuple[float, ...]:
    """How many differences may be met before the end: quantiles, all equally likely.

    >>> differences_met(Design(found=0, rate=0.5))
    (1.0, 1.0, 1.0, 2.0, 4.0)
    """
    missed = nbinom.ppf(_QUANTILES, design.found + 1, design.rate)
    return tuple(float(value) + design.found + 1 for value in missed)


def chance_of_breaking(allowed: int, design: Design) -> float:
    """The largest chance, over all items and orders, of more than `allowed` missed differences.

    >>> chance_of_breaking(1, Design(found=0, rate=0.5))   # two heads in a row are missed
    0.25
    """
    return float(binom.cdf(design.found, allowed + 1 + design.found, design.rate))


@lru_cache(maxsize=256)
def designs(allowed: int, alpha: float) -> tuple[Design, ...]:
    """Designs that keep the promise: each number of finds with the least rate that it needs.

    >>> few = designs(allowed=50, alpha=0.05)[0]
    >>> few.found, round(few.rate, 3)             # (1 - 0.057) ** 51 = 0.05
    (0, 0.057)
    """
    if not 0 < alpha < 1:
        raise fail("alpha", alpha, "a number between 0 and 1")
    result = []
    found = 0
    while found <= _MOST_FOUND:
        rate = least_rate(allowed, found, alpha)
        if rate > 0.95:
            break
        result.append(Design(found, rate))
        found += max(1, found // 8)
    # Where hardly a difference is allowed, only looking at everything keeps the promise.
    return tuple(result) or (Design(0, 1.0),)


def least_rate(allowed: int, found: int, alpha: float) -> float:
    """The smallest rate of looks at which this many finds keep the promise.

    >>> round(least_rate(allowed=50, found=0, alpha=0.05), 3)
    0.057
    """

    def excess(rate: float) -> float:
        return chance_of_breaking(allowed, Design(found, rate)) - alpha

    rate = float(brentq(excess, 0.0, 1.0, xtol=1e-13))
    # The root is as good as the arithmetic; step to the safe side of it.
    while excess(rate) > 0:
        rate = min(1.0, rate * (1 + 1e-9) + 1e-13)
    return rate
