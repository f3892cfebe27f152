"""Run what a figure needs, keep each result as it is finished, and take up where it was left.

A result is kept in `runs/` under a name that holds a digest of everything it depends on: the whole
problem, the policy, the stream, horizon, replications, seed and the version. Results of other
settings can lie beside it and are never taken for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stopwise.checks import StopwiseError, finite_number, whole_number
from stopwise.paper.experiments import POINTS, Run
from stopwise.version import __version__

FORM = 1


@dataclass(frozen=True)
class Settings:
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

        >>> Settings().grid[:3]
        [1000, 2000, 3000]
        """
        return [self.horizon * tenth // POINTS for tenth in range(1, POINTS + 1)]


@dataclass(frozen=True)
class Point:
    """Mean regret and its 95 % interval after a number of rounds."""

    round: int
    mean: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Result:
    """What is kept of a run."""

    engine: str
    curve: tuple[Point, ...]

    @property
    def final(self) -> Point:
        """The last point of the curve."""
        return self.curve[-1]


Results = Sequence[tuple[Run, Result]]
"""Runs with what came of them, in the order of the paper."""


def describe(run: Run, settings: Settings) -> dict[str, Any]:
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


def result_file(folder: Path, run: Run, settings: Settings) -> Path:
    """Where the result of a run is kept. Equal runs of two figures share one file."""
    text = json.dumps(describe(run, settings), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return folder / "runs" / f"{run.label}-{run.policy_name}-{digest}.json"


def load_result(folder: Path, run: Run, settings: Settings) -> Result | None:
    """The kept result, or None where there is none that can be trusted."""
    try:
        form = json.loads(result_file(folder, run, settings).read_text(encoding="utf-8"))
        if form["settings"] != describe(run, settings):
            return None
        curve = tuple(Point(**point) for point in form["curve"])
        if [point.round for point in curve] != settings.grid:
            return None
        for point in curve:
            for name in ("mean", "ci_low", "ci_high"):
                finite_number(name, getattr(point, name))
        return Result(engine=str(form["engine"]), curve=curve)
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        # Not there, or cut off or changed by someone: it is run again.
        return None


def load_results(folder: Path, runs: Iterable[Run], settings: Settings) -> Results:
    """All kept results of these runs."""
    found = ((run, load_result(folder, run, settings)) for run in runs)
    return [(run, result) for run, result in found if result is not None]


def save_result(folder: Path, run: Run, settings: Settings, result: Result) -> None:
    """Keep a result; a file is either complete or not there."""
    form = {
        "settings": describe(run, settings),
        "engine": result.engine,
        "curve": [vars(point) for point in result.curve],
    }
    write_whole(result_file(folder, run, settings), json.dumps(form) + "\n")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and move it there, so that nobody ever sees half of it."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
            part.write(data)
        Path(part.name).chmod(0o666 & ~_umask())
        Path(part.name).replace(path)
    except OSError as error:
        raise StopwiseError(f"{path}: cannot be written ({error.strerror})") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def run_all(
    runs: Iterable[Run],
    folder: Path,
    settings: Settings,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[Run, Result, int, int], None] | None = None,
) -> None:
    """Run what is not kept yet.

    Args:
        progress: called with (replications done, replications in all) over all runs.
        finished: called after each run with (run, result, runs done, runs in all).
    """
    from stopwise.simulation.run import simulate

    todo: dict[Path, Run] = {}
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
        result = Result(
            engine=simulation.engine,
            curve=tuple(Point(p.round, p.mean, p.ci_low, p.ci_high) for p in simulation.curve),
        )
        save_result(folder, run, settings, result)
        done += 1
        if finished is not None:
            finished(run, result, done, total)
