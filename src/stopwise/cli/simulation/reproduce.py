"""`stopwise reproduce`: every table and figure of the paper, beside the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopwise.cli.shared.run_options import AsJsonOption, JobsOption

if TYPE_CHECKING:
    from stopwise.paper.experiments import PaperRun
    from stopwise.paper.reproduce import Reproduction
    from stopwise.paper.running import RunResult


def command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for all files; made if needed.")],
    replications: Annotated[int, typer.Option(help="Independent runs of each curve.")] = 500,
    horizon: Annotated[int, typer.Option(help="Rounds in a replication.")] = 10_000,
    jobs: JobsOption = -1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Run only this figure: 1a, 1b, 1c, 2a, 2b, 2c. Repeatable."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same files.")] = 0,
    as_json: AsJsonOption = False,
) -> None:
    """Reproduce *Thompson Sampling for Unsupervised Sequential Selection* (ACML 2020).

    Writes report.html, tables/instances.csv, regret.csv and figures/ (SVG and PNG) into DIR. Each
    simulation is kept in DIR/runs as it finishes: interrupt at any time, and the same command goes
    on where it stopped.

    Example: **stopwise reproduce --out out/paper**

    A quick look: **stopwise reproduce --out out/look --only 1b --replications 20 --horizon 2000**
    """
    from stopwise.cli.shared.output import progress_bar
    from stopwise.paper.reproduce import reproduce
    from stopwise.paper.running import PaperSettings

    settings = PaperSettings(horizon=horizon, replications=replications, seed=seed)
    try:
        with progress_bar("simulating the paper", quiet=as_json) as progress:
            done = reproduce(
                out, settings, only=only or (), jobs=jobs, progress=progress,
                finished=None if progress is not None or as_json else _say,
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(
            f"stopwise: what is finished is kept in {out}; the same command goes on from there",
            err=True,
        )
        raise
    if as_json:
        _print_json(done)
    else:
        _print(done)


def _say(run: PaperRun, result: RunResult, done: int, total: int) -> None:
    """One line for each finished run, where there is no terminal to draw a bar on."""
    typer.echo(
        f"{done}/{total} {run.label} {run.policy_name}: regret {result.final.mean:.4g}", err=True
    )


def _print(done: Reproduction) -> None:
    """One line for each curve: ours from both sources, and the published regret."""
    from rich.console import Console
    from rich.table import Table

    from stopwise.paper.comparison import ComparedPoint

    curves: dict[tuple[str, str, str], dict[str, ComparedPoint]] = {}
    for row in done.compared:
        run = row.run
        what = f"{run.dataset} {run.instance}"
        if run.x is not None:
            what = f"{run.instance.removeprefix('optimal-').replace('-', ' ')} xi {run.x:+.2f}"
        curves.setdefault((run.figure, what, run.policy_name), {})[run.source] = row
    table = Table(box=None)
    for name in ("fig", "problem", "policy"):
        table.add_column(name, no_wrap=True)
    for name in ("published", "calibrated", "ratio", "retrained*"):
        table.add_column(name, justify="right", no_wrap=True)
    for key, by_source in curves.items():
        fitted = by_source.get("calibrated")
        other = by_source.get("retrained", by_source.get("as-printed"))
        published = next(iter(by_source.values())).published
        ratio = None if fitted is None else fitted.ratio
        cells = [
            "" if published is None else f"{published:.1f}",
            "" if fitted is None else f"{fitted.ours.mean:.1f}",
            "" if ratio is None else f"{ratio:.2f}",
            "" if other is None else f"{other.ours.mean:.1f}",
        ]
        table.add_row(*key, *cells)
    console = Console(highlight=False)
    console.print(f"Mean regret at the last round, ours and published ({len(curves)} curves)")
    console.print(table)
    console.print("* BSC: the generator as printed. Calibrated is a fit to the figure.")
    seconds = done.simulating_seconds + done.writing_seconds
    share = done.writing_seconds / seconds
    typer.echo(f"\n{seconds:.1f} s, of which {share:.0%} for tables, figures and the report")
    typer.echo(f"The report is {done.report}")


def _print_json(done: Reproduction) -> None:
    from stopwise.cli.shared.output import print_json

    print_json(
        {
            "report": str(done.report),
            "figures": list(done.figures),
            "curves": [
                {
                    "figure": row.run.figure,
                    "dataset": row.run.dataset,
                    "instance": row.run.instance,
                    "source": row.run.source,
                    "policy": row.run.policy_name,
                    "x": row.ours.round if row.run.x is None else row.run.x,
                    "mean": row.ours.mean,
                    "ci_low": row.ours.ci_low,
                    "ci_high": row.ours.ci_high,
                    "published": row.published,
                }
                for row in done.compared
            ],
        }
    )
