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
        audited, randomly, best = _simulate_once(plan, order, rows.truth)
        guesses.append([_guess_after(plan, order, rows.truth, number) for number in GUESS_AFTER])
        counts.append((audited, randomly))
        right += bool(totals[best] <= totals.min() + plan.tolerance + TIE)
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


def _guess_after(plan: AuditPlan, order: IntArray, truth: IntArray, number: int) -> int:
    """The best guess with this many labels."""
    worth = plan.worth_labelling(plan.candidates)
    labelled = np.zeros(len(order), dtype=bool)
    labelled[order[worth[order]][:number]] = True
    return best_guess(plan, plan.candidates, order, labelled, truth)


def _simulate_once(plan: AuditPlan, order: IntArray, truth: IntArray) -> tuple[int, int, int]:
    """Labels taken by the audit, by random labelling, and the stage it ended with."""
    events = []
    for pair in plan.pairs:
        places = np.flatnonzero(plan.differ[pair][order])
        items = order[places]
        decided = plan.decide(pair, items, truth[items])
        assert decided is not None  # at the latest when every item is labelled
        draws, side = decided
        loser = pair[0] if side == DEEP_PAYS else pair[1]
        events.append((int(places[draws - 1]), pair, loser))
    left = set(plan.candidates)
    audited, place = 0, -1
    for at, pair, loser in sorted(events):
        if len(left) == 1:
            break
        if not set(pair) <= left:
            continue
        worth = plan.worth_labelling(tuple(sorted(left)))
        audited += int(worth[order[place + 1 : at + 1]].sum())
        place = at
        left.discard(loser)
    return audited, place + 1, min(left)
