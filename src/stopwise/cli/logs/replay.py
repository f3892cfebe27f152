"""`stopwise replay`: a policy over a log as if live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from stopwise.checks import one_of
from stopwise.cli.shared.log_options import ChosenLog, reads_log
from stopwise.cli.shared.run_options import AsJsonOption, JobsOption
from stopwise.policies.registry import DEFAULT_POLICY

if TYPE_CHECKING:
    from stopwise.logs.replaying.replay import Replay


@reads_log("truth", "abstentions", "features", "sql")
def command(
    log: ChosenLog,
    policy: Annotated[
        str, typer.Option(help="A name from `stopwise policies`, with settings after a colon.")
    ] = DEFAULT_POLICY,
    order: Annotated[
        str,
        typer.Option(
            help="'log': rows as they stand; 'shuffled': a new order in every replication."
        ),
    ] = "log",
    replications: Annotated[int, typer.Option(help="Independent runs.")] = 20,
    rounds: Annotated[int | None, typer.Option(help="Rows in a run. [all]")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    jobs: JobsOption = -1,
    as_json: AsJsonOption = False,
) -> None:
    """Run a policy over a log as if live: what would it have cost, which answers would differ?

    In each round the policy sees only the stages that it calls. Beside it stand always-first,
    always-last, the best fixed stage in hindsight, going on until two stages in a row agree, and
    random stopping at equal cost. With --truth also errors and regret.

    With --calls alone, a round calls the policy's stage by itself, and all stages in full runs.

    **stopwise replay --example --truth truth**

    **stopwise replay log.csv --stages vader,amazon,google --costs 0,0.0001,0.00025 --mistake-cost
    0.1 --policy uss-ucb --order shuffled --replications 50**
    """
    from stopwise.cli.shared.output import print_json, progress_bar
    from stopwise.logs.replaying.replay import replay
    from stopwise.simulation.replay_engine import Order

    with progress_bar("replications", quiet=as_json) as progress:
        result = replay(
            log.source,
            policy,
            log.settings,
            order=one_of("order", order, get_args(Order)),
            replications=replications,
            rounds=rounds,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        mistake_cost = log.settings.mistake_cost
        _print(result, 1.0 if mistake_cost is None else mistake_cost)


def _print(result: Replay, mistake_cost: float) -> None:
    from stopwise.cli.shared.output import plain_console
    from stopwise.logs.formatting import amount, counted

    console = plain_console()
    order = "in the order of the log" if result.order == "log" else "shuffled"
    console.print(
        f"{result.policy} over {counted(result.rounds, 'item')}, {order},"
        f" {counted(result.replications, 'replication')}, seed {result.seed}",
    )
    for note in result.notes:
        console.print(f"Note: {note}", style="yellow")
    if result.left_out:
        rows = counted(result.left_out, "row")
        console.print(f"left out: {rows} on which some stage was not called")
    console.print(
        "cost: what one item costs on average; differs: share of answers that are not those of the"
        " last stage\n",
        style="dim",
    )
    console.print(_table(result, mistake_cost))
    if result.optimal_stage is not None:
        best = result.stages[result.optimal_stage]
        console.print(
            f"regret: how much more one item costs than at {best}, the best fixed stage in"
            f" hindsight, with {amount(mistake_cost)} for a mistake; no answer counts as a mistake",
            style="dim",
        )
    console.print("\nwhere it stopped, over the rounds")
    for name, line in _lines(result):
        console.print(f"  {line}  {name}")


def _table(result: Replay, mistake_cost: float) -> Any:
    from rich.table import Table

    from stopwise.logs.formatting import amount, share

    table = Table(box=None, pad_edge=False, header_style="dim")
    with_truth = result.optimal_stage is not None
    titles = ["", "cost", "differs", "no answer"]
    titles += [*(["errors", "regret"] if with_truth else []), "stops at"]
    for title in titles:
        left = title in ("", "stops at")
        table.add_column(title, justify="left" if left else "right", overflow="fold")
    for at, outcome in enumerate(result.outcomes):
        row = [outcome.name, amount(outcome.cost), share(outcome.differs), share(outcome.no_answer)]
        if outcome.regret is not None and outcome.error_rate is not None:
            row += [share(outcome.error_rate), amount(round(outcome.regret * mistake_cost, 12))]
        shares = zip(result.stages, outcome.stage_share, strict=True)
        row.append(", ".join(f"{name} {share(value)}" for name, value in shares if value > 0))
        table.add_row(*row, style="bold" if at == 0 else None)
    return table


def _lines(result: Replay) -> list[tuple[str, str]]:
    """A line of blocks for every stage: its share in each part of the rounds."""
    blocks = " ▁▂▃▄▅▆▇█"
    lines = []
    for stage, name in enumerate(result.stages):
        shares = [share[stage] for _, share in result.over_time]
        cells = "".join(blocks[min(8, round(share * 8) or (share > 0))] for share in shares)
        lines.append((name, cells))
    return lines
