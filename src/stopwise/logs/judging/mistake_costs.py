"""Which stage the rule chooses at which mistake cost, and over which range that is certain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stopwise.costs import FloatArray
from stopwise.logs.judging.verdict import Verdict


@dataclass(frozen=True)
class MistakeCostRange:
    """A range of mistake costs, `start` included and `end` not, over which one stage is chosen.

    Attributes:
        certain: this stage is the best, whatever the truth. Only the first stage can be: that a
            shallower stage would not be enough is not knowable without labels.
        nothing_deeper_pays_below: below this mistake cost it is certain that no deeper stage is
            worth its price; not above `start` if nowhere in the range.
    """

    start: float
    end: float
    stage: int
    certain: bool
    nothing_deeper_pays_below: float


def mistake_cost_ranges(verdict: Verdict) -> tuple[MistakeCostRange, ...]:
    """The ranges from 0 to infinity, in order.

    The rule stops at the first stage i with C_j - C_i > M p_ij for all deeper j, that is, with
    M < M_i = min_j (C_j - C_i) / p_ij; so the ranges end at the M_i that exceed all before.

    >>> from stopwise import Costs, Evidence
    >>> from stopwise.logs.judging.verdict import judge
    >>> evidence = Evidence.from_counts([[0, 1000], [0, 0]], [[0, 100], [0, 0]])
    >>> verdict = judge(("fast", "slow"), evidence, Costs.from_cumulative((0.0, 1.0)))
    >>> ranges = mistake_cost_ranges(verdict)
    >>> [(round(r.start, 2), round(r.end, 2), r.stage, r.certain) for r in ranges]
    [(0.0, 8.05, 0, True), (8.05, 10.0, 0, False), (10.0, inf, 1, False)]
    """
    stage_count = len(verdict.stages)
    shares, bounds = np.zeros((stage_count, stage_count)), np.zeros((stage_count, stage_count))
    for pair in verdict.pairs:
        shares[pair.shallow, pair.deep] = pair.disagreement
        bounds[pair.shallow, pair.deep] = pair.may_differ_high
    cumulative = np.asarray(verdict.costs.cumulative)
    chosen_until = limits(cumulative[None, :] - cumulative[:, None], shares)
    certain_until = limits(verdict.cost_bounds.steps_low(), bounds)
    ranges: list[MistakeCostRange] = []
    start = 0.0
    for stage in range(stage_count):
        end = float(chosen_until[stage])
        if end <= start:
            continue
        sure_end = min(float(certain_until[stage]), end) if stage < stage_count - 1 else start
        if stage == 0 and sure_end > start:
            ranges.append(MistakeCostRange(start, sure_end, stage, True, sure_end))
            start = sure_end
        if end > start:
            ranges.append(MistakeCostRange(start, end, stage, False, max(sure_end, start)))
            start = end
        if math.isinf(end):
            break
    return tuple(ranges)


def limits(all_steps: FloatArray, shares: FloatArray) -> FloatArray:
    """M_i of every stage: the mistake cost below which it passes against every deeper one.

    Args:
        all_steps: what stopping at a deeper stage costs more than at a shallower one (the rows).

    >>> limits(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0, 0.25], [0, 0]]))
    array([ 4., inf])
    """
    stage_count = len(all_steps)
    result = np.full(stage_count, math.inf)
    for i in range(stage_count - 1):
        steps = all_steps[i, i + 1 :]
        p = shares[i, i + 1 :]
        # A step of no cost is never too expensive, even where all agree: the test is strict.
        ratios = np.where(steps > 0, np.inf, 0.0)
        np.divide(steps, p, out=ratios, where=p > 0)
        result[i] = ratios.min()
    return result
