"""A verdict on counted patterns: what an abstention means, what is missing, what it costs."""

from __future__ import annotations

from stopwise.logs.judging.verdict import Verdict, doubt_of, judge
from stopwise.logs.judging.warnings.row_warnings import selective_stages
from stopwise.logs.reading.costs import costs_of
from stopwise.logs.reading.counting import NOT_CALLED, PatternCounts
from stopwise.logs.reading.log import baseline_of
from stopwise.logs.settings import LogSettings


def judge_counts(
    counts: PatternCounts, settings: LogSettings, families: int, segment: str | None = None
) -> Verdict:
    """Judge a log, or one segment of it.

    Args:
        families: how many verdicts share the level: the log and its segments.
    """
    selective = selective_stages(counts)
    # Where a stage was called on rows unlike the others, its bills say nothing of the others.
    costs, bounds = costs_of(counts, settings, segment, free_if_missing=selective)
    answers = counts.answers(settings.no_answer)
    partial = bool((counts.codes == NOT_CALLED).any())
    everything = range(len(counts.stages))
    whatever = endless = None
    if partial and bounds.measured:
        _, whatever = costs_of(counts, settings, segment, free_if_missing=everything)
    if bounds.measured:
        _, endless = costs_of(counts, settings, segment, selective, endless=True)
    return judge(
        counts.stages,
        counts.evidence(settings.no_answer),
        costs,
        level=settings.level,
        doubt=doubt_of(answers, counts.number, selective),
        missing=doubt_of(answers, counts.number, everything) if partial else None,
        cost_bounds=bounds,
        missing_cost_bounds=whatever,
        endless_cost_bounds=endless,
        families=families,
        baseline=baseline_of(counts.stages, settings),
    )
