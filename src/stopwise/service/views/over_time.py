"""How answers and disagreements went over time: by the hour, or by less where there is little yet.

Hours are sums that cover every request. A cascade that began a short while ago is shown in shorter
slices, read from its compared rounds: while one looks, something moves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.abstentions import UNKNOWN, Abstentions
from stopwise.service.cascades.counting import stop_codes
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.rounds import StoredRound
from stopwise.service.database.writing import HOUR

if TYPE_CHECKING:
    from stopwise.service.core import Service

_SHORT = 2  # hours: what began later than this is shown in slices
_MOST_ROUNDS = 4000  # read for it
_WIDTHS = (10, 30, 60, 300)  # seconds of a slice: the first that makes do with 40


@dataclass(frozen=True)
class PairShare:
    """How often two stages differed in one slice of time."""

    at: float
    shallow: str
    deep: str
    disagreement: float
    seen: int


@dataclass(frozen=True)
class TimeSlice:
    """What happened in one slice of time.

    Attributes:
        at: its beginning, in seconds since 1970.
        shares: of the answers given, by stage; all 0 where there were none.
        pairs: every two stages that were compared in it.
    """

    at: float
    requests: int
    shares: tuple[float, ...]
    spent: float
    pairs: tuple[PairShare, ...]


@dataclass(frozen=True)
class OverTime:
    """Slices, oldest first.

    Attributes:
        seconds: how long each slice is.
    """

    seconds: int
    slices: tuple[TimeSlice, ...]

    @property
    def answered(self) -> bool:
        """Whether any request was answered in this time."""
        return any(any(one.shares) for one in self.slices)

    @property
    def word(self) -> str:
        """The length of a slice, in words.

        >>> OverTime(3600, ()).word, OverTime(30, ()).word, OverTime(60, ()).word
        ('hour', '30 seconds', 'minute')
        """
        if self.seconds == HOUR:
            return "hour"
        if self.seconds == 60:
            return "minute"
        if self.seconds % 60:
            return f"{self.seconds} seconds"
        return f"{self.seconds // 60} minutes"


def over_time(
    service: Service, cascade: RunningCascade, segment: str | None = None, hours: int = 168
) -> OverTime:
    """The last hours of a cascade's epoch."""
    now = time.time()
    sums = service.rounds.by_hour(
        cascade.name, epoch=cascade.epoch, segment=segment, since=now - hours * HOUR
    )
    names = cascade.config.stage_names
    if sums and now - min(sums) * HOUR < _SHORT * HOUR:
        rounds = service.rounds.latest(cascade.name, cascade.epoch, segment, _MOST_ROUNDS)
        if 0 < len(rounds) < _MOST_ROUNDS:
            return slices_of(rounds, names, cascade.config.abstentions)
    return OverTime(HOUR, tuple(_hour(hour, part, names) for hour, part in sums.items()))


def slices_of(
    rounds: Sequence[StoredRound], names: Sequence[str], abstentions: Abstentions = "leave out"
) -> OverTime:
    """Rounds in slices of time.

    >>> form = {"stage": 1, "cost": 3.0, "codes": [0, 1], "depth": 1}
    >>> found = slices_of([StoredRound("r", "", 25.0, form)], ("small", "large"))
    >>> found.seconds, found.slices[0].at, found.slices[0].shares
    (10, 20.0, (0.0, 1.0))
    """
    span = max(one.at for one in rounds) - min(one.at for one in rounds)
    seconds = next((width for width in _WIDTHS if span < 40 * width), _WIDTHS[-1])
    sums: dict[int, dict[str, float]] = {}
    for one in sorted(rounds, key=lambda one: one.at):
        part = sums.setdefault(int(one.at // seconds), {})
        add = {"requests": 1.0, "spent": one.form["cost"], f"served:{one.form['stage']}": 1.0}
        codes = stop_codes(tuple(one.form["codes"]), one.form["depth"], len(names), abstentions)
        for j in range(0 if one.form.get("decided") else len(codes)):
            for i in range(j):
                if UNKNOWN not in (codes[i], codes[j]):
                    add[f"seen:{i}:{j}"] = 1.0
                    add[f"disagreed:{i}:{j}"] = float(codes[i] != codes[j])
        for name, value in add.items():
            part[name] = part.get(name, 0.0) + value
    return OverTime(seconds, tuple(_slice(at * seconds, part, names) for at, part in sums.items()))


def _hour(hour: int, sums: Mapping[str, float], names: Sequence[str]) -> TimeSlice:
    return _slice(hour * HOUR, sums, names)


def _slice(at: float, sums: Mapping[str, float], names: Sequence[str]) -> TimeSlice:
    served = [sums.get(f"served:{stage}", 0.0) for stage in range(len(names))]
    total = sum(served)
    pairs = [
        PairShare(float(at), names[i], names[j], sums.get(f"disagreed:{i}:{j}", 0.0) / seen,
                  int(seen))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if (seen := sums.get(f"seen:{i}:{j}", 0.0))
    ]  # fmt: skip
    return TimeSlice(
        at=float(at),
        requests=int(sums.get("requests", 0)),
        shares=tuple(number / total if total else 0.0 for number in served),
        spent=sums.get("spent", 0.0),
        pairs=tuple(pairs),
    )
