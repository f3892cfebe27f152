"""How many labels an audit of a log would have taken, against plain random labelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, a_function, fail, names_settings, whole_number
from stopwise.decisions import TIE, optimal_stage
from stopwise.logs.auditing.audit import DEEP_PAYS, AuditPlan, best_guess, label_order
from stopwise.problem import IntArray

GUESS_AFTER = (0, 10, 30, 100)
"""Numbers of labels after which the best guess is scored."""


@dataclass(frozen=True)
class AuditSimulation:
    """How many labels audits of a log with known truth took, and plain random labelling.

    Attributes:
        audit_labels, random_labels: of every replication.
        right: share of replications that ended with the truly best stage, or one that costs no
            more than the tolerance above it.
        guess_excess: how much more than the best stage the best guess costs, mistakes included,
            after each number of labels in `GUESS_AFTER`, on average.
    """

    stages: tuple[str, ...]
    optimal_stage: int
    items: int
    worth_labelling: int
    audit_labels: IntArray
    random_labels: IntArray
    right: float
    guess_excess: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise audit --simulate-with --json` prints."""

        def summary(labels: IntArray) -> dict[str, float]:
            q05, q50, q95 = np.quantile(labels, [0.05, 0.5, 0.95])
            return {"mean": float(labels.mean()), "q05": float(q05), "median": float(q50),
                    "q95": float(q95)}  # fmt: skip

        return {
            "version": 1,
            "stages": list(self.stages),
            "optimal_stage": self.stages[self.optimal_stage],
            "items": self.items,
            "worth_labelling": self.worth_labelling,
            "replications": len(self.audit_labels),
            "audit_labels": summary(self.audit_labels),
            "random_labels": summary(self.random_labels),
            "right": self.right,
            "best_guess_excess": dict(zip(map(str, GUESS_AFTER), self.guess_excess, strict=True)),
        }


@names_settings
def simulate_audit(
    plan: AuditPlan,
    *,
    replications: int = 200,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AuditSimulation:
    """Audit a log whose truth is known, many times, each in its own random order.

    Plain random labelling labels the whole log in the same order; it is read with the same
    confidence sequences, so it is the best that random labelling can do here.

    >>> import polars
    >>> from stopwise.logs.auditing.audit import plan_audit
    >>> frame = polars.DataFrame(
    ...     {"a": [0] * 200, "b": [0] * 150 + [1] * 50, "truth": [0] * 150 + [1] * 50}
    ... )
    >>> plan = plan_audit(frame, stages=["a", "b"], costs=[0, 0.1], truth="truth")
    >>> result = simulate_audit(plan, replications=20)
    >>> result.right, bool((result.audit_labels < result.random_labels).all())
    (1.0, True)
    """
    if not isinstance(plan, AuditPlan):
        raise fail("plan", plan, "what stopwise.logs.plan_audit(...) gives")
    replications = whole_number("replications", replications, least=1)
    if progress is not None:
        a_function("progress", progress, "a function of (done, total), or None")
    rows = plan.rows
    if rows.truth is None:
        raise StopwiseError("simulate-with: name the column of right answers")
    totals = (rows.answers != rows.truth[:, None]).mean(axis=0) + rows.costs.in_mistakes
    seeds = np.random.SeedSequence(seed).spawn(replications)
    counts, guesses, right = [], [], 0
    for at, child in enumerate(seeds):
        order = label_order(plan, child)
        course = _Course.of(plan, order, rows.truth)
        guesses.append([course.guess_after(number) for number in GUESS_AFTER])
        counts.append((len(course.labelled), course.randomly))
        right += bool(totals[course.best] <= totals.min() + plan.tolerance + TIE)
        if progress is not None:
            progress(at + 1, replications)
    table = np.array(counts, dtype=np.int64)
    return AuditSimulation(
        stages=rows.stages,
        optimal_stage=optimal_stage(totals),
        items=len(rows.codes),
        worth_labelling=int(plan.worth_labelling(plan.candidates).sum()),
        audit_labels=table[:, 0],
        random_labels=table[:, 1],
        right=right / replications,
        guess_excess=tuple(
            float(mean) for mean in (totals[np.array(guesses)] / totals.min() - 1).mean(axis=0)
        ),
    )


@dataclass(frozen=True)
class _Course:
    """How one audit went.

    Attributes:
        order: all items, in random order.
        labelled: the items that were labelled, in turn.
        lost: the stages that were out, each with how many labels there were then.
        randomly: how many labels of the whole log would have told the same.
        best: the stage that is left.
    """

    plan: AuditPlan
    order: IntArray
    truth: IntArray
    labelled: IntArray
    lost: tuple[tuple[int, int], ...]
    randomly: int
    best: int

    @classmethod
    def of(cls, plan: AuditPlan, order: IntArray, truth: IntArray) -> _Course:
        """Label until one stage is left."""
        events = []
        for pair in plan.pairs:
            places = np.flatnonzero(plan.differ[pair][order])
            items = order[places]
            decided = plan.decide(pair, items, truth[items])
            assert decided is not None  # at the latest when every item is labelled
            draws, side = decided
            loser = pair[0] if side == DEEP_PAYS else pair[1]
            events.append((int(places[draws - 1]), pair, loser))
        left, lost, parts = set(plan.candidates), [], [order[:0]]
        place = -1
        for at, pair, loser in sorted(events):
            if len(left) == 1:
                break
            if not set(pair) <= left:
                continue
            items = order[place + 1 : at + 1]
            parts.append(items[plan.worth_labelling(tuple(sorted(left)))[items]])
            place = at
            left.discard(loser)
            lost.append((sum(map(len, parts)), loser))
        return cls(plan, order, truth, np.concatenate(parts), tuple(lost), place + 1, min(left))

    def guess_after(self, number: int) -> int:
        """The best guess with this many labels, among the stages that are left by then."""
        out = {stage for labels, stage in self.lost if labels <= number}
        left = tuple(stage for stage in self.plan.candidates if stage not in out)
        labelled = np.zeros(len(self.order), dtype=bool)
        labelled[self.labelled[:number]] = True
        return best_guess(self.plan, left, self.order, labelled, self.truth)
