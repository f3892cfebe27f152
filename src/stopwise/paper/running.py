"""Run what a figure needs, keep each result as it is finished, and take up where it was left.

A result is kept in `runs/` under a name that holds a digest of everything it depends on: the whole
problem, the policy, the stream, horizon, replications, seed and the version. Results of other
settings can lie beside it and are never taken for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stopwise.checks import finite_number, whole_number
from stopwise.paper.experiments import POINTS, PaperRun
from stopwise.simulation.results import CurvePoint
from stopwise.storage import write_whole
from stopwise.version import __version__

FORM = 1


@dataclass(frozen=True)
class PaperSettings:
    """What the command line sets for all runs."""

    horizon: int = 10_000
    replications: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number("horizon", self.horizon, least=POINTS)
        # One replication has no confidence interval, and every figure of the paper shows one.
        whole_number("replications", self.replications, least=2)
        whole_number("seed", self.seed, least=0)

    @property
    def grid(self) -> list[int]:
        """The rounds of the curves: tenths of the horizon.

        >>> PaperSettings().grid[:3]
        [1000, 2000, 3000]
        """
        return [self.horizon * tenth // POINTS for tenth in range(1, POINTS + 1)]


@dataclass(frozen=True)
class RunResult:
    """What is kept of a run."""

    engine: str
    curve: tuple[CurvePoint, ...]

    @property
    def final(self) -> CurvePoint:
        """The last point of the curve."""
        return self.curve[-1]


Results = Sequence[tuple[PaperRun, RunResult]]
"""Runs with what came of them, in the order of the paper."""


def describe(run: PaperRun, settings: PaperSettings) -> dict[str, Any]:
    """Everything that the result of a run depends on, in a form that can be written down."""
    return {
        "form": FORM,
        "stopwise": __version__,
        "problem": json.loads(run.environment.problem.to_json()),
        "policy": run.policy,
        "stream": run.environment.stream,
        "horizon": settings.horizon,
        "replications": settings.replications,
        "seed": settings.seed,
        "grid": settings.grid,
    }


def result_file(folder: Path, run: PaperRun, settings: PaperSettings) -> Path:
    """Where the result of a run is kept. Equal runs of two figures share one file."""
    text = json.dumps(describe(run, settings), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return folder / "runs" / f"{run.label}-{run.policy_name}-{digest}.json"


def load_result(folder: Path, run: PaperRun, settings: PaperSettings) -> RunResult | None:
    """The kept result, or None where there is none that can be trusted."""
    try:
        form = json.loads(result_file(folder, run, settings).read_text(encoding="utf-8"))
        if form["settings"] != describe(run, settings):
            return None
        curve = tuple(CurvePoint(**point) for point in form["curve"])
        if [point.round for point in curve] != settings.grid:
            return None
        for point in curve:
            for name in ("mean", "ci_low", "ci_high"):
                finite_number(name, getattr(point, name))
        return RunResult(engine=str(form["engine"]), curve=curve)
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        # Not there, or cut off or changed by someone: it is run again.
        return None


def load_results(folder: Path, runs: Iterable[PaperRun], settings: PaperSettings) -> Results:
    """All kept results of these runs."""
    found = ((run, load_result(folder, run, settings)) for run in runs)
    return [(run, result) for run, result in found if result is not None]


def save_result(folder: Path, run: PaperRun, settings: PaperSettings, result: RunResult) -> None:
    """Keep a result; a file is either complete or not there."""
    form = {
        "settings": describe(run, settings),
        "engine": result.engine,
        "curve": [vars(point) for point in result.curve],
    }
    write_whole(result_file(folder, run, settings), json.dumps(form) + "\n")


def run_all(
    runs: Iterable[PaperRun],
    folder: Path,
    settings: PaperSettings,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[PaperRun, RunResult, int, int], None] | None = None,
) -> None:
    """Run what is not kept yet.

    Args:
        progress: called with (replications done, replications in all) over all runs.
        finished: called after each run with (run, result, runs done, runs in all).
    """
    from stopwise.simulation.run import simulate

    todo: dict[Path, PaperRun] = {}
    done = 0
    for run in runs:
        path = result_file(folder, run, settings)
        if path in todo:
            continue
        if load_result(folder, run, settings) is None:
            todo[path] = run
        else:
            done += 1
    total = done + len(todo)
    if progress is not None:
        progress(done * settings.replications, total * settings.replications)
    for run in todo.values():

        def within(count: int, _: int, before: int = done) -> None:
            if progress is not None:
                progress(before * settings.replications + count, total * settings.replications)

        simulation = simulate(
            run.environment.problem,
            run.policy,
            horizon=settings.horizon,
            replications=settings.replications,
            seed=settings.seed,
            stream=run.environment.stream,
            grid=settings.grid,
            jobs=jobs,
            progress=within,
        )
        result = RunResult(
            engine=simulation.engine,
            curve=tuple(CurvePoint(p.round, p.mean, p.ci_low, p.ci_high) for p in simulation.curve),
        )
        save_result(folder, run, settings, result)
        done += 1
        if finished is not None:
            finished(run, result, done, total)
