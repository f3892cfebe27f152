"""An analysis as JSON holds it. Stages are named; lists by stage follow the order of `stages`."""

from __future__ import annotations

import math
from typing import Any

from stopwise.logs.judging.findings import Findings
from stopwise.logs.judging.scoring import TruthScore
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.reporting.words import verdict_sentence

VERSION = 1


def analysis_dict(analysis: Findings) -> dict[str, Any]:
    """The whole analysis. Regrets are in mistakes per item, costs and savings in cost units."""
    names = analysis.verdict.stages
    form: dict[str, Any] = {
        "version": VERSION,
        "log": analysis.name,
        "sentence": verdict_sentence(analysis.verdict),
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
            | (verdict_dict(s.verdict) if s.verdict else {"recommended_stage": None})
            for s in analysis.segments
        ]
    if analysis.truth is not None:
        form["truth"] = truth_dict(analysis.truth, analysis.verdict)
    return form


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict alone."""
    names = verdict.stages
    bounds = verdict.cost_bounds
    return {
        "stages": list(names),
        "costs": [float(cost) for cost in verdict.costs.per_stage],
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
            }
            for pair in verdict.pairs
        ],
        "worst_case_regret": [float(r) for r in verdict.worst_case_regret],
        "worst_case_regret_high": [float(r) for r in verdict.worst_case_regret_high],
        "minimax_stage": names[verdict.minimax_stage],
        "savings_vs_last": verdict.savings,
        "answers_changed": verdict.answers_changed,
        "answers_changed_at_most": verdict.answers_changed_at_most,
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
