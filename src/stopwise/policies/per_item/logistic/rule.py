"""The per-item rule by regressions: one for each stage's answer, after each stage.

After stage i, with x all that is known there as numbers, and everything in mistakes:

    stop  iff  loss_ii(x)  <=  min over j > i of  loss_ij(x) + C_j - C_i

loss_ij(x) is the expected loss of stage j's answer against the reference. It is a regression on the
items that went on from stage i. A full run counts with what it really ended in, any other round
with what the regressions one stage deeper say of it: a rule that sends hard items deeper does not
bias them, since the choice rests on nothing but x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.agreement import partitions
from stopwise.arrays import FloatArray, IntArray
from stopwise.checks import StopwiseError, fail, finite_number, whole_number
from stopwise.costs import Costs
from stopwise.decisions import stopping_is_best
from stopwise.policies.per_item.logistic.columns import RowNumbers
from stopwise.policies.per_item.logistic.features import numbers_of
from stopwise.policies.per_item.logistic.model import Model, fit_model, library
from stopwise.policies.per_item.rule import RuleDecision
from stopwise.policies.per_item.rule_files import FiledRule, RuleHead, read_head
from stopwise.situations.binning import Binning
from stopwise.situations.observations import NOT_CALLED, Observations
from stopwise.situations.references import Held, hold_against
from stopwise.situations.transitions import Transitions

LOGISTIC = "per-item-logistic"
"""What a rule of this kind calls itself in a file."""

STRENGTH = 1.0
"""C of the regressions: weights are drawn to 0, as far as rows do not say otherwise."""

LabelledRows = tuple[Observations, IntArray]
"""Complete rows that somebody labelled, and the code of each right answer."""


@dataclass(frozen=True, repr=False)
class LogisticRule(FiledRule):
    """A rule that decides after each stage by regressions; it does not change any more.

    Attributes:
        stages: names, cheapest first.
        columns: how what is known becomes numbers.
        models: for each stage but the last, the loss of each stage's answer.
        costs: what stages and mistakes cost.
        reference, trust: what answers are held against, as asked for.
        doubt: how far the consensus took the last stage's place when it was fitted.
        rows: of how many items.
        fitted_by: library and version.

    >>> codes = np.array([[0, 0]] * 200 + [[1, 0]] * 100 + [[1, 1]] * 100)
    >>> rows = Observations(("no", "yes"), codes)
    >>> costs = Costs.from_stages([1, 5], mistake_cost=20)
    >>> rule = LogisticRule.fit(("small", "large"), rows, costs)
    >>> rule.depths(rows.where(np.array([0, 250]))).tolist()     # "yes" is often changed: go on
    [0, 1]
    """

    stages: tuple[str, ...]
    columns: RowNumbers
    models: tuple[tuple[Model, ...], ...]
    costs: Costs
    reference: str | int = "auto"
    trust: float | None = None
    doubt: float = 0.0
    rows: int = 0
    fitted_by: str = ""

    def __post_init__(self) -> None:
        stage_count = len(self.stages)
        if not stage_count == self.costs.stage_count == self.columns.binning.stage_count:
            raise fail(
                "stages", list(self.stages),
                f"{self.columns.binning.stage_count} names and as many costs, as fitted",
            )  # fmt: skip
        if len(self.models) != stage_count - 1 or any(
            len(after) != stage_count for after in self.models
        ):
            raise fail(
                "models", len(self.models), f"{stage_count - 1} times {stage_count} regressions"
            )
        for stage, after in enumerate(self.models):
            wide = len(self.columns.entries(stage, self.stages))
            for model in after:
                if len(model.weights) not in (0, wide):
                    raise fail(f"models[{stage}]", len(model.weights), f"0 or {wide} weights")

    @classmethod
    def fit(
        cls,
        stages: tuple[str, ...],
        rows: Observations,
        costs: Costs,
        *,
        reference: str | int = "auto",
        trust: float | None = None,
        strength: float = STRENGTH,
        full: NDArray[np.bool_] | None = None,
        labelled: LabelledRows | None = None,
    ) -> LogisticRule:
        """Fit on rounds; `full` says which were full runs, by default all if all are complete.

        Args:
            labelled: rows with a right answer each, which choose the reference.
        """
        if full is None:
            full = rows.complete if rows.complete.all() else np.zeros(len(rows), dtype=np.bool_)
        whole = rows.complete
        if not whole.any():
            raise StopwiseError("per-item-logistic: no row on which every stage was called")
        columns = RowNumbers.fit(rows)
        held = held_of(rows, full, columns.binning, reference, trust, labelled)
        models = _fit_back(rows, full, columns, held, strength)
        return cls(
            stages, columns, models, costs, reference, trust, held.doubt, len(rows), library()
        )

    # ---- deciding -----------------------------------------------------------------------------

    def losses(self, rows: Observations, stage: int) -> FloatArray:
        """The expected loss of each stage's answer, in mistakes, given what is known there."""
        matrix = self.columns.matrix(rows, stage)
        return np.stack([model.chance(matrix) for model in self.models[stage]], axis=1)

    def depths(self, rows: Observations) -> IntArray:
        """Where each item would stop; the rows must have been called that far."""
        last = len(self.stages) - 1
        depths = np.full(len(rows), last, dtype=np.int64)
        on = np.arange(len(rows))
        for stage in range(last):
            part = rows.where(on)
            called = part.codes[:, stage] != NOT_CALLED
            here, deeper = self._both(self.losses(part, stage), stage)
            stops = stopping_is_best(here, deeper) | ~called
            depths[on[stops]] = stage
            on = on[~stops]
            if not len(on):
                break
        return depths

    def decide(self, stage: int, row: Observations) -> RuleDecision:
        """The decision after a stage on one item, with what it rests on.

        >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
        >>> costs = Costs.from_stages([1, 5], mistake_cost=20)
        >>> rule = LogisticRule.fit(("small", "large"), rows, costs)
        >>> rule.decide(0, Observations(("no", "yes"), np.array([[1, -2]]))).stop
        False
        """
        losses = self.losses(row, stage)
        here, deeper = self._both(losses, stage)
        return RuleDecision(
            stop=bool(stopping_is_best(here[0], deeper[0])),
            losses=tuple(float(loss) for loss in losses[0]),
            here=float(here[0] * self.costs.mistake_cost),
            deeper=float(deeper[0] * self.costs.mistake_cost),
            rows=self.rows,
            level=0,
        )

    def _both(self, losses: FloatArray, stage: int) -> tuple[FloatArray, FloatArray]:
        """What stopping here and what going on costs from now on, in mistakes."""
        price = np.asarray(self.costs.in_mistakes)
        deeper = losses[:, stage + 1 :] + (price[stage + 1 :] - price[stage])[None]
        return losses[:, stage], deeper.min(axis=1)

    # ---- keeping ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As `rule.json` holds it."""
        return {
            **RuleHead(self.stages, self.costs, self.reference, self.trust).written(LOGISTIC),
            "doubt": self.doubt,
            "rows": self.rows,
            "fitted_by": self.fitted_by,
            "columns": self.columns.to_dict(),
            "models": [
                [{"intercept": model.intercept, "weights": list(model.weights)} for model in after]
                for after in self.models
            ],
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> LogisticRule:
        """Read what `to_dict` wrote; scikit-learn is not needed for it.

        >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
        >>> rule = LogisticRule.fit(("small", "large"), rows, Costs.from_stages([1, 5]))
        >>> LogisticRule.from_dict(rule.to_dict()) == rule
        True
        """
        head = read_head(form, LOGISTIC, _FIELDS, needed=("columns", "models"))
        try:
            models = tuple(
                tuple(
                    Model(
                        finite_number("intercept", one["intercept"]),
                        numbers_of("weights", one["weights"]),
                    )
                    for one in after
                )
                for after in form["models"]
            )
        except (KeyError, TypeError) as error:
            raise fail("models", str(error), "intercept and weights of each regression") from None
        return cls(
            head.stages,
            RowNumbers.from_dict(form["columns"]),
            models,
            head.costs,
            head.reference,
            head.trust,
            finite_number("doubt", form.get("doubt", 0.0)),
            whole_number("rows", form.get("rows", 0), least=0),
            str(form.get("fitted_by", "")),
        )


_FIELDS = ("doubt", "rows", "fitted_by", "columns", "models", "reads")


def held_of(
    rows: Observations,
    full: NDArray[np.bool_],
    binning: Binning,
    reference: str | int,
    trust: float | None,
    labelled: LabelledRows | None = None,
) -> Held:
    """What answers are held against, from these rounds."""
    bare = Observations(rows.labels, rows.codes, rows.confidences)
    counts = Transitions.of(bare, binning, full=full)
    if labelled is not None:
        seen = labelled[0]
        counts.add_labels(Observations(seen.labels, seen.codes, seen.confidences), labelled[1])
    return hold_against(counts, reference, trust)


def _fit_back(
    rows: Observations,
    full: NDArray[np.bool_],
    columns: RowNumbers,
    held: Held,
    strength: float,
) -> tuple[tuple[Model, ...], ...]:
    """The regressions after every stage but the last, from the last one back."""
    stage_count = rows.stage_count
    ended = np.zeros((len(rows), stage_count))
    whole = np.flatnonzero(rows.complete)
    ended[whole] = held.loss(partitions(np.where(rows.codes[whole] < 0, -1, rows.codes[whole])))
    found: list[tuple[Model, ...]] = []
    for stage in range(stage_count - 2, -1, -1):
        went_on = np.flatnonzero(rows.codes[:, stage + 1] != NOT_CALLED)
        part = rows.where(went_on)
        target = ended[went_on]
        if found:  # at the last step every row that went on has ended
            matrix = columns.matrix(part, stage + 1)
            foretold = np.stack([model.chance(matrix) for model in found[-1]], axis=1)
            target = np.where(full[went_on][:, None], target, foretold)
        matrix = columns.matrix(part, stage)
        found.append(tuple(fit_model(matrix, target[:, at], strength) for at in range(stage_count)))
    return tuple(reversed(found))
