"""`stopwise bench-policies`: the published comparison of policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stopwise.cli.shared.run_options import JobsOption


def command(
    out: Annotated[
        Path, typer.Option(help="Folder for POLICIES.md, its plots and results.")
    ] = Path("benchmarks"),
    instances: Annotated[
        int, typer.Option(help="Instances of each family; half of them are reported.")
    ] = 200,
    replications: Annotated[
        int, typer.Option(help="Runs of each policy on each instance.")
    ] = 2_000,
    growth_replications: Annotated[
        int, typer.Option(help="Runs of each policy where regret is shown against the horizon.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(help="Same seed, same tables.")] = 6,
    jobs: JobsOption = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Compare all learning policies with USS-TS and write POLICIES.md with its plots.

    Results are kept in OUT/policies/runs.jsonl, one line for each run: an interrupted benchmark
    goes on where it was. The full size takes an hour or two of two cores; try
    **--replications 100** first.
    """
    from stopwise.bench.plan import BenchPlan
    from stopwise.bench.report import scores_of, write_report
    from stopwise.bench.runs import run_all
    from stopwise.cli.shared.output import print_json, progress_bar

    plan = BenchPlan(
        instances=instances,
        replications=replications,
        growth_replications=growth_replications,
        seed=seed,
    )
    file = out / "policies" / "runs.jsonl"
    with progress_bar("growth in T", quiet=as_json) as progress:
        growth = run_all(plan.growth_tasks(), file, jobs=jobs, progress=progress)
    with progress_bar("families", quiet=as_json) as progress:
        families = run_all(plan.family_tasks(), file, jobs=jobs, progress=progress)
    page = write_report(out, plan, list(families.values()), list(growth.values()))
    if as_json:
        scores = scores_of(list(families.values()))
        print_json(
            {
                policy: {
                    family: {key: value for key, value in vars(score).items() if key != "ratios"}
                    for family, score in by_family.items()
                }
                for policy, by_family in scores.items()
            }
        )
    else:
        typer.echo(f"wrote {page}")
