"""Page 1: all cascades."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.service.cascades.spending import DAY, today
from stopwise.service.cascades.verdicts import (
    judged_of,
    matter_of,
    sentence_of,
    standing_of,
    title_of,
)

if TYPE_CHECKING:
    from stopwise.service.core import Service


@dataclass(frozen=True)
class CascadeLine:
    """One cascade in the list.

    Attributes:
        sentence: the verdict, in one sentence; `title` and `reason` are its two parts.
        certain: whether it is certain that nothing deeper than the choice pays.
        standing, matter: what is certain or not knowable, and of what that is said.
        requests, spent, comparison: today (UTC); `comparison` is the part of what was spent whose
            answers nobody got.
        served_by: how many of today's answers each stage gave.
    """

    name: str
    mode: str
    stages: tuple[str, ...]
    sentence: str
    title: str
    reason: str
    certain: bool
    standing: str
    matter: str
    rounds: int
    requests: int
    spent: float
    comparison: float
    served_by: tuple[int, ...]


def cascade_lines(service: Service) -> list[CascadeLine]:
    """Every cascade, in the order of the file."""
    since = today(time.time()) * DAY
    lines = []
    for name, cascade in service.cascades.items():
        all_time = service.rounds.sums(name, epoch=cascade.epoch)
        sums = service.rounds.sums(name, since=since)
        judged = judged_of(cascade, all_time)
        title, reason = title_of(cascade, judged, all_time)
        stage_count = len(cascade.config.stages)
        lines.append(
            CascadeLine(
                name=name,
                mode=cascade.mode,
                stages=cascade.config.stage_names,
                sentence=sentence_of(cascade, judged, all_time),
                title=title,
                reason=reason,
                certain=judged is not None and judged.nothing_deeper_pays,
                standing=standing_of(judged),
                matter=matter_of(judged),
                rounds=int(all_time.get("rounds", 0)),
                requests=int(sums.get("requests", 0)),
                spent=sums.get("spent", 0.0),
                comparison=sums.get("comparison", 0.0),
                served_by=tuple(int(sums.get(f"served:{at}", 0)) for at in range(stage_count)),
            )
        )
    return lines
