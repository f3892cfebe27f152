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
    return chance_at(round, price_of(costs), kappa, always_full)


def price_of(costs: Costs) -> float | None:
    """What a full run costs beyond the cheapest stage, in mistakes; None where it cannot pay.

    >>> price_of(Costs.from_stages([1, 4], mistake_cost=16))
    0.25
    """
    own = np.sort(costs.per_stage) / costs.mistake_cost
    if own[1] - own[0] >= 1:
        return None  # no number of mistakes pays for another stage than the cheapest
    return float(own[1:].sum())


def chance_at(round: int, price: float | None, kappa: float, always_full: int) -> float:
    """The same as `full_run_probability`, where the price is known: it is asked in every round.

    >>> chance_at(10_000, 0.25, KAPPA, ALWAYS_FULL)
    0.02
    """
    if price is None:
        return 0.0
    if round <= always_full or price <= 0:
        return 1.0
    return min(1.0, ONLY_FULL_RUNS * kappa / math.sqrt(round * price))
