"""The same log with its stages called alone, to be shown beside the cascade where nobody said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.logs.judging.judge_counts import judge_counts
from stopwise.logs.judging.readings import Readings, readings_of
from stopwise.logs.judging.verdict import Verdict, judge
from stopwise.logs.reading.call_order import by_cost
from stopwise.logs.reading.costs import CostBounds, own_costs
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.reading.log import baseline_of
from stopwise.logs.settings import LogSettings


@dataclass(frozen=True)
class CalledAlone:
    """What holds if each stage can be called alone; stages stand in the order of their costs."""

    verdict: Verdict
    readings: Readings


def called_alone(counts: PatternCounts, settings: LogSettings, families: int) -> CalledAlone:
    """Judge counted patterns again, with each stage's own cost."""
    order = by_cost(own_costs(counts, settings)[0].tolist())
    ordered = replace(
        settings,
        stages=tuple(counts.stages[at] for at in order),
        costs=None if settings.costs is None else tuple(settings.costs[at] for at in order),
        baseline=counts.stages[baseline_of(counts.stages, settings)],
        calls="alone",
    )
    moved = counts.in_order(order)
    verdict = judge_counts(moved, ordered, families)
    return CalledAlone(verdict, readings_of(verdict, ordered, moved))


def evidence_called_alone(
    stages: Sequence[str], evidence: Evidence, costs: Costs, settings: LogSettings
) -> CalledAlone:
    """The same from pair counters that were counted elsewhere.

    >>> evidence = Evidence.from_counts([[0, 900], [0, 0]], [[0, 9], [0, 0]])
    >>> costs = Costs.from_stages([3, 1], mistake_cost=10)
    >>> alone = evidence_called_alone(("a", "b"), evidence, costs, LogSettings())
    >>> alone.verdict.stages, alone.verdict.recommended, alone.verdict.savings
    (('b', 'a'), 0, 0.0)
    """
    order = by_cost(costs.per_stage.tolist())
    own = tuple(float(costs.per_stage[at]) for at in order)
    names = tuple(stages[at] for at in order)
    verdict = judge(
        names,
        in_order(evidence, order),
        Costs.from_cumulative(own, costs.mistake_cost),
        level=settings.level,
        cost_bounds=CostBounds(own, own, measured=False, own=own, calls="alone"),
        baseline=names.index(stages[baseline_of(tuple(stages), settings)]),
    )
    return CalledAlone(verdict, readings_of(verdict, settings))


def in_order(evidence: Evidence, order: Sequence[int]) -> Evidence:
    """Pair counters with the stages in another order: a pair is the same whoever comes first.

    How often the answer switched on the way has no meaning in another order, and is left out.

    >>> evidence = Evidence.from_counts([[0, 5, 6], [0, 0, 7], [0, 0, 0]], np.zeros((3, 3), int))
    >>> in_order(evidence, [2, 0, 1]).seen[0].tolist()
    [0, 6, 7]
    """
    at = np.ix_(list(order), list(order))
    return Evidence.from_counts(
        (evidence.seen + evidence.seen.T)[at],
        (evidence.disagreed + evidence.disagreed.T)[at],
    )
