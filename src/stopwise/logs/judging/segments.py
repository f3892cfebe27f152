"""A verdict of its own for every value of the segment column."""

from __future__ import annotations

from dataclasses import dataclass

from stopwise.logs.judging.judge_counts import judge_counts
from stopwise.logs.judging.readings import Readings, readings_of
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.reading.pairs import unseen_pairs
from stopwise.logs.settings import LogSettings


@dataclass(frozen=True)
class Segment:
    """The verdict on the rows with one value of the segment column."""

    name: str
    rows: int
    verdict: Verdict | None
    readings: Readings | None


def _has_costs(part: PatternCounts) -> bool:
    return part.billed is None or bool((part.billed.means()[1] >= 2).all())


def judge_segments(
    counts: PatternCounts, settings: LogSettings, families: int
) -> tuple[Segment, ...]:
    """A verdict for each segment, the largest first, with its own costs where they are measured."""
    segments = []
    for at, name in enumerate(counts.segments):
        part = counts.where(counts.segment == at)
        if unseen_pairs(part.evidence(settings.no_answer)).any() or not _has_costs(part):
            segments.append(Segment(name, part.rows, None, None))
            continue
        verdict = judge_counts(part, settings, families, segment=name)
        segments.append(Segment(name, part.rows, verdict, readings_of(verdict, settings, part)))
    return tuple(sorted(segments, key=lambda segment: -segment.rows))
