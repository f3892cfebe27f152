"""Whether a per-item rule beats the best single stage: beyond chance, and whoever is right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stopwise.agreement import partitions
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import optimal_stage
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.observations import IntArray
from stopwise.situations.references import hold_against


@dataclass(frozen=True)
class Gain:
    """What a rule saves per item against the best single stage, in the units of the costs.

    Attributes:
        reference: what answers are held against.
        stage: the single stage that costs least so.
        mean: saved per item.
        low, high: ends of its 95 % interval, over items.
    """

    reference: str
    stage: int
    mean: float
    low: float
    high: float


def gains_of(rule: Rule, depths: IntArray, codes: IntArray) -> tuple[Gain, ...]:
    """Of depths decided held out: under the rule's own reference, the last stage, the consensus.

    >>> from stopwise.situations.observations import Observations
    >>> codes = np.array([[0, 0], [1, 0]] * 200)
    >>> rows = Observations(("no", "yes"), codes)
    >>> rule = Rule.fit(("small", "large"), rows, Costs.from_stages([1, 4], mistake_cost=20))
    >>> gain = gains_of(rule, rule.depths(rows), codes)[0]
    >>> gain.stage, gain.mean, gain.low > 0          # half of the items need no second call
    (1, 2.0, True)
    """
    groups = partitions(np.where(codes < 0, -1, codes))
    references: list[tuple[str, FloatArray]] = [("its own", rule.held.loss(groups))]
    for name in ("last", "consensus"):
        references.append((name, hold_against(rule.counts, name).loss(groups)))
    return tuple(_gain(name, losses, depths, rule.costs) for name, losses in references)


def _gain(name: str, losses: FloatArray, depths: IntArray, costs: Costs) -> Gain:
    totals = np.asarray(costs.cumulative)[None] + costs.mistake_cost * losses
    stage = optimal_stage(losses.mean(axis=0) + costs.in_mistakes)
    saved = totals[:, stage] - totals[np.arange(len(depths)), depths]
    mean = float(saved.mean())
    width = 1.96 * float(saved.std(ddof=1)) / math.sqrt(len(saved)) if len(saved) > 1 else math.inf
    return Gain(name, stage, mean, mean - width, mean + width)
