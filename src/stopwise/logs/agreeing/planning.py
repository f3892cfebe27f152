"""Where items should stop, at a price for a difference, and which price and looks cost least.

With a price on every answer that differs from the last stage's, the best place to stop is a matter
of optimal stopping, from the end: an item stops where the price times its risk is no more than what
going on is expected to cost. What going on costs is a mean over the rows that were looked at, as a
smooth function of the risk (least squares). A lower price lets more items stop. The plan is made
from looked-at rows alone and fixed before the test starts, so it may be wrong without harm to the
promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from stopwise.arrays import IntArray
from stopwise.costs import FloatArray
from stopwise.logs.agreeing.looks import Design, differences_met
from stopwise.logs.agreeing.seen import Seen

_PRICES = np.geomspace(0.3, 300, 25)
"""Prices that are tried, in units of the last stage's cost."""

_WRONG_BY = (0.7, 1.0, 1.4)
"""Risks are estimated from few rows: a design should do well if they are off by this factor."""

_PULL = np.array([1e-3, 0.1, 0.3])


class Onward(NamedTuple):
    """One way on from a stage: where to, and what the looked-at rows had from there on.

    Attributes:
        stage: called next.
        step: what that costs.
        value: calls and differences at their price, from there on.
        cost: calls alone, from there on.
        differences: how often the answer differed in the end.
    """

    stage: int
    step: float
    value: FloatArray
    cost: FloatArray
    differences: FloatArray


@dataclass(frozen=True)
class StoppingPlan:
    """Where items stop at one price.

    Attributes:
        price: of a difference.
        risks: for each stage but the last, the risk of every looked-at row.
        onward: for each stage but the last, the ways on.
    """

    price: float
    risks: Sequence[FloatArray]
    onward: Sequence[Sequence[Onward]]

    def choose(self, stage: int, risk: FloatArray) -> IntArray:
        """Where to call next, for items with these risks after a stage; the stage itself: stop."""
        return _choose(self.price, stage, self.risks[stage], risk, self.onward[stage])

    def expect(self, risk: FloatArray) -> tuple[float, float]:
        """Differences and costs of calls to come, of items with these risks after stage 0."""
        goes = self.choose(0, risk)
        differences, cost = float(risk[goes == 0].sum()), 0.0
        for way in self.onward[0]:
            there = risk[goes == way.stage]
            cost += way.step * len(there)
            cost += float(np.maximum(_smooth(self.risks[0], way.cost, there), 0).sum())
            met = np.clip(_smooth(self.risks[0], way.differences, there), 0, 1)
            differences += float(met.sum())
        return differences, cost


def make_plan(price: float, risks: Sequence[FloatArray], seen: Seen) -> StoppingPlan:
    """Optimal stopping on the looked-at rows, given their risks after every stage."""
    last = seen.last
    rows = len(risks[0])
    nothing = np.zeros(rows)
    ends: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {last: (nothing, nothing, nothing)}
    onward: list[list[Onward]] = []
    for stage in range(last - 1, -1, -1):
        # In a cascade the next stage is on the way to every other.
        targets = (stage + 1,) if seen.calls == "cascade" else range(stage + 1, last + 1)
        ways = [Onward(to, seen.step_cost(stage, to), *ends[to]) for to in targets]
        goes = _choose(price, stage, risks[stage], risks[stage], ways)
        value, cost, differences = price * risks[stage], nothing.copy(), risks[stage].copy()
        for way in ways:
            on = goes == way.stage
            value[on] = (way.step + way.value)[on]
            cost[on] = (way.step + way.cost)[on]
            differences[on] = way.differences[on]
        ends[stage] = value, cost, differences
        onward.append(ways)
    return StoppingPlan(price, tuple(risks), tuple(reversed(onward)))


def best_design(
    possible: Sequence[Design], risks: Sequence[FloatArray], first: FloatArray, seen: Seen
) -> tuple[Design, StoppingPlan]:
    """The design and the price that should avoid most cost.

    Args:
        possible: designs that keep the promise.
        risks: of the looked-at rows, after each stage but the last.
        first: of all other items, after stage 0.
    """
    plans = [make_plan(price * seen.cost_of_last, risks, seen) for price in _PRICES]
    expected = np.array([plan.expect(first) for plan in plans])
    order = np.argsort(expected[:, 0], kind="stable")
    differences = np.maximum.accumulate(expected[order, 0])
    most = seen.step_cost(0, seen.last) * len(first)
    saved = np.maximum.accumulate(most - expected[order, 1])
    best: tuple[float, Design] | None = None
    for design in possible:
        gain = (1 - design.rate) * _expected(design, differences, saved)
        if best is None or gain > best[0]:
            best = gain, design
    assert best is not None
    at = min(int(np.searchsorted(differences, best[1].differences)), len(plans) - 1)
    return best[1], plans[int(order[at])]


def _expected(design: Design, known: FloatArray, saved: FloatArray) -> float:
    """What a design saves before its looks: over where it may end and how wrong risks may be."""
    return float(
        np.mean(
            [
                _between(met, factor * known, saved)
                for met in differences_met(design)
                for factor in _WRONG_BY
            ]
        )
    )


def _between(differences: float, known: FloatArray, saved: FloatArray) -> float:
    if differences < known[0]:  # fewer than at the highest price: fewer items yet
        return float(saved[0] * differences / max(known[0], 1e-12))
    return float(np.interp(differences, known, saved))


def _choose(
    price: float, stage: int, known: FloatArray, risk: FloatArray, ways: Sequence[Onward]
) -> IntArray:
    costs = np.stack(
        [way.step + np.maximum(_smooth(known, way.value, risk), 0) for way in ways]
    )  # fmt: skip
    # Smoothed estimates at a price that is searched for: none are equal on paper, so no tolerance.
    best = np.asarray([way.stage for way in ways], dtype=np.int64)[costs.argmin(axis=0)]
    return np.where(price * risk <= costs.min(axis=0), stage, best)


def _smooth(known: FloatArray, values: FloatArray, risk: FloatArray) -> FloatArray:
    """Values as a parabola in the log-odds of the risk, read at other risks."""
    if not values.any():
        return np.zeros(len(risk))
    basis = _powers(known)
    weights = np.linalg.solve(basis.T @ basis + np.diag(_PULL), basis.T @ values)
    return np.asarray(_powers(risk) @ weights)


def _powers(risk: FloatArray) -> FloatArray:
    odds = logit(risk)
    return np.stack([np.ones_like(odds), odds, odds**2 / 10], axis=1)
