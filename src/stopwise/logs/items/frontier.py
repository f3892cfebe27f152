"""Cost against changed answers: what each mistake cost would buy, per item and with one stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.arrays import IntArray
from stopwise.costs import Costs, FloatArray
from stopwise.logs.items.gains import StoppedEverywhere
from stopwise.logs.items.held_out import HeldOut
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations

FACTORS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.6, 3.0, 6.0, 15.0, 50.0)
"""Mistake costs that are tried, as multiples of the one given."""


@dataclass(frozen=True)
class Frontier:
    """Points of (cost per item, share of answers that differ from the last stage's), held out.

    Attributes:
        per_item: for each of `mistake_costs`, the per-item rule.
        stages: for each stage, stopping there always.
    """

    mistake_costs: tuple[float, ...]
    per_item: tuple[tuple[float, float], ...]
    stages: tuple[tuple[float, float], ...]


def frontier_of(
    rows: Observations,
    held_out: HeldOut,
    stages: tuple[str, ...],
    costs: Costs,
    stops: StoppedEverywhere,
    *,
    seed: int = 0,
) -> Frontier:
    """The rules of both halves at other mistake costs, each scored on the other half.

    Args:
        stops: what came of single stages, item by item.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    scored = (order[1::2], order[::2])
    keys = [
        situations(rows.where(part), rule.counts.binning)
        for rule, part in zip(held_out.rules, scored, strict=True)
    ]
    points, mistakes = [], []
    for factor in FACTORS:
        mistake_cost = costs.mistake_cost * factor
        other = Costs.from_cumulative(costs.cumulative, mistake_cost)
        depths = np.zeros(len(rows), dtype=np.int64)
        for rule, part, key in zip(held_out.rules, scored, keys, strict=True):
            depths[part] = rule.at_costs(other).depths_of(key)
        points.append(_point(rows.codes, depths, stops.through[np.arange(len(rows)), depths]))
        mistakes.append(mistake_cost)
    fixed = tuple(
        _point(rows.codes, stops.answered[:, stage], stops.spent[:, stage])
        for stage in range(len(stages))
    )
    return Frontier(tuple(mistakes), tuple(points), fixed)


def _point(codes: IntArray, depths: IntArray, spent: FloatArray) -> tuple[float, float]:
    answers = codes[np.arange(len(depths)), depths]
    changed = ((answers != codes[:, -1]) | (answers < 0)).mean()
    return float(spent.mean()), float(changed)
