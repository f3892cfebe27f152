"""What dropping a stage, or swapping two neighbours, would change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.costs import Costs
from stopwise.decisions import worst_cases
from stopwise.logs.judging.verdict import Verdict, rule_choice


@dataclass(frozen=True)
class WhatIf:
    """Another cascade made of the same stages.

    Attributes:
        change: what is done, in words.
        stages: the new order (indices of the present stages).
        recommended: the rule's choice there (index of a present stage).
        cost: what one item costs when stopped there; `cost_change` against the present choice.
        worst_case_regret: of that choice, among the stages that are left, in mistakes.
    """

    change: str
    stages: tuple[int, ...]
    recommended: int
    cost: float
    cost_change: float
    worst_case_regret: float


def what_ifs(verdict: Verdict) -> tuple[WhatIf, ...]:
    """Every single drop (of three stages or more) and every swap of neighbours, in a cascade.

    >>> from stopwise import Costs, Evidence
    >>> from stopwise.logs.judging.verdict import judge
    >>> evidence = Evidence.from_counts([[0, 100], [0, 0]], [[0, 50], [0, 0]])
    >>> changes = what_ifs(judge(("fast", "slow"), evidence, Costs.from_cumulative((0.25, 0.5))))
    >>> changes[0].change, changes[0].recommended, changes[0].cost
    ('swap fast and slow', 0, 0.5)
    """
    if verdict.alone:
        return ()  # no stage is on the way to another, so there is nothing to drop or to swap
    names = verdict.stages
    stage_count = len(names)
    everything = range(stage_count)
    changes: list[tuple[str, tuple[int, ...]]] = []
    if stage_count > 2:
        changes += [
            (f"drop {names[s]}", tuple(k for k in everything if k != s)) for s in everything
        ]
    for s in range(stage_count - 1):
        order = list(everything)
        order[s], order[s + 1] = order[s + 1], order[s]
        changes.append((f"swap {names[s]} and {names[s + 1]}", tuple(order)))
    return tuple(_evaluate(verdict, change, order) for change, order in changes)


def _evaluate(verdict: Verdict, change: str, order: tuple[int, ...]) -> WhatIf:
    stage_count = len(verdict.stages)
    shares = np.zeros((stage_count, stage_count))
    for pair in verdict.pairs:
        shares[pair.shallow, pair.deep] = shares[pair.deep, pair.shallow] = pair.disagreement
    picked = shares[np.ix_(order, order)]
    own = verdict.cost_bounds.own
    costs = Costs.from_stages([own[s] for s in order], verdict.costs.mistake_cost)
    present = sum(own[: verdict.recommended + 1])
    choice = rule_choice(picked, costs.thresholds)
    return WhatIf(
        change=change,
        stages=order,
        recommended=order[choice],
        cost=costs.cumulative[choice],
        cost_change=costs.cumulative[choice] - present,
        worst_case_regret=float(worst_cases(picked, costs.in_mistakes)[choice]),
    )
