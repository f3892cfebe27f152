"""The per-item rule under a promise of agreement: the price of a difference that just keeps it.

A promise names no mistake cost: of all prices of a difference, the lowest is wanted at which so few
early answers differ from the last stage's that the guard stays open. How many will differ at a
price is estimated from the transitions, which every look corrects. Nothing rests on the estimate
but the cost: the guard counts what really differs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.costs import Costs
from stopwise.decisions import stopping_is_best
from stopwise.policies.per_item.agreement_guard import AgreementGuard, most_missed
from stopwise.policies.per_item.expecting import items_leaving
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.transitions import Transitions

WANTED_USE = 0.93
"""The part of what may differ that the price aims at; the rest keeps the guard open."""

_STEPS, _WIDEST = 20, 1e7


def share_that_may_differ(guard: AgreementGuard) -> float:
    """The share of items whose early answer may differ from now on, so that the guard stays open.

    What was not used so far may be used within as many rounds as there were.

    >>> guard = AgreementGuard(agree=0.95, level=0.95, look_rate=0.1)
    >>> for guard.rounds, guard.found in ((400, 0), (1000, 0), (100_000, 400), (100_000, 600)):
    ...     print(round(share_that_may_differ(guard), 3))
    0.0
    0.02
    0.052
    0.032
    """
    rounds, rate, alpha = max(guard.rounds, 1), guard.look_rate, 1 - guard.level
    allowed = WANTED_USE * (1 - guard.agree) * 2 * rounds - guard.cut
    if most_missed(guard.found, rate, alpha) > allowed:
        return 0.0
    low, high = guard.found, guard.found + math.ceil(rate * rounds)
    while low < high:
        middle = (low + high + 1) // 2
        if most_missed(middle, rate, alpha) <= allowed:
            low = middle
        else:
            high = middle - 1
    return (low - guard.found) / (rate * rounds)


def promised_rule(
    stages: tuple[str, ...], counts: Transitions, costs: Costs, guard: AgreementGuard
) -> Rule:
    """The rule with the lowest price of a difference that is expected to keep the promise.

    A pure function of its arguments.

    Args:
        stages: their names.
        counts: what was seen.
        costs: of the stages; the mistake cost is not used.
        guard: what was promised, and how it stands.

    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.observations import Observations
    >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 2000))
    >>> counts = Transitions.of(rows, Binning.fit(rows))
    >>> guard = AgreementGuard(agree=0.9, rounds=4000)
    >>> rule = promised_rule(("small", "large"), counts, Costs.from_stages([1, 5]), guard)
    >>> rule.depths(rows.where(np.arange(2))).tolist()      # "no" is never changed, "yes" always
    [0, 1]
    """
    allowed = share_that_may_differ(guard)
    most = float(costs.cumulative[-1] - costs.cumulative[0]) or 1.0
    made = Rule(stages, counts, _at(costs, most * _WIDEST), "last", 1.0)
    if allowed > 0:
        low, high = math.log(most), math.log(most * _WIDEST)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            tried = made.at_costs(_at(costs, math.exp(middle)))
            if share_that_differs(tried) <= allowed:
                made, high = tried, middle
            else:
                low = middle
    _ = made.going_on  # now: the counts go on counting, and a rule is of this moment
    return made


def _at(costs: Costs, price: float) -> Costs:
    return Costs.from_cumulative(costs.cumulative, price)


def share_that_differs(rule: Rule) -> float:
    """The share of items that the rule is expected to give another answer than the last stage's.

    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.observations import Observations
    >>> rows = Observations(("no", "yes"), np.array([[0, 0]] * 3000 + [[1, 0]] * 1000))
    >>> counts = Transitions.of(rows, Binning.fit(rows))
    >>> rule = Rule(("small", "large"), counts, Costs.from_stages([1, 5]), "last", 1.0)
    >>> round(share_that_differs(rule), 2)                  # at this price all stop at once
    0.25
    """

    def stops(stage: int, keys: IntArray) -> NDArray[np.bool_]:
        here = rule.risks[stage].look_up(keys)[:, stage]
        return stopping_is_best(here, rule.going_on[stage].look_up(keys)[:, 0])

    leaving = items_leaving(rule.counts, stops)
    return sum(
        float(one.shares @ rule.risks[stage].look_up(one.keys)[:, stage])
        for stage, one in enumerate(leaving[:-1])
    )
