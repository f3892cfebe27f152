"""`stopwise sweep`: problems x policies x horizons, into one table."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stopwise.cli.shared.run_options import AsJsonOption, BackendOption, JobsOption, SchedulerOption

if TYPE_CHECKING:
    import polars

    from stopwise.problem import Problem
    from stopwise.simulation.sweep_grid import Cell


def command(
    file: Annotated[Path, typer.Argument(metavar="GRID.toml", help="What to run.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results; usually GRID-sweep beside GRID.toml."),
    ] = None,
    jobs: JobsOption = -1,
    backend: BackendOption = "auto",
    scheduler: SchedulerOption = None,
    as_json: AsJsonOption = False,
) -> None:
    """Simulate every policy of GRID.toml on every problem at every horizon; write Parquet.

    GRID.toml holds `problems` (JSON files, patterns such as `"problems/*.json"`, or instances of
    the paper such as `"paper/pima-2"`), `policies`, `horizons` and, if wanted, `seeds` ([0]),
    `replications` (500), `stream` ("independent") and `engine` ("auto").

    Every finished cell is kept at once. Stop it when you like and run the same command again: it
    goes on where it was.

    Example: **stopwise sweep grid.toml --out results**
    """
    from stopwise.cli.shared.output import print_json, progress_bar
    from stopwise.simulation.sweep import cells_done, read_sweep, run_sweep
    from stopwise.storage import read_whole

    grid = read_sweep(read_whole(file), file.parent, _of_the_paper)
    folder = out if out is not None else file.with_name(f"{file.stem}-sweep")
    chosen: Any = backend  # checked by `run_sweep`
    number, before = len(grid.cells), cells_done(grid, folder)
    start = time.monotonic()

    def say(cell: Cell, done: int, total: int) -> None:
        left = (time.monotonic() - start) / max(done - before, 1) * (total - done)
        print(
            f"stopwise: {done} of {total}: {cell.problem}, {cell.policy}, {cell.horizon} rounds;"
            f" about {left:.0f} s left",
            file=sys.stderr,
        )

    # Where there is no terminal for a bar, a line for every cell.
    lines = not as_json and not sys.stderr.isatty()
    try:
        with progress_bar("replications", quiet=as_json) as progress:
            result = run_sweep(
                grid, folder, jobs=jobs, backend=chosen, scheduler=scheduler,
                progress=progress, finished=say if lines else None,
            )  # fmt: skip
    except KeyboardInterrupt:
        done = cells_done(grid, folder)
        typer.echo(
            f"stopwise: {done} of {number} cells are in {folder}; run the same command to go on",
            err=True,
        )
        raise
    summary = {"table": str(result.path), "cells": number, "run": number - before, "kept": before}
    if as_json:
        print_json(summary)
    else:
        _print(summary, result.to_frame())


def _of_the_paper(name: str) -> Problem | None:
    """`paper/pima-2`, or with its source: `paper/pima-2/retrained`."""
    if not name.startswith("paper/"):
        return None
    from stopwise.checks import fail
    from stopwise.paper import problem

    instance, _, source = name.removeprefix("paper/").partition("/")
    dataset, _, number = instance.rpartition("-")
    if not number.isdigit():
        raise fail("problems", name, 'an instance such as "paper/pima-2"')
    chosen: Any = source or "calibrated"
    return problem(dataset, int(number), chosen)


def _print(summary: dict[str, Any], frame: polars.DataFrame) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("problem", "policy", "horizon", "seed", "regret", "95 % interval", box=None)
    for row in frame.head(40).iter_rows(named=True):
        low, high = row["regret_ci_low"], row["regret_ci_high"]
        table.add_row(
            row["problem"], row["policy"], f"{row['horizon']}", f"{row['seed']}",
            f"{row['regret_mean']:.4g}",
            "-" if low is None else f"{low:.4g} to {high:.4g}",
        )  # fmt: skip
    console = Console(highlight=False)
    console.print(table)
    if len(frame) > 40:
        console.print(f"... and {len(frame) - 40} more")
    console.print(
        f"{summary['cells']} cells ({summary['kept']} were done before) in {summary['table']}",
        soft_wrap=True,
    )
