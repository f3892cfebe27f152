"""How often every stage is called, to learn from: where stages are called alone nothing else is."""

from __future__ import annotations

import math

import numpy as np

from stopwise.costs import Costs

KAPPA = 0.25
ALWAYS_FULL = 32
"""Rounds at the start that are full runs."""
ONLY_FULL_RUNS = 4.0
"""Where stages are called alone only full runs teach: there are this many times as many."""


def full_run_probability(
    round: int, costs: Costs, kappa: float = KAPPA, always_full: int = ALWAYS_FULL
) -> float:
    """The chance that a round is a full run, whatever its outputs.

    It falls as the square root of the rounds, and the more slowly the less a full run costs.

    Args:
        costs: what each stage costs when it is called alone.

    >>> full_run_probability(10_000, Costs.from_stages([1, 4], mistake_cost=16))
    0.02
    >>> full_run_probability(1, Costs.from_stages([1, 40], mistake_cost=16))     # nothing to learn
    0.0
    """
    own = np.sort(costs.per_stage) / costs.mistake_cost
    if own[1] - own[0] >= 1:
        return 0.0  # no number of mistakes pays for another stage than the cheapest
    if round <= always_full:
        return 1.0
    price = float(own[1:].sum())  # what a full run costs beyond the cheapest stage
    return 1.0 if price <= 0 else min(1.0, ONLY_FULL_RUNS * kappa / math.sqrt(round * price))
