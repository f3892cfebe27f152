"""`stopwise analyze --agree`: the last stage's answers on a share of items, at the least cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stopwise.logs.agreeing.promise import Promise
    from stopwise.logs.settings import LogSettings


def run(source: object, settings: LogSettings, agree: float, *, seed: int, as_json: bool) -> None:
    """Make the promise on a log and print it; how stages are called shows both ways if not said."""
    from dataclasses import replace

    from stopwise.cli.shared.output import print_json
    from stopwise.costs import CALLS
    from stopwise.logs.agreeing.promise import promise

    ways = CALLS if settings.calls is None else (settings.calls,)
    found = [promise(source, agree, replace(settings, calls=way), seed=seed) for way in ways]
    if not as_json:
        for result in found:
            _print(result, one_of_two=len(found) > 1)
    elif len(found) == 1:
        print_json(found[0].to_dict())
    else:
        print_json({result.calls: result.to_dict() for result in found})


def _print(result: Promise, *, one_of_two: bool) -> None:
    from rich.table import Table

    from stopwise.cli.shared.output import plain_console
    from stopwise.logs.formatting import amount, share

    console = plain_console()
    if one_of_two:  # else it was said how stages are called
        alone = result.calls == "alone"
        title = "each stage can be called alone" if alone else "a stage needs those before it"
        console.print(f"If {title}", style="bold")
    console.print(f"{result}.")
    table = Table("answered by", "items", "share", box=None, pad_edge=False, header_style="dim")
    for name, part in zip(result.stages, result.stage_shares, strict=True):
        table.add_row(name, f"{round(part * result.rows):,}", share(part))
    console.print(table)
    for sentence in result.sentences():
        console.print(sentence, style="dim")
    if result.left_out:
        console.print(
            f"{result.left_out:,} rows on which some stage was not called were left out;"
            f" the last stage for every item costs {amount(result.cost_of_last)}.",
            style="dim",
        )
    console.print()
