"""What a careful reader of a log would point out. Every warning has a code and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stopwise.costs import FloatArray
from stopwise.evidence import Evidence
from stopwise.logs.formatting import share as percent
from stopwise.logs.judging.log_warning import LOW_COUNT, SIGMAS, LogWarning
from stopwise.logs.judging.readings import Readings
from stopwise.logs.judging.row_warnings import (
    abstentions,
    changes_over_time,
    labels_alike,
    partial,
    selective_stages,
)
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.settings import LogSettings
from stopwise.problem import IntArray

OUTLIER_RATIO = 1.5
"""A stage is an outlier if even its nearest stage is this much further than the others' nearest."""

ORDER_RATIO = 1.25
"""An expensive stage is questioned if it differs from the rest this many times as often."""

FEW_ROWS = 100


def warnings_of(
    counts: PatternCounts, verdict: Verdict, readings: Readings, evidence: Evidence
) -> list[LogWarning]:
    """All that should be pointed out, the weightiest first."""
    found = [LogWarning("selective_log", text) for text in selective_stages(counts).values()]
    found += order_in_question(counts)
    found += changes_over_time(counts)
    found = warnings_of_evidence(verdict, readings, evidence, len(counts.labels), first=found)
    found += abstentions(counts)
    found += partial(counts)
    found += labels_alike(counts)
    return found


def warnings_of_evidence(
    verdict: Verdict,
    readings: Readings,
    evidence: Evidence,
    labels: int,
    first: Sequence[LogWarning] = (),
) -> list[LogWarning]:
    """What the pair counters alone show, with other findings put after the outliers."""
    return [
        *outlier_stages(verdict),
        *first,
        *too_expensive(verdict),
        *too_few_rows(verdict),
        *switching_twice(evidence, labels),
    ]


# ---- stages ---------------------------------------------------------------------------------


def outlier_stages(verdict: Verdict) -> Iterator[LogWarning]:
    """A stage that agrees with nobody: even its nearest is far, while others are near each other.

    With only two stages, disagreement has no side, and nobody can be named.
    """
    names = verdict.stages
    if len(names) < 3:
        return
    low, high = _bounds(verdict, "low"), _bounds(verdict, "high")
    share = _bounds(verdict, "disagreement")
    for s in range(len(names)):
        others = [k for k in range(len(names)) if k != s]
        nearest = min(others, key=lambda k: share[s, k])
        # How near the others have somebody among themselves: what agreement looks like here.
        usual = sorted(min((share[k, o], k, o) for o in others if o != k) for k in others)
        typical, k, o = usual[len(usual) // 2]
        if share[s, nearest] < OUTLIER_RATIO * typical or low[s, nearest] <= high[k, o]:
            continue
        if s == 0:
            advice = "As the cheapest it may well be the worst stage."
        elif s == int(np.argmax(verdict.costs.per_stage)):
            advice = "It is the most expensive, yet may well be the worst stage: try without it."
        else:
            advice = "It may well be the worst stage: try without it."
        yield LogWarning(
            "outlier_stage",
            f"{names[s]} agrees with nobody: it differs from its nearest stage ({names[nearest]})"
            f" on {percent(share[s, nearest])} of items, where {percent(typical)} is usual among"
            f" the others. {advice}",
            s,
        )


def order_in_question(counts: PatternCounts) -> Iterator[LogWarning]:
    """A more expensive stage further from the rest than a cheaper one.

    If errors were independent, the stage that differs more from all others would be the worse one
    (with two labels, 1 - 2 p_ij = (1 - 2 gamma_i)(1 - 2 gamma_j)). They never quite are: a hint.
    """
    count = len(counts.stages)
    complete = (counts.codes >= 0).all(axis=1)
    codes, number = counts.codes[complete], counts.number[complete]
    rows = int(number.sum())
    if count < 3 or rows < LOW_COUNT:
        return
    for j in range(1, count):
        nearer = {i: gap for i in range(j) if (gap := _further(codes, number, rows, i, j))}
        if nearer:
            cheaper = ", ".join(counts.stages[i] for i in nearer)
            yield LogWarning(
                "order_questioned",
                f"{counts.stages[j]} comes after {cheaper} but differs more from the other stages"
                f" (by {percent(max(nearer.values()))} of items on average). If errors were"
                " independent it would be the worse one: question its place.",
                j,
            )


def _further(codes: IntArray, number: IntArray, rows: int, i: int, j: int) -> float | None:
    """By how much j differs more from the others than i does, if that is more than chance."""
    others = [k for k in range(codes.shape[1]) if k not in (i, j)]
    of_i = np.mean([codes[:, i] != codes[:, k] for k in others], axis=0)
    of_j = np.mean([codes[:, j] != codes[:, k] for k in others], axis=0)
    excess = of_j - of_i
    mean = float(number @ excess) / rows
    error = np.sqrt(max(float(number @ excess**2) / rows - mean**2, 0.0) / rows)
    least = (ORDER_RATIO - 1) * float(number @ of_i) / rows
    return mean if mean > max(SIGMAS * error, least) else None


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


def switching_twice(evidence: Evidence, labels: int) -> Iterator[LogWarning]:
    """Rounds whose outputs switch twice: with two labels they refute strong dominance."""
    if evidence.switched_twice:
        share = evidence.switched_twice / evidence.switched
        effect = (
            "so a stage that is right is not always followed by stages that are right (strong"
            " dominance is refuted)"
            if labels == 2
            else "which speaks against strong dominance (once right, right from there on)"
        )
        yield LogWarning(
            "not_strongly_dominant",
            f"on {evidence.switched_twice:,} items the answer switches twice or more along the"
            f" cascade ({percent(share)} of those on which it switches), {effect}.",
        )


# ---- rows -----------------------------------------------------------------------------------


def too_few_rows(verdict: Verdict) -> Iterator[LogWarning]:
    """Verdicts that more items, and no labels, would turn to certain; and tiny logs."""
    least = min(verdict.pairs, key=lambda pair: pair.seen)
    if least.seen < FEW_ROWS:
        yield LogWarning(
            "few_rows",
            f"only {least.seen} items were answered by both {verdict.stages[least.shallow]} and"
            f" {verdict.stages[least.deep]}: the intervals are wide.",
        )
    for pair in verdict.pairs:
        if pair.more_rows_settle is not None and not pair.certain:
            yield LogWarning(
                "more_rows_would_tell",
                f"too few rows to tell whether {verdict.stages[pair.deep]} can be ruled out against"
                f" {verdict.stages[pair.shallow]}: about {pair.more_rows_settle:,} items like these"
                f" would do (now {pair.seen:,}), without labels.",
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


# ---- tools ----------------------------------------------------------------------------------


def _bounds(verdict: Verdict, field: str) -> FloatArray:
    count = len(verdict.stages)
    table = np.zeros((count, count))
    for pair in verdict.pairs:
        table[pair.shallow, pair.deep] = table[pair.deep, pair.shallow] = getattr(pair, field)
    return table
