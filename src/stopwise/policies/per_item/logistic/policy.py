"""`per-item-logistic`: the per-item rule with regressions in place of the table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.checks import names_fields, positive_number
from stopwise.costs import Costs
from stopwise.policies.per_item.learning import joined, least_loss
from stopwise.policies.per_item.logistic.rule import STRENGTH, LogisticRule, held_of
from stopwise.policies.per_item.policy import ReferencePolicy
from stopwise.policies.per_item.situation import RowPolicy
from stopwise.situations.observations import Observations
from stopwise.situations.references import Held

GROWTH = 1.5
"""The regressions are fitted again when rounds have grown by this factor."""

MOST_ROWS = 10_000
"""The newest full runs and the newest other rounds that went on, this many each, are kept."""


@names_fields
@dataclass(frozen=True)
class PerItemLogistic(ReferencePolicy, RowPolicy):
    """Stop per item, without labels, by regressions on all that is known of an item.

    It takes confidences as numbers and features of every kind: numbers, texts, vectors (the
    embedding of a text). Fitting needs scikit-learn.

    Args:
        reference: what answers are held against: "auto" (the last stage, as far as the consensus
            of all stages does not doubt it), "last", "consensus", or a stage by number.
        trust: what a difference from the last stage counts for, in mistakes; None for the usual.
        kappa: how often full runs are made: min(1, kappa / sqrt(round x price)), where the price is
            that of all deeper stages in mistakes.
        always_full: rounds at the start that are full runs.
        strength: C of the regressions; smaller draws their weights more to 0.

    >>> PerItemLogistic(trust=0.5).label()
    'per-item-logistic:trust=0.5'
    """

    always_full: int = 64
    strength: float = STRENGTH

    name = "per-item-logistic"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("strength", self.strength)

    def learner(self, stages: tuple[str, ...], costs: Costs) -> LogisticLearner:
        """One that has seen nothing yet."""
        return LogisticLearner(self, stages, costs)


@dataclass
class LogisticLearner:
    """The rounds that still teach, and the rule fitted on them.

    Rounds that stopped after the first stage teach nothing. Of the others only the newest are kept,
    so memory is bounded.
    """

    policy: PerItemLogistic
    stages: tuple[str, ...]
    costs: Costs
    round: int = 0
    rule: LogisticRule | None = None
    held: Held | None = None
    kept: list[Observations] = field(default_factory=list)
    full: list[NDArray[np.bool_]] = field(default_factory=list)

    def until_next(self) -> int:
        """How many rounds may pass before the rule is fitted again."""
        start = self.policy.first_rounds
        if self.round < start:
            return start - self.round
        return max(int(self.round * GROWTH), self.round + 1) - self.round

    def depths(self, rows: Observations) -> IntArray:
        """Where items would stop; at the first stage as long as there is no rule."""
        if self.rule is None:
            return np.zeros(len(rows), dtype=np.int64)
        return self.rule.depths(rows)

    def answering(self, rows: Observations) -> IntArray:
        """Of rows that called every stage: whose answer loses least against the reference."""
        if self.held is None:
            return np.full(len(rows), rows.stage_count - 1, dtype=np.int64)
        return least_loss(self.held, rows)

    def record(self, rows: Observations, full: NDArray[np.bool_]) -> None:
        """Take finished rounds."""
        self.round += len(rows)
        teaches = rows.depths > 0
        if teaches.any():
            self.kept.append(rows.where(teaches))
            self.full.append(full[teaches])

    def refresh(self) -> None:
        """Fit again on what is kept."""
        if not self.kept:
            return
        rows, full = joined(self.kept), np.concatenate(self.full)
        newest = np.sort(
            np.concatenate([np.flatnonzero(full)[-MOST_ROWS:], np.flatnonzero(~full)[-MOST_ROWS:]])
        )
        rows, full = rows.where(newest), full[newest]
        self.kept, self.full = [rows], [full]
        if rows.complete.any():
            policy = self.policy
            self.rule = LogisticRule.fit(
                self.stages, rows, self.costs, reference=policy.reference, trust=policy.trust,
                strength=policy.strength, full=full,
            )  # fmt: skip
            binning = self.rule.columns.binning
            self.held = held_of(rows, full, binning, policy.reference, policy.trust)
