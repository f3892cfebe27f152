"""The tables: the 15 instances beside the paper's, and every point of every figure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stopwise.paper.environments import make_environment
from stopwise.paper.experiments import PaperRun
from stopwise.paper.instances import Dataset, DistributionSource, PaperInstance, load_datasets
from stopwise.paper.running import Results
from stopwise.problem import Problem

REGRET_COLUMNS = (
    "figure", "dataset", "instance", "policy", "source",
    "x", "mean", "ci_low", "ci_high", "published",
)  # fmt: skip

INSTANCE_COLUMNS = (
    "dataset", "instance", "source",
    "gamma1", "gamma2", "gamma3", "C1", "C2", "C3", "p12", "p13", "p23",
    "optimal_arm", "weak_dominance", "strong_dominance", "xi",
    "paper_gamma1", "paper_gamma2", "paper_gamma3",
    "paper_optimal_arm", "paper_weak_dominance", "match",
)  # fmt: skip


@dataclass(frozen=True)
class InstanceRow:
    """One instance under one source, beside what the paper prints of it."""

    dataset: Dataset
    instance: PaperInstance
    source: DistributionSource
    problem: Problem

    @property
    def optimal_arm(self) -> int:
        """The optimal arm, 1-based as in the paper."""
        return self.problem.optimal_stage + 1

    @property
    def match(self) -> bool:
        """Whether optimal arm and weak dominance are as the paper prints them."""
        return (
            self.optimal_arm == self.instance.optimal_arm
            and self.problem.weak_dominance == self.instance.weak_dominance
        )


@dataclass(frozen=True)
class RegretRow:
    """One point of one curve, with the published value where there is one."""

    run: PaperRun
    x: float
    mean: float
    ci_low: float
    ci_high: float
    published: float | None


def instance_rows() -> list[InstanceRow]:
    """All 15 instances under both sources of each data set.

    >>> len(instance_rows())
    30
    """
    return [
        InstanceRow(
            dataset, instance, source,
            make_environment(dataset.name, source, instance.costs).problem,
        )
        for dataset in load_datasets().values()
        for source in dataset.sources
        for instance in dataset.instances
    ]  # fmt: skip


def regret_rows(results: Results) -> list[RegretRow]:
    """Every point: the whole curve over rounds, or the last round at a margin."""
    rows = []
    for run, result in results:
        published = run.published(result.final.round)
        for point in result.curve if run.x is None else [result.final]:
            x = float(point.round) if run.x is None else run.x
            rows.append(
                RegretRow(run, x, point.mean, point.ci_low, point.ci_high, published.get(x))
            )
    return rows


def instances_csv(rows: Iterable[InstanceRow]) -> str:
    """`tables/instances.csv`."""
    lines = []
    for row in rows:
        problem = row.problem
        p = problem.disagreements
        lines.append(
            [
                row.dataset.name, str(row.instance.number), row.source,
                *(_number(value) for value in problem.error_rates),
                *(_number(value) for value in problem.costs.cumulative),
                _number(p[0, 1]), _number(p[0, 2]), _number(p[1, 2]),
                str(row.optimal_arm), _flag(problem.weak_dominance),
                _flag(problem.strong_dominance), _number(problem.margin),
                *(_number(value) for value in row.dataset.error_rates),
                str(row.instance.optimal_arm), _flag(row.instance.weak_dominance),
                _flag(row.match),
            ]
        )  # fmt: skip
    return _csv(INSTANCE_COLUMNS, lines)


def regret_csv(rows: Iterable[RegretRow]) -> str:
    """`regret.csv`; `published` is empty where the paper shows no such point."""
    return _csv(
        REGRET_COLUMNS,
        [
            [
                row.run.figure, row.run.dataset, row.run.instance, row.run.policy_name,
                row.run.source, _number(row.x), _number(row.mean), _number(row.ci_low),
                _number(row.ci_high), "" if row.published is None else _number(row.published),
            ]
            for row in rows
        ],
    )  # fmt: skip


def _csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _number(value: float) -> str:
    if math.isinf(value):
        return "inf"
    return f"{value:.8g}"


def _flag(value: bool) -> str:
    return "true" if value else "false"
