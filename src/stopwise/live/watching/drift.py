"""An alarm when two stages no longer disagree as often as they used to.

For every pair of every segment a bet is kept against "the rate never changed". Its value is

    E = sum over steps s of  w_s Q(before s) Q(after s)  /  max over p of p^k (1 - p)^(n - k)

where n observations held k disagreements, w_s are weights that sum to at most 1, and Q is the
probability of what was seen under the Krichevsky-Trofimov mixture of rates (Beta(1/2, 1/2)). The
numerator is a probability of the whole sequence, and the denominator is at least its probability
under the true rate, so E is an e-process (Ramdas, Ruf, Larsson, Koolen, 2022, "Testing
exchangeability"): if nothing changes it *ever* reaches 1 / a with probability at most a, however
often one looks (Ville). Far back few steps are kept: one that is given up hands what its bet is
worth at that moment to its neighbour, as a gambler may who changes from one horse to another. So E
does not fall, and a small change, which many steps explain equally well, is betted on by all.

The bound is shared: pairs take equal parts, segments in the order of their appearance take parts of
a series that sums to at most 1, and so do the first, second, ... alarm of a pair. So the chance of
*any* alarm, ever, over all segments, is at most `false_alarm` while nothing changes. The state is
kept in snapshots and stores, so that a restart does not begin the bet again.

A bet that cannot have reached its level is not evaluated: what follows a moment is, under any
mixture of rates, at most as likely as under the one rate that suits it best, so that the numerator
is known from above without its steps. Alarms are the same, in the same round.

Depths are drawn without looking at the item, so what a pair shows in the rounds in which it is seen
is a fair sample of all rounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from stopwise.checks import fail, finite_number, names_fields, whole_number
from stopwise.live.limits import check_whole
from stopwise.live.pairs import pair_count, pair_list
from stopwise.live.watching.sequences import log_likelihood, log_mixture, log_sum

_DENSE = 8  # steps are kept so that gaps are at most this part of their age
_THINNED = 16  # steps are thinned out whenever there are this number of new ones
_ROUNDING = 1e-6  # of sums of logarithms, far more than it can be
_RICHEST = 200.0  # a bet worth more than this has raised an alarm and begun again
SeenPairs = Sequence[tuple[int, bool]]
"""Pairs that a round saw, and whether they differed."""
_SUM = 2.11  # the sum of 1 / (i ln^2 i) from 2 on is 2.1097


@names_fields
@dataclass(frozen=True)
class Drift:
    """How to watch for drift.

    Args:
        window: after how many observations of a pair the bet is looked at, and a change may be said
            to have begun. Smaller is quicker by as many observations, and takes more time.
        false_alarm: bound on the chance of any alarm, ever, in any segment, while nothing changes.

    >>> Drift(false_alarm=2)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: drift.false_alarm: got 2, but need a probability between 0 and 1
    """

    window: int = 20
    false_alarm: float = 0.01

    def __post_init__(self) -> None:
        whole_number("drift.window", self.window, least=1)
        accepted = "a probability between 0 and 1"
        if not 0 < finite_number("drift.false_alarm", self.false_alarm, accepted) < 1:
            raise fail("drift.false_alarm", self.false_alarm, accepted)


@dataclass(frozen=True)
class DriftAlarm:
    """A pair whose disagreement changed.

    Attributes:
        segment: whose evidence it is.
        stages: the two stages.
        before, after: the disagreement before and after the likeliest moment of the change.
        p_value: valid at any time: the chance that this bet ever does so well without a change is
            at most this.
        since: how many observations of the pair ago the change began, most likely.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed", drift=Drift())
    >>> for at in range(1200):
    ...     round = learner.begin()
    ...     round.observe("yes"); round.observe("yes" if at < 900 else "no")
    ...     _ = round.end()
    >>> alarm = learner.alarms[0]
    >>> alarm.stages, alarm.before < 0.1 < 0.9 < alarm.after
    ((0, 1), True)
    """

    segment: str
    stages: tuple[int, int]
    before: float
    after: float
    p_value: float
    since: int = 0


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
        n = self.seen
        worth = _first_worth(n, self.disagreed, window)
        steps = self.steps
        self.most = log_sum(self.most, worth) if steps else worth
        steps.append((n, self.disagreed, worth))
        if n // window % _THINNED:
            return  # by what has been seen alone, so that a restart does not change when
        at = len(steps) - 3
        while at >= 0:
            if (steps[at + 2][0] - steps[at][0]) * _DENSE < n - steps[at + 2][0]:
                self._give_up(at + 1)
            at -= 1

    def reaches(self, level: float, window: int) -> bool:
        """Whether the logarithm of E may be `level` now, after one more window."""
        if not self.steps:
            return False
        new = self.disagreed - self.steps[-1][1]
        self.most += log_likelihood(window, new)
        if self.most - log_likelihood(self.seen, self.disagreed) < level - _ROUNDING:
            return False
        total, _ = self.bet()
        self.most = total + log_likelihood(self.seen, self.disagreed)
        return total >= level

    def _give_up(self, at: int) -> None:
        """Take out a step; what its bet is worth goes to that before it, or after it if nearer."""
        n, _, _ = given_up = self.steps[at]
        heir = at - 1 if n - self.steps[at - 1][0] <= self.steps[at + 1][0] - n else at + 1
        heir_n, heir_k, weight = self.steps[heir]
        change = self._worth(given_up) - self._worth(self.steps[heir])
        self.steps[heir] = (heir_n, heir_k, weight + math.log1p(math.exp(min(change, 700.0))))
        del self.steps[at]

    def _worth(self, step: tuple[int, int, float]) -> float:
        """The logarithm of a step's part of the numerator."""
        n, k, weight = step
        return weight + log_mixture(self.seen - n, self.disagreed - k)

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


