"""Everything `stopwise reproduce` does: run, then write tables, figures and the report.

Running only fills `runs/`; all other files are made from what is there, so they can be made again
at any time and come out the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stopwise.checks import StopwiseError
from stopwise.paper.comparison import ComparedPoint, compare
from stopwise.paper.experiments import PaperRun, choose_figures, list_runs, load_figures
from stopwise.paper.figures import draw, require_matplotlib
from stopwise.paper.report import build_report
from stopwise.paper.running import (
    PaperSettings,
    RunResult,
    load_results,
    run_all,
)
from stopwise.paper.tables import instance_rows, instances_csv, regret_csv, regret_rows
from stopwise.storage import write_whole


@dataclass(frozen=True)
class Reproduction:
    """Where the report is, the last point of every curve beside the published one, and the time."""

    report: Path
    compared: Sequence[ComparedPoint]
    figures: tuple[str, ...]
    simulating_seconds: float = 0.0
    writing_seconds: float = 0.0


def reproduce(
    folder: Path,
    settings: PaperSettings,
    *,
    only: Sequence[str] = (),
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[PaperRun, RunResult, int, int], None] | None = None,
) -> Reproduction:
    """Run the figures named in `only` (all if none is), then write what is known in `folder`.

    Figures that are not named are shown too if their results were kept with these settings.
    """
    choose_figures(only)
    require_matplotlib()
    _make_folder(folder)
    started = time.perf_counter()
    run_all(list_runs(only), folder, settings, jobs=jobs, progress=progress, finished=finished)
    simulated = time.perf_counter()
    done = write_outputs(folder, settings)
    return replace(
        done,
        simulating_seconds=simulated - started,
        writing_seconds=time.perf_counter() - simulated,
    )


def write_outputs(folder: Path, settings: PaperSettings) -> Reproduction:
    """Make all files from the kept results of these settings.

    A figure of other settings, left by an earlier call, is removed: what lies in the folder always
    belongs together.
    """
    rows = instance_rows()
    write_whole(folder / "tables" / "instances.csv", instances_csv(rows))
    results: list[tuple[PaperRun, RunResult]] = []
    drawings = {}
    for figure in load_figures().values():
        runs = list_runs([figure.id])
        found = load_results(folder, runs, settings)
        complete = len(found) == len(runs)
        files = draw(figure, found, settings) if complete else {}
        for kind in ("svg", "png"):
            path = folder / "figures" / f"{figure.id}.{kind}"
            if complete:
                write_whole(path, files[kind])
            else:
                path.unlink(missing_ok=True)
        if complete:
            results += found
            drawings[figure.id] = files["svg"]
            for run in runs:
                problem = run.environment.problem.to_json()
                write_whole(folder / "problems" / f"{run.label}.json", problem + "\n")
    write_whole(folder / "regret.csv", regret_csv(regret_rows(results)))
    report = folder / "report.html"
    write_whole(report, build_report(rows, results, drawings, settings))
    return Reproduction(report, compare(results), tuple(drawings))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise StopwiseError(f"{folder}: this is a file, but need a folder") from None
    except OSError as error:
        raise StopwiseError(f"{folder}: cannot be made ({error.strerror})") from None
