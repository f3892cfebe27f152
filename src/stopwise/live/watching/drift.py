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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from stopwise.checks import fail, finite_number, names_fields, whole_number
from stopwise.live.limits import check_whole
from stopwise.live.pairs import PACKED, Added, pair_count, pair_list, unpacked
from stopwise.live.watching.bets import PairWatch, part_of

SeenPairs = Sequence[tuple[int, bool]]
"""Pairs that a round saw, and whether they differed."""


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

    window: int = 40
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
    ...     round.observe("yes"); round.observe("yes" if at < 880 else "no")
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


class DriftWatch:
    """The bets of all segments of a learner.

    >>> watch = DriftWatch(2, Drift(window=50))
    >>> for _ in range(400): assert not watch.observe("", [(0, False)])
    >>> alarms = [alarm for _ in range(100) for alarm in watch.observe("", [(0, True)])]
    >>> alarms[0].before, alarms[0].after, alarms[0].since
    (0.0, 1.0, 50)
    """

    __slots__ = ("_noted", "_rooms", "segments", "settings", "stage_count")

    def __init__(self, stage_count: int, settings: Drift) -> None:
        if not isinstance(settings, Drift):
            raise fail("drift", settings, "Drift(), with its settings, or None not to watch")
        self.stage_count = stage_count
        self.settings = settings
        self.segments: dict[str, tuple[int, list[PairWatch]]] = {}
        # Of each segment, rounds that are yet to be counted, and how many may be noted until the
        # first bet is to be looked at.
        self._noted: dict[str, tuple[list[SeenPairs], int]] = {}
        self._rooms: dict[str, int] = {}  # where that was found and none was noted since

    def observe(self, segment: str, pairs: SeenPairs) -> Sequence[DriftAlarm]:
        """Count observations of pairs, each at most once, and look at the bets that are due."""
        return self.observe_all(segment, (pairs,))

    def observe_all(self, segment: str, rounds: Sequence[SeenPairs]) -> list[DriftAlarm]:
        """The same of rounds one after another."""
        alarms: list[DriftAlarm] = []
        self._rooms.pop(segment, None)
        at = 0
        while at < len(rounds):
            noted, due = self._noted.get(segment) or self._note(segment)
            part = rounds[at : at + due - len(noted)]
            noted.extend(map(tuple, part))
            at += len(part)
            if len(noted) >= due:
                alarms += self._look_at(segment, self._count(segment))
        return alarms

    def observe_added(self, segment: str, rounds: Sequence[Added]) -> Sequence[DriftAlarm]:
        """The same, quicker where no bet is due before the last of them: counted as one number."""
        _, watches = self._of(segment)
        window, size = self.settings.window, len(watches)
        if segment in self._noted:
            self._count(segment)
        if size > PACKED or len(rounds) > self.room(segment):
            return self.observe_all(segment, [one.pairs for one in rounds])
        # First taken, then counted: an interrupt may lose some, and never counts any twice.
        self._rooms.pop(segment, None)
        due, room = [], window
        seen, disagreed = unpacked(sum([one.packed for one in rounds]), size)
        for pair, watch in enumerate(watches):
            if more := seen[pair]:
                watch.seen += more
                watch.disagreed += disagreed[pair]
            missing = window - watch.seen % window
            if missing < room:
                room = missing
            if more and missing == window:
                due.append(pair)
        self._rooms[segment] = room
        return self._look_at(segment, due) if due else ()

    def room(self, segment: str) -> int:
        """How many more rounds of a segment may be observed until a bet is looked at, at least."""
        if (known := self._rooms.get(segment)) is not None:
            return known
        if (noted := self._noted.get(segment)) is not None:
            return noted[1] - len(noted[0])
        window = self.settings.window
        if segment not in self.segments:
            return window
        _, watches = self.segments[segment]
        return min([window - watch.seen % window for watch in watches])

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

    def _look_at(self, segment: str, moved: Iterable[int]) -> list[DriftAlarm]:
        alarms: list[DriftAlarm] = []
        number, watches = self._of(segment)
        window = self.settings.window
        part = self.settings.false_alarm / len(watches)
        for pair in sorted(moved):
            watch = watches[pair]
            if watch.seen % window:
                continue
            if watch.reaches(_level(part, number, watch.alarms), window):
                alarms.append(self._alarm(segment, pair, watch))
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

    def _alarm(self, segment: str, pair: int, watch: PairWatch) -> DriftAlarm:
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
        self._rooms.pop(segment, None)
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
        self._rooms.pop(segment, None)
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


@lru_cache(maxsize=4096)
def _level(part: float, segment: int, alarms: int) -> float:
    """What the logarithm of a bet must reach: of a pair, by its segment and its alarms so far."""
    share = part_of(segment) * 6 / (math.pi * (alarms + 1)) ** 2
    return -math.log(part * share)
