"""`stopwise simulate`: the regret of a policy on a problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stopwise.cli.shared.run_options import AsJsonOption, BackendOption, JobsOption, SchedulerOption

if TYPE_CHECKING:
    from stopwise.problem import Problem
    from stopwise.simulation.results import Simulation


def command(
    file: Annotated[Path, typer.Argument(metavar="PROBLEM.json", help="The problem.")],
    policy: Annotated[
        str, typer.Option(help="A name from `stopwise policies`, with settings after a colon.")
    ] = "uss-ts",
    horizon: Annotated[int, typer.Option(help="Rounds in a replication.")] = 10_000,
    replications: Annotated[int, typer.Option(help="Independent runs.")] = 500,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    stream: Annotated[
        str, typer.Option(help="'independent' draws, or 'round-robin' over the problem's rows.")
    ] = "independent",
    grid: Annotated[str, typer.Option(help="Rounds of the curve: 'linear' or 'log'.")] = "linear",
    engine: Annotated[
        str, typer.Option(help="'auto', 'fast', or 'reference' for the literal loop.")
    ] = "auto",
    jobs: JobsOption = -1,
    backend: BackendOption = "auto",
    scheduler: SchedulerOption = None,
    as_json: AsJsonOption = False,
) -> None:
    """Simulate a policy on PROBLEM.json and print its regret, stage shares and curve.

    Example: **stopwise simulate problem.json --policy uss-ts --horizon 10000 --replications 500**
    """
    from stopwise.cli.shared.output import print_json, progress_bar
    from stopwise.problem import Problem
    from stopwise.simulation.run import simulate
    from stopwise.storage import read_whole

    problem = Problem.from_json(read_whole(file))
    chosen: dict[str, Any] = {  # checked by `simulate`, which says what it takes
        "stream": stream, "grid": grid, "engine": engine, "backend": backend,
    }  # fmt: skip
    with progress_bar("replications", quiet=as_json) as progress:
        result = simulate(
            problem,
            policy,
            horizon=horizon,
            replications=replications,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            progress=progress,
            **chosen,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print(problem, result)


def _print(problem: Problem, result: Simulation) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from stopwise.cli.shared.output import text_plot

    console = Console(highlight=False)
    regret = result.regret
    console.print(
        f"{escape(result.policy)}: {result.replications} replications of {result.horizon} rounds,"
        f" {result.stream} stream, seed {result.seed} ({result.engine} engine)"
    )
    table = Table("regret", "95 % interval", "5 %", "median", "95 %", "99 %", box=None)
    one = result.replications == 1
    interval = "none of one run" if one else f"{regret.ci_low:.4g} to {regret.ci_high:.4g}"
    values = (regret.q05, regret.q50, regret.q95, regret.q99)
    table.add_row(
        f"{regret.mean:.4g}",
        interval,
        *(f"{value:.4g}" for value in values),
    )
    console.print(table)
    shares = Table("stage", "share of rounds", "gap a round", box=None)
    for i, name in enumerate(problem.stages):
        mark = " (optimal)" if i == result.optimal_stage else ""
        shares.add_row(
            escape(name) + mark, f"{result.stage_share[i]:.2%}", f"{problem.gaps[i]:.4f}"
        )
    console.print(shares)
    if not result.weak_dominance:
        console.print("weak dominance does not hold: disagreements do not reveal the optimal stage")
    console.print("\nmean regret over rounds")
    print(text_plot([p.round for p in result.curve], [p.mean for p in result.curve]))
