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


@dataclass(frozen=True)
class StoppedEverywhere:
    """What came of stopping all items at each stage, item by item.

    Attributes:
        answered: which stage answered (one row per item, one column per stage to stop at).
        spent: what its calls cost.
        through: what the calls of all stages up to one cost.
    """

    answered: IntArray
    spent: FloatArray
    through: FloatArray


def gains_of(
    rule: Rule, depths: IntArray, codes: IntArray, stops: StoppedEverywhere | None = None
) -> tuple[Gain, ...]:
    """Of depths decided held out: under the rule's own reference, the last stage, the consensus.

    Args:
        stops: of single stages; by default, each answers by itself and costs what the rule says.

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
    if stops is None:
        spent = np.broadcast_to(np.asarray(rule.costs.cumulative), codes.shape)
        answered = np.broadcast_to(np.arange(codes.shape[1]), codes.shape)
        stops = StoppedEverywhere(answered, spent, spent)
    return tuple(_gain(name, losses, depths, stops, rule.costs) for name, losses in references)


def _gain(
    name: str, losses: FloatArray, depths: IntArray, stops: StoppedEverywhere, costs: Costs
) -> Gain:
    at = np.arange(len(depths))
    lost = np.take_along_axis(losses, stops.answered, axis=1)
    totals = stops.spent + costs.mistake_cost * lost
    stage = optimal_stage(totals.mean(axis=0) / costs.mistake_cost)
    own = stops.through[at, depths] + costs.mistake_cost * losses[at, depths]
    saved = totals[:, stage] - own
    return Gain(name, stage, float(saved.mean()), *interval_of_mean(saved))


def interval_of_mean(values: FloatArray) -> tuple[float, float]:
    """The ends of a 95 % interval of a mean over items.

    >>> interval_of_mean(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    mean = float(values.mean())
    if len(values) < 2:
        return -math.inf, math.inf
    width = 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - width, mean + width
