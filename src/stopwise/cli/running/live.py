"""`stopwise live`: what is in a file of rounds, and repairing it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def command(
    action: Annotated[str, typer.Argument(help="**status** only reads; **repair** changes it.")],
    file: Annotated[Path, typer.Argument(help="A log of rounds, a SQLite store or a snapshot.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say what a file of live rounds holds and what is wrong with it, or repair it.

    A repair needs that no learner has the file open. Lines of a log that cannot be read are moved
    to **FILE.unreadable**; nothing is thrown away.

    **stopwise live status rounds.jsonl**
    """
    from stopwise.checks import one_of
    from stopwise.live.stores.inspecting import inspect, repair

    one_of("action", action, ("status", "repair"))
    done = repair(file) if action == "repair" else []
    status = inspect(file)
    if as_json:
        typer.echo(json.dumps({**asdict(status), "repaired": done}))
    else:
        for line in [*done, str(status)]:
            typer.echo(line)
    if status.problems and action == "status":
        raise typer.Exit(1)
