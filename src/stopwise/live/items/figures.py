"""Unbiased figures of rounds that are decided per item, from full runs at known probabilities.

Of the rounds that followed the rule and stopped early nobody knows what a full run would have said.
But a full run is a round like any other, chosen by a coin whose probability q is known: with the
weight (1 - q) / q it stands for the rounds like it that were not chosen. So the share of early
answers that a full run would have changed, and what going to the end would have cost, are
estimated without bias. The intervals hold at the moment they are read (fixed time), not at all
moments together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.live.items.row import ItemRow

LEVEL, _NORMAL = 0.95, 1.959963984540054
COUNTERS = ("items_rounds", "items_early", "items_full")
SUMS = (
    "items_spent", "items_weight", "items_weight_squared", "items_changed",
    "items_whole", "items_whole_squared", "items_cost", "items_cost_squared", "items_costs_squared",
)  # fmt: skip
NAMES = (*COUNTERS, *SUMS)
"""Sums over rounds: they add up over segments, machines and days, as all evidence does."""


def add_item(
    values: list[Any], start: int, row: ItemRow, *, last: int, cost: float, same: bool | None
) -> None:
    """Add one round that was decided per item to its sums.

    Args:
        values: all counters; those of `NAMES` begin at `start`.
        row: what the round showed.
        last: the number of the last stage.
        cost: of the round.
        same: of a full run, whether the answer at which the rule stops is the one that was given.
    """
    early = row.rule is not None and row.rule < last
    whole = 1.0 / row.chance if row.full and row.chance > 0 else 0.0
    weight = (whole - 1.0) if early and same is not None and whole else 0.0
    added = (
        1, int(early and not row.full), int(row.full), cost,
        weight, weight * weight, 0.0 if same else weight,
        whole, whole * whole, whole * cost, whole * whole * cost, (whole * cost) ** 2,
    )  # fmt: skip
    for at, more in enumerate(added, start):
        values[at] += more


@dataclass(frozen=True)
class ItemFigures:
    """What full runs say of all rounds that were decided per item.

    Attributes:
        rounds: how many; `early` of them followed the rule and stopped before the last stage, and
            `full` were full runs.
        agreement: estimated share of rounds with the answer of a full run; its interval is
            `agreement_interval`. None, or from 0, where no full run tells of an early answer.
        saved: estimated cost of sending all rounds to the end, less what was spent; with
            `saved_interval`. None before the first full run.
        level: of the intervals, at the moment they are read.

    >>> print(ItemFigures(100, 60, 5, 0.98, (0.9, 1.0), None, None))
    60 of 100 rounds stopped early by the rule; 98.0% have a full run's answer (90.0% to 100.0%)
    """

    rounds: int
    early: int
    full: int
    agreement: float | None
    agreement_interval: tuple[float, float]
    saved: float | None
    saved_interval: tuple[float, float] | None
    level: float = LEVEL

    def __str__(self) -> str:
        text = f"{self.early} of {self.rounds} rounds stopped early by the rule"
        if self.agreement is not None:
            low, high = self.agreement_interval
            text += f"; {self.agreement:.1%} have a full run's answer ({low:.1%} to {high:.1%})"
        if self.saved is not None and self.saved_interval is not None:
            low, high = self.saved_interval
            text += f"; saved {self.saved:g} against going to the end ({low:g} to {high:g})"
        return text


def figures_of_items(values: Sequence[Any], start: int) -> ItemFigures | None:
    """Read the sums; None where no round was decided per item.

    >>> values = [0] * len(NAMES)
    >>> row = ItemRow(rule=0, full=True, chance=0.5)
    >>> add_item(values, 0, row, last=1, cost=5.0, same=True)
    >>> add_item(values, 0, ItemRow(rule=0, chance=0.5), last=1, cost=1.0, same=None)
    >>> found = figures_of_items(values, 0)
    >>> found.rounds, found.early, found.agreement, found.saved
    (2, 1, 1.0, 4.0)
    """
    rounds, early, full, spent, weight, squared, changed, whole, whole2, cost, cost2, costs2 = (
        values[start : start + len(NAMES)]
    )
    if not rounds:
        return None
    agreement: float | None = 1.0
    interval = (1.0, 1.0)
    if early and weight <= 0:
        agreement, interval = None, (1 - early / rounds, 1.0)
    elif early:
        share = changed / weight
        # As many equal weights as tell the same; the rounds themselves are a sample too.
        number = 1 / (squared / weight**2 + 1 / early)
        low, high = _exact_interval(share * number, number, 1 - LEVEL)
        agreement = 1 - early / rounds * share
        interval = (1 - early / rounds * high, 1 - early / rounds * low)
    saved: float | None = None
    saved_interval: tuple[float, float] | None = None
    if whole > 0:
        mean = cost / whole
        spread = max(costs2 - 2 * mean * cost2 + mean * mean * whole2, 0.0)
        error = _NORMAL * rounds * math.sqrt(spread) / whole
        if spread <= 1e-9 * max(costs2, 1e-300):
            error = 0.0
        saved = rounds * mean - spent
        saved_interval = (saved - error, saved + error)
    return ItemFigures(rounds, early, full, agreement, interval, saved, saved_interval)


def _exact_interval(events: float, number: float, alpha: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson, for numbers that need not be whole."""
    from scipy.special import betaincinv

    low = float(betaincinv(events, number - events + 1, alpha / 2)) if events > 0 else 0.0
    rest = number - events
    high = float(betaincinv(events + 1, rest, 1 - alpha / 2)) if rest > 0 else 1.0
    return low, high
