"""Where to stop for good, read from evidence: what is certain, the paper's rule, or a guess.

Each reading rests on something else, and a live cascade can be asked for each of them. They are the
readings of `stopwise analyze`, made from pair counters alone.
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
from stopwise.live.pairs import pair_list
from stopwise.theory import share_bounds

Certain = Literal["certain"]
LiveReading = Literal["weak-dominance", "estimated", "minimax"]
"""The readings that always name a stage."""

READINGS: tuple[LiveReading, ...] = get_args(LiveReading)
ALL_READINGS: tuple[Certain | LiveReading, ...] = ("certain", *READINGS)

LEVEL = 0.99
"""The probability with which all that is called certain of one evidence is true."""


def every_reading(evidence: Evidence, costs: Costs) -> dict[str, int | None]:
    """Where each reading stops; None where nothing is certain.

    >>> evidence = Evidence.from_counts([[0, 900], [0, 0]], [[0, 9], [0, 0]])
    >>> every_reading(evidence, Costs.from_stages([1, 2], mistake_cost=20))
    {'certain': 0, 'weak-dominance': 0, 'estimated': 0, 'minimax': 0}
    """
    found: dict[str, int | None] = {"certain": certain_stage(evidence, costs)}
    return found | {reading: stage_by(reading, evidence, costs) for reading in READINGS}


def certain_stage(evidence: Evidence, costs: Costs) -> int | None:
    """The one stage that is left when all are out that cannot be worth their price, or None.

    A deeper stage is out if it differs from a shallower one too rarely to make up for its price,
    even if it is right wherever they differ. So only the first stage can be left alone.

    >>> evidence = Evidence.from_counts([[0, 900], [0, 0]], [[0, 90], [0, 0]])
    >>> costs = [Costs.from_stages([1, 2], mistake_cost=mistake) for mistake in (5, 8, 20)]
    >>> [certain_stage(evidence, cost) for cost in costs]
    [0, 0, None]
    """
    pairs = pair_list(evidence.stage_count)
    _, high = share_bounds(evidence.disagreed, evidence.seen, (1 - LEVEL) / len(pairs))
    out = {j for i, j in pairs if costs.thresholds[i, j] > high[i, j]}
    left = set(range(evidence.stage_count)) - out
    return left.pop() if len(left) == 1 else None


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
    one_of("reading", reading, ALL_READINGS)
    shares = np.triu(evidence.disagreement, 1)
    if reading == "weak-dominance" or np.isnan(shares).any():
        return deterministic_stage(evidence, costs)
    if reading == "minimax":
        return minimax_stage(shares, costs.in_mistakes)
    few = evidence.stage_count < 3
    errors = by_rule_of_thumb(shares) if few else estimate_from_pairs(shares).error_rates
    return optimal_stage(errors + costs.in_mistakes)
