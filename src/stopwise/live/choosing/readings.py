"""Where to stop for good, read from evidence: the paper's rule, an estimate, or the worst case.

Each reading rests on something else, and a live cascade can be asked for each of them. They are the
readings of `stopwise analyze`, made from pair counters alone; what is *certain* needs the intervals
of `analyze_evidence(learner.evidence(), ...)`.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from stopwise.checks import one_of
from stopwise.costs import Costs
from stopwise.decisions import minimax_stage, optimal_stage
from stopwise.estimating.from_pairs import by_rule_of_thumb, estimate_from_pairs
from stopwise.evidence import Evidence
from stopwise.live.choosing.chooser import deterministic_stage

LiveReading = Literal["weak-dominance", "estimated", "minimax"]
READINGS: tuple[LiveReading, ...] = get_args(LiveReading)


def stage_by(reading: str, evidence: Evidence, costs: Costs) -> int:
    """The stage to stop at, by one reading; the last while a pair was never seen.

    Args:
        reading: "weak-dominance" (the paper's rule: right if a deeper stage is right where it
            differs), "estimated" (error rates from how the stages agree; with two stages, a rule
            of thumb), or "minimax" (the least loss under the worst truth).

    >>> counts = [[0, 900, 900], [0, 0, 900], [0, 0, 0]]
    >>> differ = [[0, 90, 700], [0, 0, 700], [0, 0, 0]]      # the last stage is alone
    >>> evidence = Evidence.from_counts(counts, differ)
    >>> costs = Costs.from_stages([1, 2, 4], mistake_cost=20)
    >>> [stage_by(reading, evidence, costs) for reading in READINGS]
    [2, 0, 0]
    """
    one_of("reading", reading, READINGS)
    shares = np.triu(evidence.disagreement, 1)
    if reading == "weak-dominance" or np.isnan(shares).any():
        return deterministic_stage(evidence, costs)
    if reading == "minimax":
        return minimax_stage(shares, costs.in_mistakes)
    few = evidence.stage_count < 3
    errors = by_rule_of_thumb(shares) if few else estimate_from_pairs(shares).error_rates
    return optimal_stage(errors + costs.in_mistakes)
