"""The list of runs that the paper's figures need. Nothing is run here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stopwise.checks import one_of
from stopwise.costs import Costs
from stopwise.paper.environments import Environment, make_environment
from stopwise.paper.files import read_toml
from stopwise.paper.instances import DistributionSource, PublishedKey, get_dataset, load_published

POINTS = 10
"""Points of a curve over rounds: every 1,000 of the paper's 10,000."""

PAPER_HORIZON = 10_000


@dataclass(frozen=True)
class MarginCurve:
    """One curve of figure 2c: which arm is optimal, and whose cost is moved."""

    optimal_arm: int
    varied_arm: int
    first_costs: tuple[float, ...]


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper: what is run for it."""

    id: str
    title: str
    dataset: str
    policies: tuple[str, ...]
    instances: tuple[int, ...] = ()
    margins: tuple[float, ...] = ()
    other_margin: float = 0.0
    margin_curves: Mapping[str, MarginCurve] | None = None

    @property
    def over_rounds(self) -> bool:
        """Whether x is the number of rounds; else it is the margin xi."""
        return not self.margins


@dataclass(frozen=True)
class PaperRun:
    """One simulation, and where its points go.

    Attributes:
        instance: "1" to "5", or the name of a curve.
        x: the margin, where the figure is over margins; the run then gives one point.
    """

    figure: str
    dataset: str
    instance: str
    source: DistributionSource
    policy: str
    environment: Environment
    x: float | None = None

    @property
    def policy_name(self) -> str:
        """The policy without its settings."""
        return self.policy.partition(":")[0]

    @property
    def label(self) -> str:
        """The problem in words, also a file name: `pima-3-calibrated`.

        >>> list_runs(["2b"])[0].label
        'heart-3-retrained'
        """
        margin = "" if self.x is None else f"-xi{self.x:+.2f}"
        return f"{self.dataset}-{self.instance}{margin}-{self.source}"

    def published(self, horizon: int) -> Mapping[float, float]:
        """The published points that a run of this many rounds can be held against, by x.

        A point over rounds holds for any longer run; one over margins only at the paper's horizon.
        """
        if self.x is not None and horizon != PAPER_HORIZON:
            return {}
        curves = load_published()
        key = PublishedKey(self.figure, self.instance, self.policy_name)
        # Figures 2a and 2b name no instance.
        unnamed = PublishedKey(self.figure, "", self.policy_name)
        points = curves.get(key, curves.get(unnamed, {}))
        return {x: y for x, y in points.items() if self.x is not None or x <= horizon}


@cache
def load_figures() -> dict[str, PaperFigure]:
    """The six figures, by id.

    >>> list(load_figures())
    ['1a', '1b', '1c', '2a', '2b', '2c']
    """
    return {id: _figure(id, form) for id, form in read_toml("experiments.toml").items()}


def _figure(id: str, form: dict[str, Any]) -> PaperFigure:
    margin_curves = {
        name: MarginCurve(row["optimal_arm"], row["varied_arm"], tuple(row["first_costs"]))
        for name, row in form.get("margin_curves", {}).items()
    }
    return PaperFigure(
        id=id,
        title=form["title"],
        dataset=form["dataset"],
        policies=tuple(form["policies"]),
        instances=tuple(form.get("instances", ())),
        margins=tuple(form.get("margins", ())),
        other_margin=form.get("other_margin", 0.0),
        margin_curves=margin_curves,
    )


def choose_figures(only: Sequence[str]) -> list[PaperFigure]:
    """The figures with these ids; all if none is named.

    >>> [figure.id for figure in choose_figures(["2c"])]
    ['2c']
    """
    figures = load_figures()
    for id in only:
        one_of("only", id, tuple(figures))
    return [figure for id, figure in figures.items() if not only or id in only]


def list_runs(only: Sequence[str] = ()) -> list[PaperRun]:
    """Every run of these figures, in the order of the paper.

    >>> len(list_runs(["1a"])), len(list_runs(["2a"]))
    (10, 6)
    """
    return [
        run
        for figure in choose_figures(only)
        for run in (_runs_over_rounds(figure) if figure.over_rounds else _runs_over_margins(figure))
    ]


def _runs_over_rounds(figure: PaperFigure) -> Iterator[PaperRun]:
    dataset = get_dataset(figure.dataset)
    for number in figure.instances:
        costs = dataset.instance(number).costs
        for source in dataset.sources:
            environment = make_environment(dataset.name, source, costs)
            for policy in figure.policies:
                yield PaperRun(figure.id, dataset.name, str(number), source, policy, environment)


def _runs_over_margins(figure: PaperFigure) -> Iterator[PaperRun]:
    for name, curve in (figure.margin_curves or {}).items():
        for margin in figure.margins:
            environment = margin_environment(figure, curve, margin)
            if environment is not None:
                for policy in figure.policies:
                    yield PaperRun(
                        figure.id, figure.dataset, name, "calibrated", policy, environment, margin
                    )


def margin_environment(
    figure: PaperFigure, curve: MarginCurve, margin: float
) -> Environment | None:
    """The calibrated joint distribution under costs that give this margin, or None.

    C_j = C_i* + p_i*j + xi for the varied arm, and with `other_margin` for any other arm beyond the
    optimal one. None where no such costs exist: the optimal arm stays optimal only while
    xi > -(p_i*j - (gamma_i* - gamma_j)), and cumulative costs may not fall.
    """
    best = curve.optimal_arm - 1
    start = Costs.from_cumulative((*curve.first_costs, 1.0, 1.0)[:3])
    rates = make_environment(figure.dataset, "calibrated", start).problem.disagreements
    costs = list(curve.first_costs)
    for arm in range(best + 1, 3):
        xi = margin if arm == curve.varied_arm - 1 else figure.other_margin
        costs.append(round(curve.first_costs[best] + float(rates[best, arm]) + xi, 12))
    if any(later < sooner for sooner, later in itertools.pairwise(costs)):
        return None
    environment = make_environment(
        figure.dataset, "calibrated", Costs.from_cumulative(tuple(costs))
    )
    return environment if environment.problem.optimal_stage == best else None
