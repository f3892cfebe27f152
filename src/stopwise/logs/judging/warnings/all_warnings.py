"""What a careful reader of a log would point out. Every warning has a code and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stopwise.logs.formatting import counted
from stopwise.logs.formatting import share as percent
from stopwise.logs.judging.readings import Readings
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.judging.warnings.content_warnings import (
    falling_costs,
    missing_bills,
    suspicious_answers,
)
from stopwise.logs.judging.warnings.log_warning import LogWarning
from stopwise.logs.judging.warnings.row_warnings import (
    abstentions,
    changes_over_time,
    labels_alike,
    partial,
    selective_stages,
)
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.settings import LogSettings

LEAST_GAP = 0.01
"""A stage that is wrong more often than a cheaper one by less than this is not worth a word."""

GAP_ERRORS = 0.5
"""A suspected gap must exceed that by this many standard errors; `benchmarks/OUTLIERS.md` says how
many false alarms are left."""

FEW_ROWS = 100


def warnings_of(counts: PatternCounts, verdict: Verdict, readings: Readings) -> list[LogWarning]:
    """All that should be pointed out, the weightiest first."""
    found = [LogWarning("selective_log", text) for text in selective_stages(counts).values()]
    found += changes_over_time(counts)
    found = warnings_of_evidence(verdict, readings, first=found)
    found += suspicious_answers(counts)
    found += missing_bills(counts)
    found += abstentions(counts)
    found += partial(counts)
    found += labels_alike(counts)
    return found


def warnings_of_evidence(
    verdict: Verdict, readings: Readings, first: Sequence[LogWarning] = ()
) -> list[LogWarning]:
    """What the pair counters alone show, with other findings put after the outliers."""
    return [
        *outlier_stages(verdict, readings),
        *first,
        *too_expensive(verdict),
        *too_few_rows(verdict),
        *falling_costs(verdict),
    ]


# ---- stages ---------------------------------------------------------------------------------


def outlier_stages(verdict: Verdict, readings: Readings) -> Iterator[LogWarning]:
    """A stage that is suspected to be wrong more often than a cheaper one.

    With only two stages, disagreement has no side, and nobody can be named. What is found and what
    is a false alarm was counted on cascades with known truth: see `benchmarks/OUTLIERS.md`.
    """
    if readings.why_not is not None:
        return
    names, suspected, estimated = (
        verdict.stages, readings.suspected_error_rates, readings.error_rates
    )  # fmt: skip
    for j in range(1, len(names)):
        worse = {}
        for i in range(j):
            pair = verdict.pair(i, j)
            gap = float(suspected[j] - suspected[i])
            chance = float(np.sqrt(max(pair.disagreement, 1 / pair.seen) / pair.seen))
            if gap > LEAST_GAP + GAP_ERRORS * chance:
                worse[i] = gap
        if not worse:
            continue
        i = max(worse, key=worse.__getitem__)
        last = " It is the most expensive." if j == len(names) - 1 else ""
        if estimated[j] - estimated[i] > LEAST_GAP:
            why = (
                f"by how the stages agree it is wrong more often: on about"
                f" {percent(float(estimated[j]))} of items against {percent(float(estimated[i]))}"
            )
        else:  # figures beside those of the estimate would only confuse
            why = (
                "by how the stages agree it looks wrong more often; only the belief that a deeper"
                " stage is better makes up for that in the estimate"
            )
        yield LogWarning(
            "outlier_stage",
            f"{names[j]} costs more than {names[i]}, but {why}. It may well be the worse stage: try"
            f" without it.{last}",
            j,
        )


def too_expensive(verdict: Verdict) -> Iterator[LogWarning]:
    """A step that costs as much as a mistake: mostly costs and mistake cost in other units."""
    for pair in verdict.pairs:
        if pair.deep == pair.shallow + 1 and pair.threshold >= 1:
            yield LogWarning(
                "costs_more_than_a_mistake",
                f"calling {verdict.stages[pair.deep]} costs {pair.threshold:.4g} times a mistake,"
                " so it cannot pay whatever it answers. Are its cost and the mistake cost in the"
                " same units, for one item?",
            )


# ---- rows -----------------------------------------------------------------------------------


def too_few_rows(verdict: Verdict) -> Iterator[LogWarning]:
    """Verdicts that more items, and no labels, would turn to certain; and tiny logs."""
    least = min(verdict.pairs, key=lambda pair: pair.seen)
    if least.seen < FEW_ROWS:
        yield LogWarning(
            "few_rows",
            f"only {counted(least.seen, 'item was', 'items were')} answered by both"
            f" {verdict.stages[least.shallow]} and {verdict.stages[least.deep]}: the"
            " intervals are wide.",
        )
    for pair in verdict.pairs:
        if pair.more_rows_settle is not None and not pair.certain:
            yield LogWarning(
                "more_rows_would_tell",
                f"too few rows to tell whether {verdict.stages[pair.deep]} can be ruled out against"
                f" {verdict.stages[pair.shallow]}: about"
                f" {counted(pair.more_rows_settle, 'item')} like these would do"
                f" (now {pair.seen:,}), without labels.",
            )


def assumed_settings(settings: LogSettings) -> list[LogWarning]:
    """What was assumed because nobody said it."""
    if settings.mistake_cost is not None:
        return []
    return [
        LogWarning(
            "mistake_cost_assumed",
            "no mistake cost was given, so a wrong answer is taken to cost 1 in the units of the"
            " costs; see the ranges of mistake costs for other values.",
        )
    ]
