"""What is true: costs and the joint distribution of truth and outputs. Known only in simulation."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stopwise.checks import (
    StopwiseError,
    fail,
    finite_number,
    known_keys,
    parse_json_object,
    whole_number,
)
from stopwise.costs import Costs, FloatArray

IntArray = NDArray[np.int64]

# Two sums of probabilities that are equal on paper differ by rounding; ties are read up to this.
TIE = 1e-12

_VERSION = 1
_FIELDS = ("version", "costs", "cumulative", "mistake_cost", "stages", "patterns", "rows")


class Problem:
    """Costs, and a table of patterns: the truth and every stage's output, with a probability.

    Build one with `from_patterns`, `from_predictions`, `from_rates` or `from_json`.
    Stages are 0-based. All attributes that the paper names are properties.

    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], Costs((0.0, 0.25)))
    >>> problem.optimal_stage, problem.weak_dominance
    (0, True)
    >>> problem.gaps.round(3)
    array([0.  , 0.05])
    """

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
        self.costs = costs
        self.truth = truth
        self.outputs = outputs
        self.p = _probabilities(p)
        self.labels = labels
        self.stages = _stage_names(stages, costs.count)
        self.rows = rows
        if outputs.shape[1] != costs.count:
            raise StopwiseError(
                f"patterns: outputs have {outputs.shape[1]} stages, but costs have {costs.count}"
            )
        for array in (self.truth, self.outputs, self.p):
            array.flags.writeable = False

    # ---- builders -------------------------------------------------------------------------

    @classmethod
    def from_patterns(
        cls,
        patterns: Iterable[tuple[Hashable, Sequence[Hashable], float]],
        costs: Costs,
        *,
        stages: Sequence[str] | None = None,
    ) -> Problem:
        """Build from (truth, outputs, probability) triples; labels are any hashable values.

        >>> Problem.from_patterns(
        ...     [("cat", ["cat", "cat"], 0.7), ("dog", ["cat", "dog"], 0.3)], Costs((0, 0.1))
        ... ).error_rates
        array([0.3, 0. ])
        """
        codes: dict[Hashable, int] = {}
        merged: dict[tuple[int, ...], float] = {}
        for at, (truth, outputs, p) in enumerate(patterns):
            if isinstance(outputs, (str, bytes)) or not isinstance(outputs, Sequence | np.ndarray):
                raise fail(f"patterns[{at}].outputs", outputs, "a list, one output for each stage")
            if len(outputs) != costs.count:
                raise fail(
                    f"patterns[{at}].outputs", list(outputs),
                    f"{costs.count} outputs, one for each cost",
                )  # fmt: skip
            accepted = "a probability between 0 and 1"
            weight = finite_number(f"patterns[{at}].p", p, accepted)
            if not 0 <= weight <= 1:
                raise fail(f"patterns[{at}].p", p, accepted)
            key = (
                _code(codes, f"patterns[{at}].truth", truth),
                *(_code(codes, f"patterns[{at}].outputs", value) for value in outputs),
            )
            merged[key] = merged.get(key, 0.0) + weight
        if not merged:
            raise StopwiseError("patterns: got none, but need at least one")
        table = np.array(list(merged), dtype=np.int64)
        return cls(
            costs,
            truth=table[:, 0].copy(),
            outputs=table[:, 1:].copy(),
            p=np.array(list(merged.values())),
            labels=tuple(codes),
            stages=stages,
        )

    @classmethod
    def from_predictions(
        cls,
        predictions: ArrayLike,
        truth: ArrayLike,
        costs: Costs,
        *,
        stages: Sequence[str] | None = None,
    ) -> Problem:
        """Build from a table of predictions (a row an item, a column a stage) and the truth.

        The order of the rows is kept, so that a round-robin stream can follow it.

        >>> problem = Problem.from_predictions([[0, 1], [1, 1], [0, 0]], [1, 1, 0], Costs((0, 0.5)))
        >>> problem.rows
        array([0, 1, 2])
        >>> problem.error_rates.round(3)
        array([0.333, 0.   ])
        """
        table = np.asarray(predictions)
        answers = np.asarray(truth)
        if table.ndim != 2 or table.shape[1] != costs.count:
            raise fail(
                "predictions", table.shape, f"a table of items by {costs.count} stages"
            )  # fmt: skip
        if answers.shape != (len(table),) or not len(table):
            raise fail("truth", answers.shape, f"{len(table)} values, one for each row, and not 0")
        codes: dict[Hashable, int] = {}
        coded = np.empty((len(table), costs.count + 1), dtype=np.int64)
        for at, row in enumerate(table.tolist()):
            coded[at, 0] = _code(codes, f"truth[{at}]", answers[at].item())
            for stage, value in enumerate(row):
                coded[at, stage + 1] = _code(codes, f"predictions[{at}][{stage}]", value)
        seen: dict[bytes, int] = {}
        rows = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in coded])
        patterns = np.array([np.frombuffer(key, dtype=np.int64) for key in seen])
        return cls(
            costs,
            truth=patterns[:, 0].copy(),
            outputs=patterns[:, 1:].copy(),
            p=np.bincount(rows) / len(rows),
            labels=tuple(codes),
            stages=stages,
            rows=rows.astype(np.int64),
        )

    @classmethod
    def from_rates(
        cls,
        error_rates: Sequence[float],
        disagreements: Sequence[Sequence[float | None]],
        costs: Costs,
        *,
        stages: Sequence[str] | None = None,
    ) -> Problem:
        """Build a binary problem with these error and disagreement rates, or say that none exists.

        The truth is always 0; an output of 1 is a wrong one. See `stopwise.rates` for how.

        >>> Problem.from_rates([0.3, 0.1], [[0, 0.5], [0.5, 0]], Costs((0, 1)))
        Traceback (most recent call last):
        ...
        stopwise.checks.StopwiseError: disagreements[0][1]: got 0.5, but need a rate between 0.2
        and 0.4, given the two error rates (no joint distribution exists)
        """
        from stopwise.rates import joint_from_rates

        if len(error_rates) != costs.count:
            raise fail("error_rates", list(error_rates), f"{costs.count} rates, one for each cost")
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
        form = parse_json_object("problem", text)
        known_keys("problem", form, _FIELDS)
        if form.get("version", _VERSION) != _VERSION:
            raise fail("version", form["version"], f"version {_VERSION}")
        for field in ("costs", "patterns"):
            if field not in form:
                raise StopwiseError(f"problem: the field {field!r} is missing")
        cumulative = form.get("cumulative", False)
        if not isinstance(cumulative, bool):
            raise fail("cumulative", cumulative, "true or false")
        build = Costs if cumulative else Costs.from_stages
        costs = build(form["costs"], form.get("mistake_cost", 1.0))
        problem = cls.from_patterns(
            _json_patterns(form["patterns"]), costs, stages=form.get("stages")
        )
        if form.get("rows") is not None:
            problem = problem._with_json_rows(form["rows"], form["patterns"])
        return problem

    def _with_json_rows(self, rows: Any, patterns: list[Mapping[str, Any]]) -> Problem:
        """Rows index the patterns of the file; equal patterns were merged, so look them up."""
        if not isinstance(rows, list) or not rows:
            raise fail("rows", rows, "a list of pattern indices, one for each item")
        if len(self.p) != len(patterns):
            raise StopwiseError("rows: need patterns that are all different")
        for at, row in enumerate(rows):
            if whole_number(f"rows[{at}]", row, least=0) >= len(patterns):
                raise fail(f"rows[{at}]", row, f"a pattern index below {len(patterns)}")
        return self.with_rows(np.array(rows, dtype=np.int64))

    def to_json(self) -> str:
        """Write the problem as JSON.

        >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], Costs((0, 1)))
        >>> Problem.from_json(problem.to_json()) == problem
        True
        """
        form: dict[str, Any] = {
            "version": _VERSION,
            "stages": list(self.stages),
            "costs": list(self.costs.cumulative),
            "cumulative": True,
            "mistake_cost": self.costs.mistake_cost,
            "patterns": [
                {
                    "truth": self.labels[truth],
                    "outputs": [self.labels[code] for code in outputs],
                    "p": float(p),
                }
                for truth, outputs, p in zip(self.truth, self.outputs, self.p, strict=True)
            ],
        }
        if self.rows is not None:
            form["rows"] = self.rows.tolist()
        return json.dumps(form)

    def with_rows(self, rows: IntArray) -> Problem:
        """The same patterns, met in the order of `rows` (pattern indices) by a round-robin stream.

        Probabilities become the shares of the rows.

        >>> problem = Problem.from_rates([0.5, 0.5], [[0, 0], [0, 0]], Costs((0, 1)))
        >>> problem.with_rows(np.array([0, 1, 1, 1])).error_rates
        array([0.75, 0.75])
        """
        return Problem(
            self.costs,
            truth=self.truth,
            outputs=self.outputs,
            p=np.bincount(rows, minlength=len(self.p)) / len(rows),
            labels=self.labels,
            stages=self.stages,
            rows=rows,
        )

    def with_costs(self, costs: Costs) -> Problem:
        """The same joint distribution under other costs.

        >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], Costs((0, 1)))
        >>> problem.with_costs(Costs((0, 0.1))).optimal_stage
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
    def count(self) -> int:
        """How many stages there are."""
        return self.costs.count

    @cached_property
    def error_rates(self) -> FloatArray:
        """`gamma_i = P(Y^i != Y)`."""
        wrong = self.outputs != self.truth[:, None]
        return np.asarray(self.p @ wrong, dtype=np.float64)

    @cached_property
    def disagreements(self) -> FloatArray:
        """`p_ij = P(Y^i != Y^j)`, a symmetric table."""
        table = np.zeros((self.count, self.count))
        for i in range(self.count):
            table[i] = self.p @ (self.outputs != self.outputs[:, i : i + 1])
        return table

    @cached_property
    def expected_total_costs(self) -> FloatArray:
        """`gamma_i + lambda C_i`: what stopping at stage i costs on average, in mistakes."""
        return np.asarray(self.error_rates + self.costs.in_mistakes)

    @cached_property
    def optimal_stage(self) -> int:
        """The largest index among the minimisers of the expected total cost (eq. 1)."""
        totals = self.expected_total_costs
        return int(np.flatnonzero(totals <= totals.min() + TIE)[-1])

    @cached_property
    def gaps(self) -> FloatArray:
        """`Delta_i`: what stopping at stage i costs more than stopping at the optimal stage."""
        return np.asarray(
            np.maximum(self.expected_total_costs - self.expected_total_costs[self.optimal_stage], 0)
        )

    @cached_property
    def margins(self) -> FloatArray:
        """`xi_j` of Definition 3; not a number at the optimal stage itself."""
        best = self.optimal_stage
        margins: FloatArray = self.costs.thresholds[best] - self.disagreements[best]
        # Before the optimal stage the sign turns: xi_j = p - (C_best - C_j).
        margins[:best] = self.disagreements[best, :best] + self.costs.thresholds[best, :best]
        margins[best] = np.nan
        return margins

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
        passes = self.costs.thresholds > self.disagreements + TIE
        last = self.count - 1
        return tuple(i for i in range(self.count) if i == last or passes[i, i + 1 :].all())

    @property
    def stopping_stage(self) -> int:
        """`min B`: where a learner who knew every disagreement would stop."""
        return self.stopping_set[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return (
            f"Problem({self.count} stages, {len(self.p)} patterns,"
            f" cumulative costs {self.costs.cumulative})"
        )


def _code(codes: dict[Hashable, int], field: str, label: Any) -> int:
    if label is None or isinstance(label, (list, dict)) or label != label:
        raise fail(field, label, "a label: text, a number or a boolean (not null, not NaN)")
    try:
        return codes.setdefault(label, len(codes))
    except TypeError:
        raise fail(field, label, "a label that can be hashed") from None


def _json_patterns(patterns: Any) -> Iterable[tuple[Any, Any, Any]]:
    if not isinstance(patterns, list):
        raise fail("patterns", patterns, "a list of objects with truth, outputs and p")
    for at, pattern in enumerate(patterns):
        if not isinstance(pattern, dict):
            raise fail(f"patterns[{at}]", pattern, "an object with truth, outputs and p")
        known_keys(f"patterns[{at}]", pattern, ("truth", "outputs", "p"))
        for field in ("truth", "outputs", "p"):
            if field not in pattern:
                raise StopwiseError(f"patterns[{at}]: the field {field!r} is missing")
        yield pattern["truth"], pattern["outputs"], pattern["p"]


def _probabilities(p: FloatArray) -> FloatArray:
    p = np.asarray(p, dtype=np.float64)
    total = float(p.sum())
    if not abs(total - 1) <= 1e-6:
        raise StopwiseError(f"patterns: probabilities sum to {total:.9g}, but must sum to 1")
    # Sums that are one but for rounding are left alone, so that a written problem reads back equal.
    return p if abs(total - 1) <= 1e-12 else p / total


def _stage_names(stages: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if stages is None:
        return tuple(f"stage {i + 1}" for i in range(count))
    if isinstance(stages, str) or not all(isinstance(name, str) and name for name in stages):
        raise fail("stages", stages, "a list of names")
    if len(stages) != count or len(set(stages)) != count:
        raise fail("stages", list(stages), f"{count} different names, one for each cost")
    return tuple(stages)
