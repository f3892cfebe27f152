"""A promise of agreement for a stream, valid at every moment: go deeper while it is not certain.

Whenever an item may be answered early, a coin decides first whether it is *looked at*: with the
chance `look_rate` it runs to the end all the same. Of the early answers that differ from the last
stage's, each is found with this chance, whatever came before. With d found, the number that
was missed is below `most_missed(d)` at all times at once with the promised confidence: the ratio

    integral over p < f of p^d (1 - p)^u  by a Beta(2, 2 (1 - f) / f) law   /   f^d (1 - f)^u

starts at 1 and is a martingale in the differences met, so it ever reaches 1/alpha with a chance of
at most alpha (Ville). The guard lets items stop early only while even this number of missed ones is
within the share that may differ. Nothing is assumed of the items; they may change as they like.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from stopwise.checks import StopwiseError, fail, finite_number, known_names, whole_number

_PRIOR_FOUND = 2.0


@dataclass
class AgreementGuard:
    """Counts of a stream under a promise.

    Args:
        agree: the share of all rounds so far whose answer must be the last stage's.
        level: how sure that is, at all times together.
        look_rate: the chance with which an item that may stop early runs to the end.
        rounds: all rounds so far.
        found: early answers that a look showed to differ.
        cut: rounds known to have another answer, as where a budget kept them from going on.

    >>> guard = AgreementGuard(agree=0.95, level=0.95, look_rate=0.1)
    >>> guard.may_stop, guard.opens_at                 # the first rounds all go to the end
    (False, 940)
    >>> guard.rounds = 939
    >>> guard.may_stop
    True
    """

    agree: float = 0.95
    level: float = 0.95
    look_rate: float = 0.1
    rounds: int = 0
    found: int = 0
    cut: int = 0

    def __post_init__(self) -> None:
        for name in ("agree", "level", "look_rate"):
            if not 0 < finite_number(name, getattr(self, name)) < 1:
                raise fail(name, getattr(self, name), "a number above 0 and below 1")
        whole_number("rounds", self.rounds, least=0)
        whole_number("found", self.found, least=0)
        whole_number("cut", self.cut, least=0)

    @property
    def most_missed(self) -> int:
        """No more early answers than this differ without having been found."""
        return most_missed(self.found, self.look_rate, 1 - self.level)

    @property
    def opens_at(self) -> int:
        """The first round in which an item may stop early, unless more is found."""
        return math.ceil((self.most_missed + self.cut) / (1 - self.agree) - 1e-6)

    @property
    def may_stop(self) -> bool:
        """Whether the round to come may be answered early without danger to the promise."""
        return self.rounds + 1 >= self.opens_at

    @property
    def least_agreement(self) -> float:
        """The share of rounds so far that have the last stage's answer is at least this.

        >>> AgreementGuard(0.9, 0.9, 0.2, rounds=1000, found=3).least_agreement
        0.96
        """
        return 1 - (self.most_missed + self.cut) / self.rounds if self.rounds else 1.0

    def record(self, *, looked: bool, differs: bool = False) -> None:
        """Count a round.

        Args:
            looked: whether it might have stopped early, and a coin sent it to the end.
            differs: whether its early answer was not the last stage's; known of looks alone.
        """
        self.rounds += 1
        self.found += looked and differs

    def merge(self, other: AgreementGuard) -> None:
        """Add what another machine counted under the same promise.

        >>> guard = AgreementGuard(rounds=10)
        >>> guard.merge(AgreementGuard(rounds=5, found=1))
        >>> guard.rounds, guard.found
        (15, 1)
        """
        same = ("agree", "level", "look_rate")
        if any(getattr(self, name) != getattr(other, name) for name in same):
            raise StopwiseError("guard: counts of another promise cannot be added")
        self.rounds += other.rounds
        self.found += other.found
        self.cut += other.cut

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> AgreementGuard:
        """Read what `to_dict` wrote.

        >>> AgreementGuard.from_dict(AgreementGuard(found=2).to_dict()).found
        2
        """
        known_names("guard", form, (field.name for field in fields(cls)))
        return cls(**form)


@lru_cache(maxsize=65536)
def most_missed(found: int, look_rate: float, alpha: float) -> int:
    """With this many found, more are missed with a chance of at most alpha, at any time.

    >>> most_missed(0, 0.1, 0.05), most_missed(10, 0.1, 0.05)
    (47, 198)
    """
    limit = -math.log(alpha)
    low = math.floor(found * (1 - look_rate) / look_rate)
    step = 8
    while log_ratio(found, low + step + 1, look_rate) < limit:
        step *= 2
    high = low + step
    while low < high:
        middle = (low + high) // 2
        if log_ratio(found, middle + 1, look_rate) >= limit:
            high = middle
        else:
            low = middle + 1
    return high


def log_ratio(found: int, missed: int, look_rate: float) -> float:
    """The logarithm of the martingale, given the numbers found and missed."""
    from scipy.special import betainc, betaln

    a = _PRIOR_FOUND
    b = _PRIOR_FOUND * (1 - look_rate) / look_rate
    mixed = betaln(a + found, b + missed) - betaln(a, b)
    below = betainc(a + found, b + missed, look_rate) / betainc(a, b, look_rate)
    if below <= 0:  # far more found than missed: the ratio is as good as 0
        return -math.inf
    drawn = found * math.log(look_rate) + missed * math.log1p(-look_rate)
    return float(mixed + math.log(below) - drawn)
