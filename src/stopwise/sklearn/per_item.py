"""Where each row stops, by a rule that looks at what the stages said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.costs import Costs
from stopwise.policies.per_item.learning import least_loss
from stopwise.policies.per_item.situation import StoppingRule
from stopwise.situations.binning import Binning, written
from stopwise.situations.keys import situations
from stopwise.situations.observations import NOT_CALLED, Observations
from stopwise.situations.transitions import Transitions
from stopwise.sklearn.tables import Said

AskStage = Callable[[int, IntArray], Said]
"""What a stage, given by number, says of rows, given by number."""


class Stopped(NamedTuple):
    """What became of rows.

    Attributes:
        depths: the stage at which each stopped.
        answering: the stage whose answer it is given.
        codes: that answer, as the number of a class.
        shares: the probability of every class by that stage; None where a stage has none.
    """

    depths: IntArray
    answering: IntArray
    codes: IntArray
    shares: FloatArray | None


def observed(classes: Any, said: Sequence[Said]) -> Observations:
    """What all stages said of the same rows, as rows of a log.

    >>> said = [Said(np.array([0, 1]), np.array([0.9, 0.6])), Said(np.array([0, 0]), np.ones(2))]
    >>> observed(np.array(["no", "yes"]), said).codes.tolist()
    [[0, 0], [1, 0]]
    """
    confidences = np.stack([one.confidences for one in said], axis=1)
    return Observations(
        tuple(written(label) for label in np.asarray(classes).tolist()),
        np.stack([one.codes for one in said], axis=1),
        None if np.isnan(confidences).all() else confidences,
    )


def stop_rows(
    rule: StoppingRule, binning: Binning, classes: Any, number: int, ask: AskStage
) -> Stopped:
    """Send rows from stage to stage until the rule stops each; never more than once each.

    Args:
        rule: says where to stop.
        binning: the bins that its situations are made by.
        classes: all of them.
        number: how many rows.
        ask: what a stage says of rows.
    """
    last = binning.stage_count - 1
    labels = tuple(written(label) for label in np.asarray(classes).tolist())
    codes = np.full((number, last + 1), NOT_CALLED, dtype=np.int64)
    confidences = np.full((number, last + 1), np.nan)
    shares: list[FloatArray | None] = []
    depths = np.full(number, last, dtype=np.int64)
    on = np.arange(number)
    for stage in range(last + 1):
        if not len(on):
            break
        said = ask(stage, on)
        codes[on, stage], confidences[on, stage] = said.codes, said.confidences
        spread = None
        if said.shares is not None:
            spread = np.zeros((number, len(labels)))
            spread[on] = said.shares
        shares.append(spread)
        if stage < last:
            rows = Observations(labels, codes[on], confidences[on])
            stops = _stops(rule, stage, situations(rows, binning)[:, stage])
            depths[on[stops]] = stage
            on = on[~stops]
    answering = depths.copy()
    held = getattr(rule, "held", None)
    if held is not None and len(on):
        answering[on] = least_loss(held, Observations(labels, codes[on]))
    return Stopped(
        depths,
        answering,
        codes[np.arange(number), answering],
        of_the_answering(shares, answering),
    )


def _stops(rule: StoppingRule, stage: int, keys: IntArray) -> Any:
    """Whether the rule stops in situations; it is asked once for each different one."""
    different, where = np.unique(keys, return_inverse=True)
    said = np.asarray([rule.stops(stage, key) for key in different.tolist()], dtype=np.bool_)
    return said[where]


def of_the_answering(shares: Sequence[FloatArray | None], answering: IntArray) -> FloatArray | None:
    """Of every row, the probabilities by the stage that answers it; None where a stage has none.

    >>> of_the_answering([np.array([[1.0, 0.0]]), np.array([[0.2, 0.8]])], np.array([1])).tolist()
    [[0.2, 0.8]]
    """
    result: FloatArray | None = None
    for stage, spread in enumerate(shares):
        if spread is None:
            return None
        if result is None:
            result = np.zeros_like(spread)
        own = answering == stage
        result[own] = spread[own]
    return result


def expected_cost(rule: StoppingRule, counts: Transitions, costs: Costs) -> float:
    """What one item costs on average by the rule, of items like those that were counted.

    >>> from stopwise.policies.per_item.rule import Rule
    >>> rows = Observations(("no", "yes"), np.array([[0, 0]] * 60 + [[1, 0]] * 20 + [[1, 1]] * 20))
    >>> costs = Costs.from_stages([1, 4], mistake_cost=50)
    >>> rule = Rule.fit(("small", "large"), rows, costs)
    >>> round(expected_cost(rule, rule.counts, costs), 3)          # "yes" goes on
    2.6
    """
    here = {key: float(number) for key, number in counts.first.items()}
    total, cost = sum(here.values()), 0.0
    for stage in range(counts.stage_count):
        cost += float(costs.per_stage[stage]) * sum(here.values())
        if stage == counts.stage_count - 1:
            break
        moves = counts.moves[stage]
        leaving: dict[int, int] = {}
        for (before, _), number in moves.items():
            leaving[before] = leaving.get(before, 0) + number
        on = {key: share for key, share in here.items() if not rule.stops(stage, key)}
        # From a situation that nobody went on from, items move as all others do.
        lost = sum(share for key, share in on.items() if key not in leaving)
        known = sum(share for key, share in on.items() if key in leaving)
        scale = 1.0 + lost / known if known else 0.0
        here = {}
        for (before, after), number in moves.items():
            if before in on:
                share = scale * on[before] * number / leaving[before]
                here[after] = here.get(after, 0.0) + share
        if lost and not known:
            cost += lost * float(costs.cumulative[-1] - costs.cumulative[stage])
    return cost / total if total else float(costs.cumulative[-1])
