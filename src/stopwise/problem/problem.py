"""What is true: costs and the joint distribution of truth and outputs. Known only in simulation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from stopwise.checks import StopwiseError, fail, names_settings, whole_number
from stopwise.costs import Costs, FloatArray, check_costs
from stopwise.decisions import TIE, optimal_stage, stopping_stages
from stopwise.display import COLOURS, frame, html_table, new_axes
from stopwise.problem.as_json import check_rows, read_problem, write_problem
from stopwise.problem.patterns import IntArray as IntArray
from stopwise.problem.patterns import (
    code_patterns,
    code_predictions,
    frozen,
    probabilities,
    stage_names,
)

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


class Problem:
    """Costs, and a table of patterns: the truth and every stage's output, with a probability.

    Build one with `from_patterns`, `from_predictions`, `from_rates` or `from_json`.
    Stages are 0-based. All attributes that the paper names are properties.

    >>> costs = Costs.from_cumulative((0.0, 0.25))
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> problem.optimal_stage, problem.weak_dominance
    (0, True)
    >>> problem.gaps.round(3)
    array([0.  , 0.05])
    """

    @names_settings
    def __init__(
        self,
        costs: Costs,
        *,
        truth: IntArray,
        outputs: IntArray,
        p: FloatArray,
        labels: tuple[Hashable, ...],
        stages: Sequence[str] | None = None,
        rows: IntArray | None = None,
    ) -> None:
        """Take codes into `labels`; the `from_...` builders make them."""
        self.costs = check_costs(costs)
        self.truth = frozen(truth.copy())
        self.outputs = frozen(outputs.copy())
        self.p = frozen(probabilities(p).copy())
        self.labels = labels
        self.stages = stage_names(stages, costs.stage_count)
        self.rows = None if rows is None else frozen(rows.copy())
        if outputs.shape[1] != costs.stage_count:
            raise StopwiseError(
                f"patterns: outputs have {outputs.shape[1]} stages,"
                f" but costs have {costs.stage_count}"
            )

    # ---- builders -------------------------------------------------------------------------

    @classmethod
    @names_settings
    def from_patterns(
        cls,
        patterns: Iterable[tuple[Hashable, Sequence[Hashable], float]],
        costs: Costs,
        *,
        stages: Sequence[str] | None = None,
    ) -> Problem:
        """Build from (truth, outputs, probability) triples; labels are any hashable values.

        >>> patterns = [("cat", ["cat", "cat"], 0.7), ("dog", ["cat", "dog"], 0.3)]
        >>> Problem.from_patterns(patterns, Costs.from_cumulative((0, 0.1))).error_rates
        array([0.3, 0. ])
        """
        table, p, labels = code_patterns(patterns, check_costs(costs).stage_count)
        return cls(
            costs,
            truth=table[:, 0],
            outputs=table[:, 1:],
            p=p,
            labels=labels,
            stages=stages,
        )

    @classmethod
    @names_settings
    def from_predictions(
        cls,
        predictions: ArrayLike,
        truth: ArrayLike,
        costs: Costs,
        *,
        stages: Sequence[str] | None = None,
    ) -> Problem:
        """Build from a table of predictions and the truth: one row per item, one column per stage.

        The order of the rows is kept, so that a round-robin stream can follow it.

        >>> costs = Costs.from_cumulative((0, 0.5))
        >>> problem = Problem.from_predictions([[0, 1], [1, 1], [0, 0]], [1, 1, 0], costs)
        >>> problem.rows
        array([0, 1, 2])
        >>> problem.error_rates.round(3)
        array([0.333, 0.   ])
        """
        patterns, rows, labels = code_predictions(
            predictions, truth, check_costs(costs).stage_count
        )
        return cls(
            costs,
            truth=patterns[:, 0],
            outputs=patterns[:, 1:],
            p=np.bincount(rows) / len(rows),
            labels=labels,
            stages=stages,
            rows=rows,
        )

    @classmethod
    @names_settings
    def from_rates(
        cls,
        error_rates: Sequence[float],
        disagreements: Sequence[Sequence[float | None]],
        costs: Costs,
        *,
        stages: Sequence[str] | None = None,
    ) -> Problem:
        """Build a binary problem with these error and disagreement rates, or say that none exists.

        The truth is always 0; an output of 1 is a wrong one. See `stopwise.problem.rates` for how.

        >>> Problem.from_rates([0.3, 0.1], [[0, 0.5], [0.5, 0]], Costs.from_cumulative((0, 1)))
        Traceback (most recent call last):
        ...
        stopwise.checks.StopwiseError: disagreements[0][1]: got 0.5, but need a rate between 0.2
        and 0.4, given the two error rates (no joint distribution exists)
        """
        from stopwise.problem.rates import joint_from_rates

        if len(error_rates) != check_costs(costs).stage_count:
            raise fail(
                "error_rates", list(error_rates), f"{costs.stage_count} rates, one for each cost"
            )
        wrong, p = joint_from_rates(error_rates, disagreements)
        return cls(
            costs,
            truth=np.zeros(len(p), dtype=np.int64),
            outputs=wrong.astype(np.int64),
            p=p,
            labels=(0, 1),
            stages=stages,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Problem:
        """Read the form that `to_json` writes; unknown fields are refused.

        >>> problem = Problem.from_json('''{"costs": [0.1, 0.3], "cumulative": true, "patterns": [
        ...     {"truth": 0, "outputs": [0, 0], "p": 0.75},
        ...     {"truth": 0, "outputs": [1, 0], "p": 0.25}
        ... ]}''')
        >>> problem.disagreements[0, 1]
        np.float64(0.25)
        """
        form = read_problem(text)
        problem = cls.from_patterns(form.patterns, form.costs, stages=form.stages)
        if form.rows is None:
            return problem
        with_rows = problem.with_rows(form.rows)
        check_rows(form, problem.p, with_rows.p)
        return with_rows

    def to_json(self) -> str:
        """Write the problem as JSON.

        >>> costs = Costs.from_cumulative((0, 1))
        >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
        >>> Problem.from_json(problem.to_json()) == problem
        True

        Labels that JSON cannot hold, such as tuples, are refused.
        """
        patterns = [
            {
                "truth": self.labels[truth],
                "outputs": [self.labels[code] for code in outputs],
                "p": float(p),
            }
            for truth, outputs, p in zip(self.truth, self.outputs, self.p, strict=True)
        ]
        return write_problem(self.costs, self.stages, patterns, self.rows)

    def with_rows(self, rows: Sequence[int] | IntArray) -> Problem:
        """The same patterns, met in the order of `rows` (pattern indices) by a round-robin stream.

        Probabilities become the shares of the rows.

        >>> costs = Costs.from_cumulative((0, 1))
        >>> problem = Problem.from_rates([0.5, 0.5], [[0, 0], [0, 0]], costs)
        >>> problem.with_rows([0, 1, 1, 1]).error_rates
        array([0.75, 0.75])
        """
        indices = [whole_number(f"rows[{at}]", row, least=0) for at, row in enumerate(rows)]
        if not indices:
            raise fail("rows", rows, "a list of pattern indices, one for each item")
        for at, row in enumerate(indices):
            if row >= len(self.p):
                raise fail(f"rows[{at}]", row, f"a pattern index below {len(self.p)}")
        order = np.array(indices, dtype=np.int64)
        return Problem(
            self.costs,
            truth=self.truth,
            outputs=self.outputs,
            p=np.bincount(order, minlength=len(self.p)) / len(order),
            labels=self.labels,
            stages=self.stages,
            rows=order,
        )

    def with_costs(self, costs: Costs) -> Problem:
        """The same joint distribution under other costs.

        >>> costs = Costs.from_cumulative((0, 1))
        >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
        >>> problem.with_costs(Costs.from_cumulative((0, 0.1))).optimal_stage
        1
        """
        return Problem(
            costs,
            truth=self.truth,
            outputs=self.outputs,
            p=self.p,
            labels=self.labels,
            stages=self.stages,
            rows=self.rows,
        )

    # ---- what follows from it ---------------------------------------------------------------

    @property
    def stage_count(self) -> int:
        """How many stages there are."""
        return self.costs.stage_count

    @cached_property
    def error_rates(self) -> FloatArray:
        """`gamma_i = P(Y^i != Y)`."""
        wrong = self.outputs != self.truth[:, None]
        return frozen(np.asarray(self.p @ wrong, dtype=np.float64))

    @cached_property
    def disagreements(self) -> FloatArray:
        """`p_ij = P(Y^i != Y^j)`, a symmetric table."""
        table = np.zeros((self.stage_count, self.stage_count))
        for i in range(self.stage_count):
            table[i] = self.p @ (self.outputs != self.outputs[:, i : i + 1])
        return frozen(table)

    @cached_property
    def expected_total_costs(self) -> FloatArray:
        """`gamma_i + lambda C_i`: what stopping at stage i costs on average, in mistakes."""
        return frozen(self.error_rates + self.costs.in_mistakes)

    @cached_property
    def optimal_stage(self) -> int:
        """The largest index among the minimisers of the expected total cost (eq. 1)."""
        return optimal_stage(self.expected_total_costs)

    @cached_property
    def gaps(self) -> FloatArray:
        """`Delta_i`: what stopping at stage i costs more than stopping at the optimal stage."""
        totals = self.expected_total_costs
        return frozen(np.maximum(totals - totals[self.optimal_stage], 0))

    @cached_property
    def margins(self) -> FloatArray:
        """`xi_j` of Definition 3; not a number at the optimal stage itself."""
        best = self.optimal_stage
        margins: FloatArray = self.costs.thresholds[best] - self.disagreements[best]
        # Before the optimal stage the sign turns: xi_j = p - (C_best - C_j).
        margins[:best] = self.disagreements[best, :best] + self.costs.thresholds[best, :best]
        margins[best] = np.nan
        return frozen(margins)

    @cached_property
    def margin(self) -> float:
        """`xi`, the smallest margin beyond the optimal stage; infinite if that is the last."""
        deeper = self.margins[self.optimal_stage + 1 :]
        return float(deeper.min()) if len(deeper) else float("inf")

    @property
    def weak_dominance(self) -> bool:
        """Whether xi > 0: no deeper stage disagrees enough to look worth its price."""
        return self.margin > TIE

    @cached_property
    def strong_dominance(self) -> bool:
        """Whether a stage that is right implies that all deeper stages are right."""
        right = (self.outputs == self.truth[:, None])[self.p > 0]
        return bool((right[:, 1:] >= right[:, :-1]).all())

    @cached_property
    def stopping_set(self) -> tuple[int, ...]:
        """The set B of Lemma 1: stages beyond which nothing disagrees enough, and the last."""
        return stopping_stages(self.costs.thresholds, self.disagreements)

    @property
    def stopping_stage(self) -> int:
        """`min B`: where a learner who knew every disagreement would stop."""
        return self.stopping_set[0]

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row for each stage.

        >>> costs = Costs.from_stages((0.0, 0.1))
        >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
        >>> problem.to_frame()["expected_total_cost"].round(3).to_list()
        [0.3, 0.2]
        """
        return frame(self._stage_records())

    @names_settings
    def plot(self, ax: Axes | None = None) -> Axes:
        """What stopping at each stage costs per round, in mistakes: its price and its errors.

        >>> import matplotlib; matplotlib.use("agg")
        >>> costs = Costs.from_stages((0.0, 0.1))
        >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
        >>> problem.plot().get_title()
        'The best stage is stage 2'
        """
        ax = new_axes(ax)
        prices = self.costs.in_mistakes
        ax.bar(self.stages, prices, color=COLOURS[0], label="cost of the stages called")
        ax.bar(self.stages, self.error_rates, bottom=prices, color=COLOURS[1], label="mistakes")
        ax.set_ylabel("per round, in mistakes")
        ax.set_title(f"The best stage is {self.stages[self.optimal_stage]}")
        ax.legend(frameon=False)
        return ax

    def _stage_records(self) -> list[dict[str, Any]]:
        return [
            {
                "stage": name,
                "cumulative_cost": self.costs.cumulative[at],
                "error_rate": float(self.error_rates[at]),
                "expected_total_cost": float(self.expected_total_costs[at]),
                "gap": float(self.gaps[at]),
            }
            for at, name in enumerate(self.stages)
        ]

    def _repr_html_(self) -> str:
        records = self._stage_records()
        holds = "holds" if self.weak_dominance else "does not hold"
        return html_table(
            [column.replace("_", " ") for column in records[0]],
            [list(record.values()) for record in records],
            title=f"The best stage is {self.stages[self.optimal_stage]}; weak dominance {holds}",
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Hashable, ...]:
        """All that makes two problems the same: labels, not the codes that stand for them."""
        return (
            self.costs,
            self.stages,
            tuple(self.labels[code] for code in self.truth),
            tuple(self.labels[code] for code in self.outputs.ravel()),
            tuple(self.p.tolist()),
            None if self.rows is None else tuple(self.rows.tolist()),
        )

    def __repr__(self) -> str:
        return (
            f"Problem({self.stage_count} stages, {len(self.p)} patterns,"
            f" cumulative costs {self.costs.cumulative})"
        )
