"""What the evidence says: the rule's choice, what is certain, what is not knowable without labels.

For any truth, gamma_i - gamma_j <= p_ij: stage i is wrong where j is right only if they differ. So
if lambda (C_j - C_i) > p_ij, stage j cannot be worth its price over stage i: *certain*. If not,
the truth may be on either side (it may be that j is right wherever they differ, or i), and without
labels this is *not knowable*. The same bound gives the worst case of a choice: stopping at s
costs at most max_j [lambda (C_s - C_j) + p_sj] more than the best stage, and that is reached when
the truth is what stage j says. It needs no assumption at all.

Two things widen the bound that "certain" rests on (`may_differ`): where abstentions are left out,
an item on which one of the two abstained counts as one on which they may differ; and, in a partial
log whose rows went deeper selectively, so does a row in which one of the two was not called. In
other partial logs "certain" rests on the missing rows being like the others; `whatever_missing`
says whether it would hold without that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stopwise.costs import Costs, FloatArray
from stopwise.decisions import first_passing_stage, minimax_stage, passes, worst_cases
from stopwise.evidence import Counts, Evidence
from stopwise.logs.judging.intervals import rows_needed
from stopwise.logs.reading.costs import CostBounds
from stopwise.logs.reading.counting import ABSTAINED_CODE, NOT_CALLED
from stopwise.logs.reading.pairs import pair_indices, refuse_no_overlap
from stopwise.policies.uss_ts import UssTs
from stopwise.problem import IntArray
from stopwise.theory import share_bounds

CERTAIN = "certain"
TOO_FEW_ROWS = "too few rows"
NOT_KNOWABLE = "not knowable"


@dataclass(frozen=True)
class Doubt:
    """For every pair: on how many items the two answers may differ, and of how many."""

    seen: Counts
    differ: Counts


@dataclass(frozen=True)
class Pair:
    """What is known of a shallower and a deeper stage.

    Attributes:
        seen: items that both answered.
        disagreement: share of them on which the answers differ; `low` to `high` is its interval.
        may_differ_high: upper bound on the share of items on which the answers may differ, which
            also counts abstentions of one of the two and selectively missing answers.
        threshold: lambda (C_j - C_i); `threshold_low` at the lower bounds of measured costs.
        credible_level: posterior probability, from a uniform prior, that the answers may differ on
            less than the threshold, so that the deeper stage cannot be worth its price.
        verdict: "certain" (the deeper stage cannot be worth its price), "too few rows" (more items
            like these would make that certain) or "not knowable" (no number of items would).
        more_rows_settle: about how many items like these would make it certain; None if none.
        whatever_missing: whether it is certain even if all rows that lack one of the two differ,
            and if calls that were not made would have cost nothing.
    """

    shallow: int
    deep: int
    seen: int
    disagreed: int
    disagreement: float
    low: float
    high: float
    may_differ_high: float
    threshold: float
    threshold_low: float
    credible_level: float
    verdict: str
    more_rows_settle: int | None
    whatever_missing: bool = True

    @property
    def certain(self) -> bool:
        """Whether the deeper stage cannot be worth its price over the shallower one."""
        return self.verdict == CERTAIN


@dataclass(frozen=True)
class Verdict:
    """Where to stop, and how far that can be known. Stages are 0-based.

    Attributes:
        recommended: the first stage that every deeper one disagrees with too little to be worth
            its price; the best stage if weak dominance holds.
        nothing_deeper_pays: whether it is certain that no stage deeper than it is worth its price.
            False of the last stage, which has none deeper. That a shallower stage would not be
            enough is never certain, so only of the first stage does this prove that it is the best.
        probability_by_stage: posterior probability that each stage is the rule's choice.
        worst_case_regret: of every stage, in mistakes per item, at the shares seen in the log;
            `worst_case_regret_high` at the upper bounds.
        savings: how much less one item costs than always at the baseline.
        answers_changed: share of answers that differ from those of the baseline, seen;
            `..._at_most`: bound.
        baseline: the stage that savings are stated against; the last unless the user says.
    """

    stages: tuple[str, ...]
    costs: Costs
    cost_bounds: CostBounds
    level: float
    pairs: tuple[Pair, ...]
    recommended: int
    nothing_deeper_pays: bool
    probability_by_stage: FloatArray
    worst_case_regret: FloatArray
    worst_case_regret_high: FloatArray
    minimax_stage: int
    savings: float
    answers_changed: float
    answers_changed_at_most: float
    baseline: int

    @property
    def alone(self) -> bool:
        """Whether stages are called alone: each costs what it costs by itself."""
        return self.cost_bounds.alone

    def pair(self, one: int, other: int) -> Pair:
        """The pair of these two stages."""
        both = (min(one, other), max(one, other))
        return next(p for p in self.pairs if (p.shallow, p.deep) == both)


def doubt_of(codes: IntArray, number: IntArray, selective: Iterable[int] = ()) -> Doubt:
    """Count the items on which two answers differ or may differ (see the top of this file).

    >>> doubt = doubt_of(np.array([[0, 0], [0, 1], [-1, 0], [-1, -1]]), np.array([5, 1, 2, 9]))
    >>> doubt.differ[0, 1], doubt.seen[0, 1]
    (np.int64(3), np.int64(8))
    """
    stage_count = codes.shape[1]
    seen = np.zeros((stage_count, stage_count), dtype=np.int64)
    differ = np.zeros((stage_count, stage_count), dtype=np.int64)
    chosen = set(selective)
    for i in range(stage_count):
        for j in range(i + 1, stage_count):
            a, b = codes[:, i], codes[:, j]
            both = (a >= 0) & (b >= 0)
            one = ((a == ABSTAINED_CODE) & (b >= 0)) | ((a >= 0) & (b == ABSTAINED_CODE))
            if {i, j} & chosen:
                one |= (a == NOT_CALLED) | (b == NOT_CALLED)
            seen[i, j] = number[both | one].sum()
            differ[i, j] = number[(both & (a != b)) | one].sum()
    return Doubt(seen, differ)


def rule_choice(disagreement: FloatArray, thresholds: FloatArray) -> int:
    """The first stage that passes against every deeper one: min B of Lemma 1, at known shares.

    >>> shares = np.array([[0, 0.3, 0.2], [0, 0, 0.1], [0, 0, 0]])
    >>> rule_choice(shares, Costs.from_cumulative((0.0, 0.2, 0.5)).thresholds)
    1
    """
    return first_passing_stage(thresholds, disagreement)


def judge(
    stages: tuple[str, ...],
    evidence: Evidence,
    costs: Costs,
    *,
    level: float = 0.99,
    doubt: Doubt | None = None,
    missing: Doubt | None = None,
    cost_bounds: CostBounds | None = None,
    missing_cost_bounds: CostBounds | None = None,
    endless_cost_bounds: CostBounds | None = None,
    families: int = 1,
    baseline: int | None = None,
) -> Verdict:
    """Judge a cascade from its evidence.

    Args:
        level: probability with which everything called certain is true, over all pairs together
            (and over `families` verdicts of equal kind, such as segments).
        doubt: on how many items answers may differ; by default, those on which they do.
        missing: the same if all rows that lack one of the two are counted as differing.
        cost_bounds: intervals of measured costs; by default, the costs are exact. They also say
            whether stages are called alone: `costs` then has each one's own cost.
        missing_cost_bounds: the same if calls that were not made might have cost anything.
        endless_cost_bounds: what the intervals come to with any number of items like these; by
            default, the costs themselves.
        baseline: the stage that savings are stated against; the last unless given.

    >>> evidence = Evidence.from_counts([[0, 1000], [0, 0]], [[0, 20], [0, 0]])
    >>> verdict = judge(("fast", "slow"), evidence, Costs.from_cumulative((0.0, 0.1)))
    >>> verdict.stages[verdict.recommended], verdict.pairs[0].verdict
    ('fast', 'certain')
    """
    stage_count = evidence.stage_count
    refuse_no_overlap(stages, evidence)
    if cost_bounds is None:
        own = tuple(float(cost) for cost in costs.per_stage)
        cost_bounds = CostBounds(own, own, measured=False, own=own)
    tail = pair_tail(level, stage_count, not cost_bounds.exact, families)
    doubt = doubt or Doubt(evidence.seen, evidence.disagreed)
    low, high = share_bounds(evidence.disagreed, evidence.seen, tail)
    _, may_high = share_bounds(doubt.differ, doubt.seen, tail)
    may_high = np.maximum(may_high, high)
    as_evidence = Evidence.from_counts(doubt.seen, doubt.differ)
    credible, _ = UssTs().pair_tests(as_evidence, costs)
    shares = evidence.disagreement
    all_high = may_high
    if missing is not None:
        all_high = np.maximum(may_high, share_bounds(missing.differ, missing.seen, tail)[1])
    steps_low = cost_bounds.steps_low() / costs.mistake_cost
    all_steps_low = steps_low
    if missing_cost_bounds is not None:
        all_steps_low = missing_cost_bounds.steps_low() / costs.mistake_cost
    endless = costs.thresholds
    if endless_cost_bounds is not None:
        endless = np.minimum(endless, endless_cost_bounds.steps_low() / costs.mistake_cost)
    pairs = []
    for i, j in pair_indices(stage_count):
        threshold_low = float(steps_low[i, j])
        threshold = float(costs.thresholds[i, j])
        may_share = doubt.differ[i, j] / doubt.seen[i, j]
        limit = float(endless[i, j])
        unsure = max(limit - threshold_low, 0.0) * math.sqrt(doubt.seen[i, j])
        pairs.append(
            Pair(
                shallow=i,
                deep=j,
                seen=int(evidence.seen[i, j]),
                disagreed=int(evidence.disagreed[i, j]),
                disagreement=float(shares[i, j]),
                low=float(low[i, j]),
                high=float(high[i, j]),
                may_differ_high=float(may_high[i, j]),
                threshold=threshold,
                threshold_low=threshold_low,
                credible_level=float(credible[i, j]),
                verdict=_class(threshold_low, may_high[i, j], limit, may_share),
                more_rows_settle=rows_needed(may_share, limit, tail, unsure),
                whatever_missing=bool(min(threshold_low, all_steps_low[i, j]) > all_high[i, j]),
            )
        )
    recommended = rule_choice(shares, costs.thresholds)
    base = stage_count - 1 if baseline is None else baseline
    deeper = [pair for pair in pairs if pair.shallow == recommended]
    worst = worst_cases(shares, costs.in_mistakes)
    beside = tuple(sorted((recommended, base)))
    return Verdict(
        stages=stages,
        costs=costs,
        cost_bounds=cost_bounds,
        level=level,
        pairs=tuple(pairs),
        recommended=recommended,
        nothing_deeper_pays=bool(deeper) and all(pair.certain for pair in deeper),
        probability_by_stage=np.abs(UssTs().probabilities(evidence, 1, costs)),  # no -0.0
        worst_case_regret=worst,
        worst_case_regret_high=worst_cases(may_high, costs.in_mistakes),
        minimax_stage=minimax_stage(shares, costs.in_mistakes),
        savings=costs.cumulative[base] - costs.cumulative[recommended],
        answers_changed=0.0 if recommended == base else float(shares[beside]),
        answers_changed_at_most=0.0 if recommended == base else float(may_high[beside]),
        baseline=base,
    )


def _class(threshold_low: float, may_high: float, limit: float, may_share: float) -> str:
    """Certain, too few rows (the shares as seen would do), or not knowable however many rows."""
    if threshold_low > may_high:
        return CERTAIN
    return TOO_FEW_ROWS if passes(limit, may_share) else NOT_KNOWABLE


def pair_tail(level: float, stage_count: int, shared: bool, families: int) -> float:
    """The share of 1 - level that one bound of one pair may use up (Bonferroni).

    Half goes to costs that are not exact, where there are any: measured ones, or those of stages
    that are called only where another gives no answer.

    >>> round(pair_tail(0.99, 3, False, 1), 6)
    0.003333
    """
    return (1 - level) / (stage_count * (stage_count - 1) // 2) / families / (2 if shared else 1)
