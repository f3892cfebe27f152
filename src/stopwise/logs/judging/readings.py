"""Four readings of one log, each with its assumption, and which of them the headline takes.

- *certain*: no assumption but that items to come are like those of the log;
- *weak-dominance*: the paper's rule, right if every deeper stage differs from the best one too
  rarely to pay, even if it were always right there;
- *estimated*: error rates from how the stages agree among themselves; right as far as errors of
  different stages are not copies of each other;
- *minimax*: trusts nobody, and takes the stage whose worst case is the smallest.

The headline takes what is certain first, then the estimate. With two stages nothing can be
estimated; then it goes by the *rule of thumb* that on balance a deeper stage fixes about a third of
the differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stopwise.costs import FloatArray
from stopwise.decisions import optimal_stage, optimal_stages
from stopwise.estimating import (
    Estimate,
    by_rule_of_thumb,
    estimate,
    estimate_from_pairs,
)
from stopwise.estimating.dependence import NOTABLE
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.settings import LogSettings

CERTAIN, WEAK_DOMINANCE, ESTIMATED = "certain", "weak-dominance", "estimated"
RULE_OF_THUMB, MINIMAX = "rule-of-thumb", "minimax"

ASSUMPTIONS = {
    CERTAIN: "none, but that the items to come are like those of the log",
    WEAK_DOMINANCE: "every deeper stage differs from the best one too rarely to pay",
    ESTIMATED: "errors of different stages are not copies of each other",
    RULE_OF_THUMB: "on balance a deeper stage fixes about a third of the differences",
    MINIMAX: "none: the stage whose worst case is the smallest",
}


@dataclass(frozen=True)
class Readings:
    """Where each reading stops; stages are 0-based, None where a reading says nothing.

    Attributes:
        headline_stage: the stage of the first sentence.
        headline_reading: the reading that it rests on.
        candidates: the stages that are not ruled out for certain.
        certain: the one that is left, if only one is.
        weak_dominance: the paper's rule.
        estimated: the stage with the smallest estimated total cost, among the candidates.
        rule_of_thumb: where nothing can be estimated, what takes its place.
        minimax: the stage with the smallest worst case.
        error_rates: estimated (or by rule of thumb), of every stage.
        suspected_error_rates: the same without belief in deeper stages
            (`estimating.Estimate.suspected_error_rates`): by these a stage is warned of.
        error_rates_low: lower ends of 95 % intervals; None where there are none.
        error_rates_high: their upper ends.
        chances: share of samples of the items in which each stage has the smallest estimated cost.
        dependent_pairs: pairs that agree far more than their estimated errors explain.
        check_passed: whether there are none, and enough items to estimate from.
        why_not: why nothing was estimated; None where it was.
        labels_to_settle: about how many labels `stopwise audit` would take; 0 if it is certain.
    """

    headline_stage: int | None
    headline_reading: str
    candidates: tuple[int, ...]
    certain: int | None
    weak_dominance: int
    estimated: int | None
    rule_of_thumb: int | None
    minimax: int
    error_rates: FloatArray
    suspected_error_rates: FloatArray
    error_rates_low: FloatArray | None
    error_rates_high: FloatArray | None
    chances: FloatArray | None
    dependent_pairs: tuple[tuple[int, int], ...]
    check_passed: bool
    why_not: str | None
    labels_to_settle: int

    def stage_of(self, reading: str) -> int | None:
        """Where a reading stops."""
        stages = {
            CERTAIN: self.certain,
            WEAK_DOMINANCE: self.weak_dominance,
            ESTIMATED: self.estimated,
            RULE_OF_THUMB: self.rule_of_thumb,
            MINIMAX: self.minimax,
        }
        return stages[reading]


def readings_of(
    verdict: Verdict, settings: LogSettings, counts: PatternCounts | None = None
) -> Readings:
    """All readings of a verdict; from pair counters alone where there are no patterns."""
    candidates = candidate_stages(verdict)
    sole = candidates[0] if len(candidates) == 1 else None
    disagreement = _disagreement(verdict)
    in_mistakes = verdict.costs.in_mistakes
    why_not = None
    found: Estimate | None = None
    low = high = chances = None
    pairs: tuple[tuple[int, int], ...] = ()
    if len(verdict.stages) < 3:
        why_not = "two stages: nothing can be estimated without a third"
    elif counts is not None:
        found = _estimate_of(counts, settings)
        if found is None:
            why_not = "fewer than three stages ever answer: nothing can be estimated"
        elif not found.enough or np.isnan(found.error_rates).any():
            why_not = "too few items on which the stages differ"
    if why_not is not None:
        errors = by_rule_of_thumb(disagreement)
    elif found is not None:
        errors = found.error_rates
        low, high = found.interval()
        chances = _chances(found.draws, in_mistakes, candidates)
        pairs = found.dependence.pairs
    else:
        from_pairs = estimate_from_pairs(disagreement)
        errors = from_pairs.error_rates
        above = np.argwhere(np.triu(from_pairs.unexplained, 1) > NOTABLE)
        pairs = tuple((int(i), int(j)) for i, j in above)
    suspected = errors if why_not is not None or found is None else found.suspected_error_rates
    best = _best(errors + in_mistakes, candidates)
    estimated = None if why_not is not None else best
    rule_of_thumb = best if why_not is not None else None
    stages = {
        CERTAIN: sole,
        WEAK_DOMINANCE: verdict.recommended,
        ESTIMATED: estimated,
        MINIMAX: verdict.minimax_stage,
    }
    if settings.reading != "auto":
        headline, reading = stages[settings.reading], settings.reading
    elif sole is not None:
        headline, reading = sole, CERTAIN
    else:
        headline, reading = best, RULE_OF_THUMB if why_not is not None else ESTIMATED
    return Readings(
        headline_stage=headline,
        headline_reading=reading,
        candidates=candidates,
        certain=sole,
        weak_dominance=verdict.recommended,
        estimated=estimated,
        rule_of_thumb=rule_of_thumb,
        minimax=verdict.minimax_stage,
        error_rates=errors,
        suspected_error_rates=suspected,
        error_rates_low=low,
        error_rates_high=high,
        chances=chances,
        dependent_pairs=pairs,
        check_passed=why_not is None and not pairs,
        why_not=why_not,
        labels_to_settle=labels_to_settle(verdict, errors, candidates, best),
    )


def _estimate_of(counts: PatternCounts, settings: LogSettings) -> Estimate | None:
    """The estimate from counted patterns; None where fewer than three stages ever answer.

    It looks at no costs, only at the order of the stages.
    """
    if (counts.codes >= 0).any(axis=0).sum() < 3:
        return None
    return estimate(counts.codes, counts.number, abstentions=settings.no_answer)


def candidate_stages(verdict: Verdict) -> tuple[int, ...]:
    """Stages that no shallower one makes useless for certain; the first always is one."""
    out = {pair.deep for pair in verdict.pairs if pair.certain}
    return tuple(s for s in range(len(verdict.stages)) if s not in out)


def labels_to_settle(
    verdict: Verdict, errors: FloatArray, candidates: tuple[int, ...], best: int
) -> int:
    """About how many labels tell the best stage from every other candidate, if errors are these.

    On the items on which two stages differ, the winnings Z of one over the other (+1, 0, -1) have
    the mean (gamma_i - gamma_j) / p_ij, which must be told from threshold / p_ij. Betting takes
    about 2 log(2 / alpha) var(Z) / gap^2 labels on such items; never more than there are.
    """
    pairs = max(len(candidates) * (len(candidates) - 1) // 2, 1)
    alpha = (1 - verdict.level) / pairs
    most = 0.0
    for other in candidates:
        if other == best:
            continue
        pair = verdict.pair(min(best, other), max(best, other))
        items = pair.disagreement * pair.seen
        if pair.disagreement <= 0:
            continue
        mean = float(errors[pair.shallow] - errors[pair.deep]) / pair.disagreement
        gap = abs(mean - pair.threshold / pair.disagreement)
        spread = max(1 - mean * mean, 0.1)
        easy = 1 / max(gap, 1e-9)  # its square is a number whatever the costs, that of a gap is not
        needed = 2 * math.log(2 / alpha) * (spread * easy * easy + easy)
        most = max(most, min(needed, items))
    return math.ceil(most)


def _best(totals: FloatArray, candidates: tuple[int, ...]) -> int:
    return optimal_stage(_only(totals, candidates))


def _only(totals: FloatArray, candidates: tuple[int, ...]) -> FloatArray:
    """The same totals, infinite for stages that are out of the question."""
    kept = np.full(totals.shape, np.inf)
    kept[..., list(candidates)] = totals[..., list(candidates)]
    return kept


def _chances(draws: FloatArray, in_mistakes: FloatArray, candidates: tuple[int, ...]) -> FloatArray:
    chosen = optimal_stages(_only(draws + in_mistakes, candidates))
    return np.bincount(chosen, minlength=draws.shape[1]) / len(draws)


def _disagreement(verdict: Verdict) -> FloatArray:
    stage_count = len(verdict.stages)
    table = np.zeros((stage_count, stage_count))
    for pair in verdict.pairs:
        table[pair.shallow, pair.deep] = pair.disagreement
    return table
