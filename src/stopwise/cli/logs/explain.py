"""`stopwise explain`: what a per-item rule does, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    rule: Annotated[Path, typer.Argument(metavar="RULE", help="A file written by stopwise fit.")],
    most: Annotated[int, typer.Option(help="Lines to show, largest share of items first.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say when a rule stops and when it goes on, and for what share of items.

    **stopwise explain rule.json**
    """
    from dataclasses import asdict

    from rich.console import Console

    from stopwise.cli.logs.per_item import reason_table
    from stopwise.cli.shared.output import print_json
    from stopwise.logs.formatting import amount
    from stopwise.logs.items.fitting import read_rule
    from stopwise.logs.items.why import reasons

    found = read_rule(rule)
    lines = tuple(reasons(found, most=most))
    held = found.held
    if as_json:
        print_json(
            {
                "stages": list(found.stages),
                "rounds": found.counts.rounds,
                "doubt_of_last_stage": held.doubt,
                "trust": held.trust,
                "reasons": [asdict(line) for line in lines],
            }
        )
        return
    console = Console(highlight=False)
    console.print(
        f"{rule}: {' > '.join(found.stages)}; a mistake costs"
        f" {amount(found.costs.mistake_cost)}; from {found.counts.rounds:,} items",
        markup=False,
    )
    console.print(reason_table(lines))
