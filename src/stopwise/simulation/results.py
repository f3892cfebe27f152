"""What came of a simulation: regret with intervals, stage shares, a curve over rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stopwise.checks import names_settings
from stopwise.costs import FloatArray
from stopwise.display import COLOURS, frame, html_table, new_axes
from stopwise.problem import IntArray

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class CurvePoint:
    """Mean regret after a number of rounds, with its 95 % interval.

    >>> import stopwise as sw
    >>> result = sw.simulate(sw.paper.problem("pima", 3), "uss-ts", horizon=100, replications=10)
    >>> point = result.curve[-1]
    >>> point.round, point.ci_low < point.mean < point.ci_high
    (100, True)
    """

    round: int
    mean: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Regret:
    """Regret at the horizon over all replications: mean, 95 % interval, quantiles.

    >>> import stopwise as sw
    >>> result = sw.simulate(sw.paper.problem("pima", 3), "uss-ts", horizon=100, replications=10)
    >>> regret = result.regret
    >>> regret.ci_low < regret.mean < regret.ci_high, regret.q05 < regret.q50 < regret.q95
    (True, True)
    """

    mean: float
    ci_low: float
    ci_high: float
    q05: float
    q50: float
    q95: float
    q99: float


@dataclass(frozen=True)
class Moments:
    """Number, mean and sum of squared deviations of many curves; merged without keeping them.

    >>> one = Moments.of(np.array([[1.0], [3.0]]))
    >>> both = one.merge(Moments.of(np.array([[5.0]])))
    >>> both.number, both.mean, both.squares
    (3, array([3.]), array([8.]))
    """

    number: int
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, curves: FloatArray) -> Moments:
        """Moments over the first axis."""
        mean = curves.mean(axis=0)
        return cls(len(curves), mean, ((curves - mean) ** 2).sum(axis=0))

    def merge(self, other: Moments) -> Moments:
        """Chan's formula for two disjoint groups."""
        number = self.number + other.number
        step = other.mean - self.mean
        return Moments(
            number,
            self.mean + step * (other.number / number),
            self.squares + other.squares + step**2 * (self.number * other.number / number),
        )

    def half_width(self) -> FloatArray:
        """Half the width of the 95 % interval of the mean (Student's t); nan for one curve."""
        if self.number < 2:
            return np.full_like(self.mean, np.nan)
        from scipy.special import stdtrit

        error = np.sqrt(self.squares / (self.number - 1) / self.number)
        return np.asarray(stdtrit(self.number - 1, 0.975) * error)


@dataclass(frozen=True)
class Chunk:
    """A part of the replications, already reduced to what the result needs."""

    moments: Moments
    finals: FloatArray
    stage_counts: IntArray

    @classmethod
    def of(cls, depth_counts: IntArray, gaps: FloatArray) -> Chunk:
        """From the depth counts of replications x grid x stages.

        Regret is the depth counts times the gaps, here and nowhere else.
        """
        curves = depth_counts @ gaps
        return cls(Moments.of(curves), curves[:, -1].copy(), depth_counts[:, -1].copy())


