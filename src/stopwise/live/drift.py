"""An alarm when two stages no longer disagree as often as they used to.

Rounds in which a pair was seen are taken in windows. When a window is full it is compared, by
Fisher's exact test, with all that the pair showed since the last alarm. The k-th test of a pair
may reject with probability `false_alarm * 6 / (pi k)^2 / pairs`; these sum to `false_alarm`. So if
no rate ever changes, the chance that there is ever an alarm is at most `false_alarm`, however
long it runs: depths are drawn without looking at the item, so what a pair shows in the
rounds in which it is seen is a fair sample of all rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.checks import fail, finite_number, whole_number
from stopwise.live.counters.pairs import pair_count, pair_list


@dataclass(frozen=True)
class Drift:
    """How to watch for drift.

    Args:
        window: how many observations of a pair make one comparison. A smaller one is quicker and
            blinder: with 100, a rate must move by about 20 points to be seen at once.
        false_alarm: bound on the chance of any alarm, ever, while nothing changes.
    """

    window: int = 200
    false_alarm: float = 0.01

    def __post_init__(self) -> None:
        whole_number("drift.window", self.window, least=10)
        accepted = "a probability between 0 and 1"
        if not 0 < finite_number("drift.false_alarm", self.false_alarm, accepted) < 1:
            raise fail("drift.false_alarm", self.false_alarm, accepted)


@dataclass(frozen=True)
class DriftAlarm:
    """A pair whose disagreement changed.

    Attributes:
        segment: whose evidence it is.
        stages: the two stages.
        before, after: the disagreement since the last alarm, and in the latest window.
        p_value: of the exact test.
    """

    segment: str
    stages: tuple[int, int]
    before: float
    after: float
    p_value: float


class DriftWatch:
    """Counts windows for one segment and tells `report` of every alarm.

    >>> alarms = []
    >>> watch = DriftWatch("", 2, Drift(window=50), alarms.append)
    >>> for _ in range(400): watch.observe([(0, False)])
    >>> for _ in range(100): watch.observe([(0, True)])
    >>> alarms[0].before, alarms[0].after
    (0.0, 1.0)
    """

    __slots__ = ("_pairs", "report", "segment", "settings", "stage_count")

    def __init__(
        self, segment: str, count: int, settings: Drift, report: Callable[[DriftAlarm], None]
    ) -> None:
        self.segment = segment
        self.stage_count = count
        self.settings = settings
        self.report = report
        # for every pair: seen and disagreed before, seen and disagreed in the window, tests made
        self._pairs = [[0, 0, 0, 0, 0] for _ in range(pair_count(count))]

    def observe(self, moves: Sequence[tuple[int, bool]]) -> None:
        """Count observations of pairs; test those whose window is full."""
        for number, differs in moves:
            pair = self._pairs[number]
            pair[2] += 1
            pair[3] += differs
            if pair[2] >= self.settings.window:
                self._compare(number, pair)

    def _compare(self, number: int, pair: list[int]) -> None:
        before_seen, before_disagreed, seen, disagreed, tests = pair
        if before_seen:
            tests += 1
            level = self.settings.false_alarm * 6 / (math.pi * tests) ** 2 / len(self._pairs)
            p_value = fisher_exact(before_seen, before_disagreed, seen, disagreed)
            if p_value <= level:
                self.report(
                    DriftAlarm(
                        self.segment,
                        pair_list(self.stage_count)[number],
                        before_disagreed / before_seen,
                        disagreed / seen,
                        p_value,
                    )
                )
                before_seen = before_disagreed = 0
        pair[:] = [before_seen + seen, before_disagreed + disagreed, 0, 0, tests]

    def to_form(self) -> list[list[int]]:
        """The windows, as JSON holds them."""
        return [list(pair) for pair in self._pairs]

    def restore(self, form: Any) -> None:
        """Take what `to_form` gave."""
        size = pair_count(self.stage_count)
        if (
            not isinstance(form, list)
            or len(form) != size
            or not all(
                isinstance(pair, list)
                and len(pair) == 5
                and all(isinstance(value, int) and value >= 0 for value in pair)
                for pair in form
            )
        ):
            raise fail("drift", form, f"{size} lists of five whole numbers")
        self._pairs = [list(pair) for pair in form]


def fisher_exact(n1: int, k1: int, n2: int, k2: int) -> float:
    """Two-sided p-value of Fisher's exact test that two rates are equal.

    The sum of the probabilities of all tables no likelier than this one (as `scipy.stats` does, but
    without the weight of importing it).

    >>> round(fisher_exact(10, 1, 10, 8), 6)
    0.005477
    """
    total = k1 + k2

    def log_weight(k: int) -> float:
        return _log_choose(n1, total - k) + _log_choose(n2, k)

    low, high = max(0, total - n1), min(n2, total)
    weights = [log_weight(k) for k in range(low, high + 1)]
    whole = _log_choose(n1 + n2, total)
    limit = log_weight(k2) + 1e-7
    return min(1.0, sum(math.exp(w - whole) for w in weights if w <= limit))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