class DriftWatch:
    """The bets of all segments of a learner.

    >>> watch = DriftWatch(2, Drift(window=50))
    >>> for _ in range(400): assert not watch.observe("", [(0, False)])
    >>> alarms = [alarm for _ in range(100) for alarm in watch.observe("", [(0, True)])]
    >>> alarms[0].before, alarms[0].after, alarms[0].since
    (0.0, 1.0, 50)
    """

    __slots__ = ("_noted", "segments", "settings", "stage_count")

    def __init__(self, stage_count: int, settings: Drift) -> None:
        if not isinstance(settings, Drift):
            raise fail("drift", settings, "Drift(), with its settings, or None not to watch")
        self.stage_count = stage_count
        self.settings = settings
        self.segments: dict[str, tuple[int, list[PairWatch]]] = {}
        # Of each segment, rounds that are yet to be counted, and how many may be noted until the
        # first bet is to be looked at.
        self._noted: dict[str, tuple[list[SeenPairs], int]] = {}

    def observe(self, segment: str, pairs: SeenPairs) -> Sequence[DriftAlarm]:
        """Count observations of pairs, each at most once, and look at the bets that are due."""
        return self.observe_all(segment, (pairs,))

    def observe_all(self, segment: str, rounds: Sequence[SeenPairs]) -> list[DriftAlarm]:
        """The same of rounds one after another."""
        alarms: list[DriftAlarm] = []
        at = 0
        while at < len(rounds):
            noted, due = self._noted.get(segment) or self._note(segment)
            part = rounds[at : at + due - len(noted)]
            noted.extend(map(tuple, part))
            at += len(part)
            if len(noted) >= due:
                alarms += self._look_at(segment)
        return alarms

    def room(self, segment: str) -> int:
        """How many more rounds of a segment may be observed until a bet is looked at, at least."""
        if segment not in self.segments:
            return self.settings.window
        noted, due = self._noted.get(segment) or self._note(segment)
        return due - len(noted)

    def _note(self, segment: str) -> tuple[list[SeenPairs], int]:
        """Begin to note rounds: none of them is due before a pair may have filled its window."""
        _, watches = self._of(segment)
        window = self.settings.window
        due = min(window - watch.seen % window for watch in watches)
        noted: list[SeenPairs] = []
        self._noted[segment] = noted, due
        return noted, due

    def _count(self, segment: str) -> set[int]:
        """Count the rounds that were noted; the pairs that they saw."""
        # First taken, then counted: an interrupt may lose some, and never counts any twice.
        rounds, _ = self._noted.pop(segment, ((), 0))
        _, watches = self._of(segment)
        moved = set()
        for pairs, times in Counter(rounds).items():
            for pair, differs in pairs:
                watch = watches[pair]
                watch.seen += times
                if differs:
                    watch.disagreed += times
                moved.add(pair)
        return moved

    def _look_at(self, segment: str) -> list[DriftAlarm]:
        alarms: list[DriftAlarm] = []
        moved = self._count(segment)
        number, watches = self._of(segment)
        window = self.settings.window
        for pair in sorted(pair for pair in moved if not watches[pair].seen % window):
            watch = watches[pair]
            alarm = self._look(segment, number, pair, watch)
            if alarm is not None:
                alarms.append(alarm)
                watches[pair] = PairWatch()
                watches[pair].alarms = watch.alarms + 1
            else:
                watch.add_step(window)
        return alarms

    def _of(self, segment: str) -> tuple[int, list[PairWatch]]:
        found = self.segments.get(segment)
        if found is None:
            watches = [PairWatch() for _ in range(pair_count(self.stage_count))]
            found = self.segments[segment] = (len(self.segments) + 1, watches)
        return found

    def _look(self, segment: str, number: int, pair: int, watch: PairWatch) -> DriftAlarm | None:
        part = self.settings.false_alarm / pair_count(self.stage_count)
        if not watch.reaches(_level(part, number, watch.alarms), self.settings.window):
            return None
        bet, step = watch.bet()
        n, k, _ = watch.steps[step]
        return DriftAlarm(
            segment,
            pair_list(self.stage_count)[pair],
            k / n,
            (watch.disagreed - k) / (watch.seen - n),
            min(1.0, math.exp(-bet)),
            watch.seen - n,
        )

    def begin(self, segment: str, number: int, form: Any) -> None:
        """Go on from what a store holds of a segment, or begin it with its number."""
        self._noted.pop(segment, None)
        if form is None:
            watches = [PairWatch() for _ in range(pair_count(self.stage_count))]
            self.segments[segment] = (number, watches)
        else:
            self.restore(segment, form)

    def form_of(self, segment: str) -> dict[str, Any] | None:
        """The bets of a segment, as JSON holds them; None where none has begun."""
        if segment not in self.segments:
            return None
        self._count(segment)
        number, watches = self.segments[segment]
        return {"number": number, "pairs": [watch.to_form() for watch in watches]}

    def restore(self, segment: str, form: Any) -> None:
        """Take what `form_of` gave. What older releases kept is not a bet: it begins again."""
        self._noted.pop(segment, None)
        if isinstance(form, list):
            self._of(segment)
            return
        size = pair_count(self.stage_count)
        if (
            not isinstance(form, Mapping)
            or set(form) != {"number", "pairs"}
            or not isinstance(form["pairs"], list)
            or len(form["pairs"]) != size
        ):
            raise fail("drift", form, f"a number and the bets of {size} pairs")
        number = whole_number("drift.number", check_whole("drift.number", form["number"]), least=1)
        watches = [PairWatch.from_form(pair, self.settings.window) for pair in form["pairs"]]
        self.segments[segment] = (number, watches)


def _part(i: int) -> float:
    """Parts of a whole for i = 1, 2, ...: they fall slowly and sum to less than 1."""
    return 1.0 / (_SUM * (i + 1) * math.log(i + 1) ** 2)


@lru_cache(maxsize=4096)
def _log_part(i: int) -> float:
    return math.log(_part(i))


@lru_cache(maxsize=4096)
def _level(part: float, segment: int, alarms: int) -> float:
    """What the logarithm of a bet must reach: of a pair, by its segment and its alarms so far."""
    share = _part(segment) * 6 / (math.pi * (alarms + 1)) ** 2
    return -math.log(part * share)


def _first_worth(n: int, k: int, window: int) -> float:
    """The logarithm of the weight of a step times Q of all before it, when it is made."""
    return _log_part(max(1, n // window)) + log_mixture(n, k)
