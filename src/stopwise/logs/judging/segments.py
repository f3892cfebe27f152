"""A verdict of its own for every value of the segment column."""

from __future__ import annotations

from dataclasses import dataclass

from stopwise.costs import Costs
from stopwise.logs.judging.row_warnings import selective_stages
from stopwise.logs.judging.verdict import Verdict, doubt_of, judge
from stopwise.logs.reading.costs import CostBounds
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.reading.pairs import unseen_pairs
from stopwise.logs.settings import LogSettings


@dataclass(frozen=True)
class Segment:
    """The verdict on the rows with one value of the segment column."""

    name: str
    rows: int
    verdict: Verdict | None


def judge_segments(
    counts: PatternCounts, costs: Costs, bounds: CostBounds, settings: LogSettings, families: int
) -> tuple[Segment, ...]:
    """A verdict for each segment, the largest first; costs are those of the whole log."""
    segments = []
    for at, name in enumerate(counts.segments):
        part = counts.where(counts.segment == at)
        evidence = part.evidence()
        verdict = None
        if not unseen_pairs(evidence).any():
            verdict = judge(
                counts.stages,
                evidence,
                costs,
                level=settings.level,
                doubt=doubt_of(part.codes, part.number, selective_stages(part)),
                cost_bounds=bounds,
                families=families,
            )
        segments.append(Segment(name, part.rows, verdict))
    return tuple(sorted(segments, key=lambda segment: -segment.rows))
