"""A sweep: problems x policies x horizons x seeds, one row for each, kept as soon as it is known.

A folder holds the sweep: `grid.json` says which one it is, `cells/` has one small Parquet file for
every finished cell, and `sweep.parquet` has them all once the last is done. Every file appears
whole or not at all, so a sweep that was stopped, in whatever way, goes on where it was.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail, finite_number, names_settings, one_among
from stopwise.display import html_table, new_axes
from stopwise.lazy import load
from stopwise.simulation.parallel import Backend
from stopwise.simulation.run import simulate
from stopwise.simulation.sweep_grid import Cell, digest
from stopwise.simulation.sweep_grid import Sweep as Sweep
from stopwise.simulation.sweep_grid import read_sweep as read_sweep
from stopwise.storage import as_path, write_whole
from stopwise.version import __version__

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class SweepResult:
    """The table of a finished sweep: one row for every cell.

    Attributes:
        path: the Parquet file that holds it.

    >>> import stopwise as sw, tempfile
    >>> sweep = sw.Sweep({"pima 3": sw.paper.problem("pima", 3)}, ["fixed"], [10, 20])
    >>> result = sw.run_sweep(sweep, tempfile.mkdtemp())
    >>> result.to_frame()["horizon"].to_list()
    [10, 20]
    """

    path: Path

    def to_frame(self) -> polars.DataFrame:
        """All cells as a polars frame."""
        return load("to_frame", "polars").read_parquet(self.path)  # type: ignore[no-any-return]

    @names_settings
    def plot(self, problem: str | None = None, ax: Axes | None = None) -> Axes:
        """Mean regret against the horizon, one line for each policy, on matplotlib axes.

        Args:
            problem: which problem; may be left out where there is one. Seeds are averaged.
            ax: axes to draw on; new ones by default.
        """
        pl, table = load("plot", "polars"), self.to_frame()
        names = table["problem"].unique(maintain_order=True).to_list()
        if problem is None and len(names) == 1:
            problem = names[0]
        if problem is None or problem not in names:
            raise fail("problem", problem, one_among(problem, names))
        ax = new_axes(ax)
        chosen = table.filter(pl.col("problem") == problem)
        for (policy,), part in chosen.group_by("policy", maintain_order=True):
            means = part.group_by("horizon").agg(pl.col("regret_mean").mean()).sort("horizon")
            ax.plot(means["horizon"], means["regret_mean"], marker="o", label=str(policy))
        ax.set(xscale="log", xlabel="horizon (rounds)", ylabel="mean regret (mistakes)")
        ax.set_ylim(bottom=0)
        ax.set_title(problem)
        ax.legend(frameon=False)
        return ax

    def _repr_html_(self) -> str:
        columns = ["problem", "policy", "horizon", "seed", "regret_mean"]
        table = self.to_frame()
        rest = len(table) - 100
        return html_table(
            ["problem", "policy", "horizon", "seed", "mean regret"],
            table.select(columns).head(100).rows(),
            title=f"Sweep of {len(table)} simulations",
            note=f"{rest} more rows are in {self.path}." if rest > 0 else "",
        )


@names_settings
def run_sweep(
    grid: Sweep,
    out: str | Path,
    *,
    jobs: int = 1,
    backend: Backend = "auto",
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[Cell, int, int], None] | None = None,
) -> SweepResult:
    """Run what is not done yet and return all cells.

    Args:
        out: the folder of the sweep; refused if it holds another one.
        progress: called with (replications done, replications in all), over the whole sweep.
        finished: called with (cell, cells done, cells in all) after each cell.

    >>> import stopwise as sw, tempfile
    >>> sweep = sw.Sweep({"pima 3": sw.paper.problem("pima", 3)}, ["uss-ts", "uss-ucb"], [100])
    >>> result = run_sweep(sweep, tempfile.mkdtemp())
    >>> result.to_frame().select("policy", "horizon", "replications").rows()
    [('uss-ts', 100, 500), ('uss-ucb', 100, 500)]
    """
    if not isinstance(grid, Sweep):
        raise fail("grid", grid, "a Sweep, such as sw.Sweep(problems, policies, horizons)")
    out = as_path("out", out)
    polars = load("sweep: writing Parquet", "polars")
    _claim(grid, out)
    cells = grid.cells
    total = len(cells) * grid.replications
    for at, cell in enumerate(cells):
        path = _cell_path(out, at)
        if not path.exists():
            row = _run_cell(grid, cell, at, total, jobs, backend, scheduler, progress)
            write_whole(path, _parquet(polars.DataFrame([row])))
            if finished is not None:
                finished(cell, at + 1, len(cells))
        if progress is not None:
            progress((at + 1) * grid.replications, total)
    table = out / "sweep.parquet"
    frames = [polars.read_parquet(_cell_path(out, at)) for at in range(len(cells))]
    write_whole(table, _parquet(polars.concat(frames)))
    return SweepResult(table)


def cells_done(grid: Sweep, out: Path) -> int:
    """How many cells of the sweep are already in the folder."""
    return sum(_cell_path(out, at).exists() for at in range(len(grid.cells)))


def _cell_path(out: Path, at: int) -> Path:
    return out / "cells" / f"{at:06}.parquet"


def _claim(grid: Sweep, out: Path) -> None:
    """Make the folder this sweep's own, or refuse it if it is another's."""
    mark = out / "grid.json"
    wanted = json.dumps(grid.form(), indent=2)
    if mark.exists():
        if mark.read_text(encoding="utf-8") != wanted:
            raise StopwiseError(
                f"{out}: holds the results of another grid; give another folder, or remove this one"
            )
        for pattern in ("**/*.part", "**/.*.tmp"):  # what a killed run, of any version, left
            for rest in out.glob(pattern):
                rest.unlink()
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StopwiseError(f"{out}: is not empty and holds no sweep; give another folder")
    (out / "cells").mkdir(parents=True, exist_ok=True)
    write_whole(mark, wanted)


def _parquet(table: Any) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def _run_cell(
    grid: Sweep,
    cell: Cell,
    at: int,
    total: int,
    jobs: int,
    backend: Backend,
    scheduler: str | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Any]:
    problem = grid.problems[cell.problem]
    start = time.perf_counter()
    before = at * grid.replications
    result = simulate(
        problem,
        cell.policy,
        horizon=cell.horizon,
        replications=grid.replications,
        seed=cell.seed,
        stream=grid.stream,
        grid=[cell.horizon],
        engine=grid.engine,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        progress=None if progress is None else lambda done, _: progress(before + done, total),
    )
    regret = {
        f"regret_{key}": finite_number(key, value) if value == value else None  # nan is no value
        for key, value in vars(result.regret).items()
    }
    return {
        "problem": cell.problem,
        "problem_digest": digest(problem),
        "policy": result.policy,
        "horizon": cell.horizon,
        "seed": cell.seed,
        "replications": grid.replications,
        "stream": result.stream,
        "engine": result.engine,
        **regret,
        "stages": list(problem.stages),
        "stage_share": list(result.stage_share),
        "optimal_stage": result.optimal_stage,
        "weak_dominance": result.weak_dominance,
        "seconds": time.perf_counter() - start,
        "stopwise_version": __version__,
    }
