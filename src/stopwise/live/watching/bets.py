"""The bet on one pair of stages against "its rate never changed"; see `drift.py`."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from stopwise.checks import fail, finite_number, whole_number
from stopwise.live.limits import check_whole
from stopwise.live.watching.sequences import log_likelihood, log_mixture, log_sum

_DENSE = 8  # steps are kept so that gaps are at most this part of their age
_THINNED = 16  # steps are thinned out whenever there are this number of new ones
_ROUNDING = 1e-6  # of sums of logarithms, far more than it can be
_RICHEST = 200.0  # a bet worth more than this has raised an alarm and begun again
_SUM = 2.11  # the sum of 1 / (i ln^2 i) from 2 on is 2.1097


class PairWatch:
    """The bet on one pair.

    >>> watch = PairWatch()
    >>> for differs in [False] * 200 + [True] * 40:
    ...     if watch.count(differs, window=20): watch.add_step(window=20)
    >>> watch.bet()[0] > math.log(1e6)
    True
    """

    __slots__ = ("alarms", "disagreed", "most", "seen", "steps")

    def __init__(self) -> None:
        self.alarms = 0
        self.most = math.inf  # the logarithm of the numerator is at most this; not known yet
        self.seen = 0
        self.disagreed = 0
        # seen and disagreed up to each step that is kept, and the logarithm of Q times its weight,
        # which is that of all steps it stands for
        self.steps: list[tuple[int, int, float]] = []

    def count(self, differs: bool, window: int) -> bool:
        """Count an observation; say whether it is time to look at the bet."""
        self.seen += 1
        self.disagreed += differs
        return self.seen % window == 0

    def add_step(self, window: int) -> None:
        """Let a change begin after what has been seen so far; thin out the steps of long ago."""
        n, k, steps = self.seen, self.disagreed, self.steps
        at = n // window
        worth = _log_part(at or 1) + log_mixture(n, k)
        self.most = log_sum(self.most, worth) if steps else worth
        steps.append((n, k, worth))
        if at % _THINNED:
            return  # by what has been seen alone, so that a restart does not change when
        ends = [step[0] for step in steps]
        near = [
            at
            for at, (first, last) in enumerate(zip(ends, ends[2:], strict=False))
            if (last - first) * _DENSE < n - last
        ]
        for at in reversed(near):  # where one is given up, those before it are less near
            last = steps[at + 2][0]
            if (last - steps[at][0]) * _DENSE < n - last:
                self._give_up(at + 1)

    def reaches(self, level: float, window: int) -> bool:
        """Whether the logarithm of E may be `level` now, after one more window."""
        steps = self.steps
        if not steps:
            return False
        n, k = self.seen, self.disagreed
        self.most += log_likelihood(window, k - steps[-1][1])
        likeliest = log_likelihood(n, k)
        if self.most - likeliest < level - _ROUNDING:
            return False
        total, _ = self.bet()
        self.most = total + likeliest
        return total >= level

    def _give_up(self, at: int) -> None:
        """Take out a step; what its bet is worth goes to that before it, or after it if nearer."""
        steps, seen, disagreed = self.steps, self.seen, self.disagreed
        n, k, given = steps[at]
        heir = at - 1 if n - steps[at - 1][0] <= steps[at + 1][0] - n else at + 1
        heir_n, heir_k, weight = steps[heir]
        # By how much the one's part of the numerator is above the other's, as a logarithm.
        change = given + log_mixture(seen - n, disagreed - k)
        change -= weight + log_mixture(seen - heir_n, disagreed - heir_k)
        steps[heir] = (heir_n, heir_k, weight + math.log1p(math.exp(min(change, 700.0))))
        del steps[at]

    def bet(self) -> tuple[float, int]:
        """The logarithm of E, and the number of the step that adds most to it."""
        if not self.steps:
            return -math.inf, -1
        n, k = self.seen, self.disagreed
        values = [
            weight + log_mixture(n - before, k - differed)
            for before, differed, weight in self.steps
        ]
        best = max(values)
        total = best + math.log(sum([math.exp(value - best) for value in values]))
        return total - log_likelihood(n, k), values.index(best)

    def to_form(self) -> list[Any]:
        """As JSON holds it."""
        return [self.alarms, self.seen, self.disagreed, [list(step) for step in self.steps]]

    @classmethod
    def from_form(cls, form: Any, window: int) -> PairWatch:
        """Take what `to_form` gave."""
        accepted = "[alarms, seen, disagreed, steps], as a snapshot holds them"
        watch = cls()
        try:
            watch.alarms, watch.seen, watch.disagreed = (
                check_whole("drift", value) for value in form[:3]
            )
            before = (0, 0)
            for n, k, *given in form[3]:
                n, k = whole_number("drift", n, least=1), whole_number("drift", k, least=0)
                if not before[0] < n <= watch.seen or not before[1] <= k <= watch.disagreed:
                    raise fail("drift", form, accepted)
                weight = _first_worth(n, k, window)  # what others left it stands in the form
                if given:
                    (weight,) = (finite_number("drift", value) for value in given)
                watch.steps.append((n, k, weight))
                before = (n, k)
            total, _ = watch.bet()
            if total > _RICHEST:
                raise fail("drift", form, accepted)
        except (TypeError, ValueError, IndexError):
            raise fail("drift", form, accepted) from None
        if watch.disagreed > watch.seen or len(form) != 4 or len(watch.steps) > 10_000:
            raise fail("drift", form, accepted)
        return watch


def part_of(i: int) -> float:
    """Parts of a whole for i = 1, 2, ...: they fall slowly and sum to less than 1."""
    return 1.0 / (_SUM * (i + 1) * math.log(i + 1) ** 2)


@lru_cache(maxsize=4096)
def _log_part(i: int) -> float:
    return math.log(part_of(i))


def _first_worth(n: int, k: int, window: int) -> float:
    """The logarithm of the weight of a step times Q of all before it, when it is made."""
    return _log_part(max(1, n // window)) + log_mixture(n, k)
