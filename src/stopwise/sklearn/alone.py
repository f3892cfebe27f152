"""Rows along a rule whose stages are called alone: only what it asks for is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import FloatArray, IntArray
from stopwise.costs import Costs
from stopwise.policies.per_item.alone.applying import follow, send_along
from stopwise.policies.per_item.alone.paths import StagePath
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.policy import ReferencePolicy
from stopwise.situations.binning import written
from stopwise.situations.observations import Observations
from stopwise.situations.transitions import Transitions
from stopwise.situations.whole_rows import WholeRows, path_keys
from stopwise.sklearn.per_item import AskStage, Stopped, of_the_answering


def rule_from(
    policy: ReferencePolicy, stages: tuple[str, ...], counts: Transitions, costs: Costs
) -> tuple[AloneRule, float]:
    """The rule that follows from whole rows that were counted, and what a row costs by it.

    >>> from stopwise.policies.per_item.policy import PerItem
    >>> from stopwise.situations.binning import Binning
    >>> rows = Observations(("no", "yes"), np.array([[0, 0]] * 60 + [[1, 0]] * 20 + [[1, 1]] * 20))
    >>> counts = Transitions.of(rows, Binning.fit(rows, whole=True))
    >>> costs = Costs.from_stages([1, 4], mistake_cost=50)
    >>> rule, cost = rule_from(PerItem(), ("small", "large"), counts, costs)
    >>> rule.first, round(cost, 3)                             # "yes" goes on
    (0, 2.6)
    """
    rule = AloneRule.from_counts(
        stages, counts, costs, reference=policy.reference, trust=policy.trust
    )
    rows = WholeRows.of_counts(counts.moves[0], counts.stage_count)
    spent = follow(rows, rule.tables, rule.first, costs).spent
    return rule, float(np.average(spent, weights=rows.number))


def stop_rows_alone(rule: AloneRule, classes: Any, number: int, ask: AskStage) -> Stopped:
    """Send rows from stage to stage as the rule says; a stage is asked of a row at most once.

    Args:
        rule: says which stage is called first, and next.
        classes: all of them.
        number: how many rows.
        ask: what a stage says of rows.
    """
    labels = tuple(written(label) for label in np.asarray(classes).tolist())
    stage_count = len(rule.stages)
    # What was not called is never looked at: keys are made of the stages on the path alone.
    codes = np.zeros((number, stage_count), dtype=np.int64)
    confidences = np.full((number, stage_count), np.nan)
    shares: list[FloatArray | None] = [np.zeros((number, len(labels))) for _ in rule.stages]
    calls = np.zeros(number, dtype=np.int64)

    def call(stage: int, rows: IntArray) -> None:
        if not len(rows):
            return
        said = ask(stage, rows)
        codes[rows, stage], confidences[rows, stage] = said.codes, said.confidences
        spread = shares[stage]
        if said.shares is None or spread is None:
            shares[stage] = None
        else:
            spread[rows] = said.shares
        calls[rows] += 1

    def keys_of(rows: IntArray, path: StagePath) -> IntArray:
        known = Observations(labels, codes[rows], confidences[rows])
        return path_keys(WholeRows.of(known, rule.binning), path)

    depths = send_along(rule.tables, rule.first, number, call, keys_of)
    answering = depths.copy()
    ended = np.flatnonzero(calls == stage_count)
    likeliest = rule.answering(partitions(codes[ended])) if len(ended) else None
    if likeliest is not None:
        answering[ended] = likeliest
    return Stopped(
        depths,
        answering,
        codes[np.arange(number), answering],
        of_the_answering(shares, answering),
    )