@dataclass(frozen=True)
class Simulation:
    """The result of `simulate`.

    Attributes:
        policy: the policy with its settings, as the command line takes it.
        regret: at the horizon, over replications, in units of one mistake.
        stage_share: share of all rounds that stopped at each stage.
        curve: mean regret over the grid of rounds.
        finals: the regret of every replication at the horizon.
        stage_counts: for every replication, how often it stopped at each stage.
        engine: which engine ran it.
        stages: their names.

    >>> import stopwise as sw
    >>> costs = sw.Costs.from_stages((0.0, 0.1))
    >>> problem = sw.Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> result = sw.simulate(problem, "fixed:stage=0", horizon=100, replications=3)
    >>> round(result.regret.mean, 6), result.stage_share, result.optimal_stage
    (10.0, (1.0, 0.0), 1)
    """

    policy: str
    horizon: int
    replications: int
    seed: int
    stream: str
    engine: str
    optimal_stage: int
    weak_dominance: bool
    regret: Regret
    stage_share: tuple[float, ...]
    curve: tuple[CurvePoint, ...]
    finals: FloatArray
    stage_counts: IntArray
    stages: tuple[str, ...]

    def to_frame(self) -> polars.DataFrame:
        """The curve as a polars frame: round, mean regret and its 95 % interval.

        >>> import stopwise as sw
        >>> result = sw.simulate(sw.paper.problem("pima", 3), "fixed", horizon=100, replications=3)
        >>> result.to_frame().columns
        ['round', 'mean', 'ci_low', 'ci_high']
        """
        return frame([_without_nan(vars(point)) for point in self.curve])

    @names_settings
    def plot(self, ax: Axes | None = None) -> Axes:
        """Mean regret over rounds with its 95 % interval, on matplotlib axes.

        Give the axes of one result to the next to compare policies.

        >>> import stopwise as sw
        >>> result = sw.simulate(sw.paper.problem("pima", 3), "fixed", horizon=100, replications=3)
        >>> result.plot().get_ylabel()
        'mean regret (mistakes)'
        """
        ax = new_axes(ax)
        rounds = [point.round for point in self.curve]
        colour = COLOURS[len(ax.lines) % len(COLOURS)]
        ax.plot(rounds, [point.mean for point in self.curve], color=colour, label=self.policy)
        low, high = zip(*((point.ci_low, point.ci_high) for point in self.curve), strict=True)
        ax.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.set(xlabel="round", ylabel="mean regret (mistakes)", xlim=(0, self.horizon))
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)
        return ax

    def __str__(self) -> str:
        regret = self.regret
        after = f"regret {regret.mean:.4g} mistakes after {self.horizon:,} rounds"
        if self.replications == 1:
            return f"{self.policy}: {after} (one replication)"
        return (
            f"{self.policy}: mean {after} (95 % interval {regret.ci_low:.4g} to"
            f" {regret.ci_high:.4g}, {self.replications:,} replications)"
        )

    def __repr__(self) -> str:
        return f"<Simulation of {self}>"

    def _repr_html_(self) -> str:
        best = self.stages[self.optimal_stage]
        rows = zip(self.stages, self.stage_share, strict=True)
        return html_table(
            ["stage", "share of rounds that stop there"],
            rows,
            title=str(self),
            note=f"The best stage is {best}.",
        )

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise simulate --json` prints; an interval of one replication is null.

        >>> import stopwise as sw
        >>> result = sw.simulate(sw.paper.problem("pima", 3), "fixed", horizon=100, replications=3)
        >>> result.to_dict()["policy"], result.to_dict()["horizon"]
        ('fixed', 100)
        """
        return {
            "policy": self.policy,
            "horizon": self.horizon,
            "replications": self.replications,
            "seed": self.seed,
            "stream": self.stream,
            "engine": self.engine,
            "optimal_stage": self.optimal_stage,
            "weak_dominance": self.weak_dominance,
            "regret": _without_nan(vars(self.regret)),
            "stage_share": list(self.stage_share),
            "curve": [_without_nan(vars(point)) for point in self.curve],
        }


def summarise(
    chunks: Iterable[Chunk], grid: IntArray
) -> tuple[Regret, tuple[CurvePoint, ...], FloatArray, IntArray]:
    """Put the chunks together, in their order, so that the result is the same to the last bit."""
    moments: Moments | None = None
    finals, stage_counts = [], []
    for chunk in chunks:
        moments = chunk.moments if moments is None else moments.merge(chunk.moments)
        finals.append(chunk.finals)
        stage_counts.append(chunk.stage_counts)
    assert moments is not None
    half = moments.half_width()
    curve = tuple(
        CurvePoint(int(round), float(mean), float(mean - width), float(mean + width))
        for round, mean, width in zip(grid, moments.mean, half, strict=True)
    )
    all_finals = np.concatenate(finals)
    q05, q50, q95, q99 = (float(q) for q in np.quantile(all_finals, [0.05, 0.5, 0.95, 0.99]))
    last = curve[-1]
    regret = Regret(last.mean, last.ci_low, last.ci_high, q05, q50, q95, q99)
    return regret, curve, all_finals, np.concatenate(stage_counts)


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in values.items()
    }
