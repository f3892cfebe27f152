"""What came of a way to stop: of a policy over its runs, and of the baselines beside it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stopwise.costs import FloatArray
from stopwise.decisions import first_passing_stage, optimal_stage, same_total
from stopwise.logs.reading.rows import LogRows
from stopwise.problem import IntArray

PARTS = 20


@dataclass(frozen=True)
class RunDepths:
    """One run: which rows it met, in order, how deep each round went, and who answered it.

    Attributes:
        more: what each round cost beyond stopping there, where stages are called alone.
    """

    index: IntArray
    depths: IntArray
    answering: IntArray
    more: FloatArray | None = None


@dataclass(frozen=True)
class ReplayOutcome:
    """What came of a way to stop, on average per item.

    Attributes:
        name: of the policy or baseline.
        cost: what one item costs.
        differs: share of answers that differ from always-last.
        no_answer: share of items that ended at a stage that abstained.
        stage_share: share of items that stopped at each stage.
        error_rate: with truth: share of wrong answers, no answer included.
        regret: with truth: what one item costs more, mistakes included, than under the best fixed
            stage in hindsight; in mistakes. May be negative where a rule looks at the outputs.
        cost_half_width, differs_half_width, regret_half_width: of 95 % intervals over
            replications; 0 where nothing is random.
    """

    name: str
    cost: float
    differs: float
    no_answer: float
    stage_share: tuple[float, ...]
    error_rate: float | None = None
    regret: float | None = None
    cost_half_width: float = 0.0
    differs_half_width: float = 0.0
    regret_half_width: float = 0.0


class Scorer:
    """Turns depths into cost, changes and, with truth, errors."""

    def __init__(self, rows: LogRows) -> None:
        self.rows = rows
        self.optimal_stage: int | None = None
        self._wrong: FloatArray | None = None
        if rows.truth is not None:
            # No answer is no right answer: a cascade that ends there has not served the item.
            self._wrong = (rows.answers != rows.truth[:, None]).astype(np.float64)
            totals = self._wrong.mean(axis=0) + rows.spent.mean(axis=0) / rows.costs.mistake_cost
            self.best_total = float(totals.min())
            self.optimal_stage = optimal_stage(totals)

    def values(
        self,
        index: IntArray,
        depths: IntArray,
        answering: IntArray | None = None,
        more: FloatArray | None = None,
    ) -> dict[str, float]:
        """Averages over the items of a run; by default the stage that is stopped at answers."""
        rows = self.rows
        answering = depths if answering is None else answering
        answers = rows.answers[index, answering]
        last = rows.answers[index, rows.baseline]
        beyond = 0.0 if more is None else float(more.mean())
        found = {
            "cost": float(rows.spent[index, depths].mean()) + beyond,
            "differs": float(((answers != last) & (answers >= 0)).mean()),
            "no_answer": float((answers < 0).mean()),
        }
        if self._wrong is not None:
            found["error_rate"] = float(self._wrong[index, answering].mean())
            total = found["error_rate"] + found["cost"] / rows.costs.mistake_cost
            # Sums in another order differ by rounding: what is equal on paper is no regret.
            same = same_total(total, self.best_total)
            found["regret"] = 0.0 if same else total - self.best_total
        return found

    def outcome(self, name: str, depths: IntArray, more: FloatArray | None = None) -> ReplayOutcome:
        """Of a way to stop that has no chance in it, over all rows."""
        index = np.arange(len(depths))
        return ReplayOutcome(
            name=name,
            stage_share=shares_of(depths, len(self.rows.stages)),
            **self.values(index, depths, more=more),
        )


def summarise(
    name: str, scorer: Scorer, runs: list[RunDepths]
) -> tuple[ReplayOutcome, tuple[tuple[int, tuple[float, ...]], ...]]:
    """The outcome of a policy over its runs, and its stage share in each part of the rounds."""
    stage_count = len(scorer.rows.stages)
    values = [scorer.values(run.index, run.depths, run.answering, run.more) for run in runs]
    means = {key: float(np.mean([v[key] for v in values])) for key in values[0]}
    widths = {
        f"{key}_half_width": _half_width([v[key] for v in values])
        for key in ("cost", "differs", "regret")
        if key in values[0]
    }
    depths = np.stack([run.depths for run in runs])
    ends = np.unique(np.linspace(0, depths.shape[1], PARTS + 1).round().astype(int))
    over_time = tuple(
        (int(end), shares_of(depths[:, start:end].ravel(), stage_count))
        for start, end in itertools.pairwise(ends)
    )
    return ReplayOutcome(
        name=name, stage_share=shares_of(depths.ravel(), stage_count), **means, **widths
    ), over_time


def baselines(scorer: Scorer, outcome: ReplayOutcome) -> Iterator[ReplayOutcome]:
    """What a policy should be held against, over the same rows."""
    rows = scorer.rows
    length, last = len(rows.codes), len(rows.stages) - 1

    def fixed(stage: int) -> IntArray:
        return np.full(length, stage, dtype=np.int64)

    if rows.calls == "alone":
        for stage in dict.fromkeys((0, rows.baseline % len(rows.stages))):
            yield scorer.outcome(f"always {rows.stages[stage]} alone", fixed(stage))
    else:
        yield scorer.outcome("always first", fixed(0))
        yield scorer.outcome("always last", fixed(last))
    if scorer.optimal_stage is not None:
        best = scorer.optimal_stage
        yield scorer.outcome(f"best fixed stage in hindsight ({rows.stages[best]})", fixed(best))
    else:
        best = first_passing_stage(rows.costs.thresholds, rows.evidence().disagreement)
        name = f"the rule's stage, knowing the whole log ({rows.stages[best]})"
        yield scorer.outcome(name, fixed(best))
    agreeing = two_in_a_row(rows.codes)
    everyone = np.arange(length)
    if rows.calls == "alone":
        # It needs the stages before it, which it pays for here too.
        through = np.cumsum(rows.bills, axis=1)[everyone, agreeing]
        more = through - rows.spent[everyone, agreeing]
        yield scorer.outcome("on until two in a row agree", agreeing, more)
        return
    yield scorer.outcome("on until two in a row agree", agreeing)
    if rows.calls is None and len(rows.bills):
        more = rows.bills[:, last] - rows.spent[:, last]
        yield scorer.outcome(f"{rows.stages[last]} called alone", fixed(last), more)
    # Expected values of a stage drawn blindly with the policy's own shares, so at its cost.
    each = [scorer.values(np.arange(length), fixed(stage)) for stage in range(last + 1)]
    shares = outcome.stage_share
    yield ReplayOutcome(
        name="random stopping at equal cost",
        stage_share=shares,
        **{key: sum(p * v[key] for p, v in zip(shares, each, strict=True)) for key in each[0]},
    )


def two_in_a_row(codes: IntArray) -> IntArray:
    """The depth at which a stage first agrees with the one before it, else the last.

    >>> two_in_a_row(np.array([[0, 0, 1], [0, 1, 1], [0, 1, 0], [-1, -1, 0]]))
    array([1, 2, 2, 2])
    """
    agree = (codes[:, 1:] == codes[:, :-1]) & (codes[:, 1:] >= 0)
    return np.asarray(np.where(agree.any(axis=1), agree.argmax(axis=1) + 1, codes.shape[1] - 1))


def shares_of(depths: IntArray, stage_count: int) -> tuple[float, ...]:
    """The share of each depth."""
    shares = np.bincount(depths, minlength=stage_count) / len(depths)
    return tuple(float(share) for share in shares)


def _half_width(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    from scipy.special import stdtrit

    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return float(stdtrit(len(values) - 1, 0.975)) * spread
