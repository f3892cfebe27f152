"""An analysis as JSON holds it. Stages are named; lists by stage follow the order of `stages`."""

from __future__ import annotations

import math
from typing import Any

from stopwise.costs import FloatArray
from stopwise.logs.judging.findings import Findings
from stopwise.logs.judging.readings import (
    ASSUMPTIONS,
    CERTAIN,
    ESTIMATED,
    MINIMAX,
    RULE_OF_THUMB,
    WEAK_DOMINANCE,
    Readings,
)
from stopwise.logs.judging.scoring import TruthScore
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.reporting.headline import headline

VERSION = 1


def analysis_dict(analysis: Findings) -> dict[str, Any]:
    """The whole analysis. Regrets are in mistakes per item, costs and savings in cost units."""
    names = analysis.verdict.stages
    form: dict[str, Any] = {
        "version": VERSION,
        "log": analysis.name,
        "sentence": headline(analysis.verdict, analysis.readings),
        **readings_dict(analysis.readings, analysis.verdict),
        **verdict_dict(analysis.verdict),
        "rows": analysis.rows,
        "warnings": [
            {
                "code": w.code,
                "message": w.message,
                "stage": None if w.stage is None else names[w.stage],
            }
            for w in analysis.warnings
        ],
        "sweep": [
            {
                "from": here.start,
                "to": no_infinity(here.end),
                "stage": names[here.stage],
                "certain": here.certain,
                "nothing_deeper_pays_below": no_infinity(here.nothing_deeper_pays_below),
            }
            for here in analysis.mistake_cost_ranges
        ],
        "what_if": [
            {
                "change": change.change,
                "stages": [names[s] for s in change.stages],
                "recommended_stage": names[change.recommended],
                "cost": change.cost,
                "cost_change": change.cost_change,
                "worst_case_regret": change.worst_case_regret,
            }
            for change in analysis.what_ifs
        ],
        "switched": int(analysis.evidence.switched),
        "switched_twice": int(analysis.evidence.switched_twice),
    }
    if analysis.counts is not None:
        form |= analysis.counts.by_stage()
    if analysis.segments:
        form["segments"] = [
            {"segment": s.name, "rows": s.rows}
            | (readings_dict(s.readings, s.verdict) if s.verdict and s.readings else {})
            | (verdict_dict(s.verdict) if s.verdict else {"recommended_stage": None})
            for s in analysis.segments
        ]
    if analysis.alone is not None:
        alone = analysis.alone
        form["alone"] = {
            "sentence": headline(alone.verdict, alone.readings),
            **readings_dict(alone.readings, alone.verdict),
            **verdict_dict(alone.verdict),
        }
    if analysis.truth is not None:
        form["truth"] = truth_dict(analysis.truth, analysis.verdict)
    if analysis.per_item is not None:
        form["per_item"] = analysis.per_item.to_dict()
    if analysis.per_item_alone is not None:
        form["per_item_alone"] = analysis.per_item_alone.to_dict()
    return form


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict alone."""
    names = verdict.stages
    bounds = verdict.cost_bounds
    return {
        "stages": list(names),
        "costs": list(bounds.own),
        "costs_measured": bounds.measured,
        "cost_intervals": [list(pair) for pair in zip(bounds.low, bounds.high, strict=True)],
        "cumulative_costs": list(verdict.costs.cumulative),
        "mistake_cost": verdict.costs.mistake_cost,
        "level": verdict.level,
        "recommended_stage": names[verdict.recommended],
        "nothing_deeper_pays": verdict.nothing_deeper_pays,
        "probability_by_stage": [float(p) for p in verdict.probability_by_stage],
        "pairs": [
            {
                "shallow": names[pair.shallow],
                "deep": names[pair.deep],
                "seen": pair.seen,
                "disagreement": pair.disagreement,
                "low": pair.low,
                "high": pair.high,
                "may_differ_high": pair.may_differ_high,
                "threshold": pair.threshold,
                "threshold_low": pair.threshold_low,
                "credible_level": pair.credible_level,
                "verdict": pair.verdict,
                "more_rows_settle": pair.more_rows_settle,
                "certain_whatever_is_missing": pair.certain and pair.whatever_missing,
            }
            for pair in verdict.pairs
        ],
        "worst_case_regret": [float(r) for r in verdict.worst_case_regret],
        "worst_case_regret_high": [float(r) for r in verdict.worst_case_regret_high],
        "minimax_stage": names[verdict.minimax_stage],
        "savings_vs_last": verdict.savings,
        "savings_vs_last_alone": bounds.own[verdict.baseline]
        - verdict.costs.cumulative[verdict.recommended],
        "calls": bounds.calls,
        "baseline": names[verdict.baseline],
        "answers_changed": verdict.answers_changed,
        "answers_changed_at_most": verdict.answers_changed_at_most,
    }


def readings_dict(readings: Readings, verdict: Verdict) -> dict[str, Any]:
    """The headline and all readings; error rates are shares of items."""
    names = verdict.stages

    def name(stage: int | None) -> str | None:
        return None if stage is None else names[stage]

    def numbers(values: FloatArray | None) -> list[float] | None:
        return None if values is None else [float(value) for value in values]

    estimated: dict[str, Any] = {
        "stage": name(readings.estimated),
        "assumption": ASSUMPTIONS[ESTIMATED],
        "why_not": readings.why_not,
        "check_passed": readings.check_passed,
        "dependent_pairs": [[names[i], names[j]] for i, j in readings.dependent_pairs],
    }
    if readings.why_not is None:
        estimated |= {
            "error_rates": numbers(readings.error_rates),
            "error_rates_low": numbers(readings.error_rates_low),
            "error_rates_high": numbers(readings.error_rates_high),
            "chance_of_being_best": numbers(readings.chances),
        }
    return {
        "headline_stage": name(readings.headline_stage),
        "headline_reading": readings.headline_reading,
        "labels_to_settle": readings.labels_to_settle,
        "readings": {
            CERTAIN: {
                "stage": name(readings.certain),
                "assumption": ASSUMPTIONS[CERTAIN],
                "not_ruled_out": [names[stage] for stage in readings.candidates],
            },
            WEAK_DOMINANCE: {
                "stage": name(readings.weak_dominance),
                "assumption": ASSUMPTIONS[WEAK_DOMINANCE],
            },
            ESTIMATED: estimated,
            RULE_OF_THUMB: {
                "stage": name(readings.rule_of_thumb),
                "assumption": ASSUMPTIONS[RULE_OF_THUMB],
            },
            MINIMAX: {"stage": name(readings.minimax), "assumption": ASSUMPTIONS[MINIMAX]},
        },
    }


def truth_dict(truth: TruthScore, verdict: Verdict) -> dict[str, Any]:
    """How the verdict held against the truth."""
    names = verdict.stages
    return {
        "rows": truth.rows,
        "error_rates": [float(rate) for rate in truth.error_rates],
        "error_rates_if_abstaining_is_wrong": [
            float(rate) for rate in truth.error_rates_if_abstaining_is_wrong
        ],
        "expected_total_costs": [float(total) for total in truth.expected_total_costs],
        "optimal_stage": names[truth.optimal_stage],
        "margin": truth.margin,
        "weak_dominance": truth.weak_dominance,
        "regret_by_stage": [float(regret) for regret in truth.regret_by_stage],
        "regret_of_recommended": truth.regret_of_recommended,
        "certain_but_wrong": [[names[i], names[j]] for i, j in truth.certain_but_wrong],
    }


def no_infinity(value: float) -> float | None:
    """JSON has no infinity; an open end is null.

    >>> no_infinity(math.inf), no_infinity(2.0)
    (None, 2.0)
    """
    return None if math.isinf(value) or math.isnan(value) else value
