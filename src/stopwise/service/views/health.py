"""Page 6: drift, failures, comparisons that are missing: shown, never silent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.writing import HOUR
from stopwise.service.views.over_time import OverTime, over_time

if TYPE_CHECKING:
    from stopwise.service.core import Service


@dataclass(frozen=True)
class AlarmLine:
    """A pair whose disagreement changed."""

    at: float
    segment: str
    shallow: str
    deep: str
    before: float
    after: float


@dataclass(frozen=True)
class StageHealth:
    """How a stage did: calls, failures, abstentions, mean seconds of a call."""

    stage: str
    calls: int
    failed: int
    abstained: int
    seconds: float | None


@dataclass(frozen=True)
class HealthView:
    """All that page 6 shows, over some hours.

    Attributes:
        missing: comparisons that were due and did not come, by reason.
        uncounted: requests served without a comparison, by reason.
        unanswered: requests that got an error; `abandoned`: whose client left.
        unwritten, dropped: requests that wait to be written, and that never will be.
        over_time: how often every two stages differed.
    """

    name: str
    hours: int
    alarms: tuple[AlarmLine, ...]
    stages: tuple[StageHealth, ...]
    missing: tuple[tuple[str, int], ...]
    uncounted: tuple[tuple[str, int], ...]
    unanswered: int
    abandoned: int
    unwritten: int
    dropped: int
    over_time: OverTime


def health_view(service: Service, cascade: RunningCascade, hours: int = 168) -> HealthView:
    """Read how a cascade has done."""
    names = cascade.config.stage_names
    since = time.time() - hours * HOUR
    sums = service.rounds.sums(cascade.name, since=since)

    def named(prefix: str) -> tuple[tuple[str, int], ...]:
        return tuple(
            (name.removeprefix(prefix), int(value))
            for name, value in sorted(sums.items())
            if name.startswith(prefix)
        )

    stages = []
    for at, name in enumerate(names):
        calls = int(sums.get(f"calls:{at}", 0))
        seconds = sums.get(f"call_seconds:{at}", 0.0) / calls if calls else None
        failed, abstained = sums.get(f"failed:{at}", 0), sums.get(f"abstained:{at}", 0)
        stages.append(StageHealth(name, calls, int(failed), int(abstained), seconds))
    return HealthView(
        name=cascade.name,
        hours=hours,
        alarms=tuple(
            AlarmLine(
                alarm.at, alarm.segment, names[alarm.stages[0]], names[alarm.stages[1]],
                alarm.before, alarm.after,
            )
            for alarm in service.alarms.of(cascade.name, cascade.epoch)
        ),
        stages=tuple(stages),
        missing=named("missing:"),
        uncounted=named("uncounted:"),
        unanswered=int(sums.get("unanswered", 0)),
        abandoned=int(sums.get("abandoned", 0)),
        unwritten=service.recorder.waiting,
        dropped=service.recorder.dropped,
        over_time=over_time(service, cascade, None, hours),
    )  # fmt: skip
