"""The options that commands share: how to run, and how to speak to scripts."""

from __future__ import annotations

from typing import Annotated

import typer

JobsOption = Annotated[int, typer.Option(help="Workers; -1 for one for every core.")]
BackendOption = Annotated[
    str, typer.Option(help="'auto', 'threads', 'processes', or 'dask' for a cluster.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Dask scheduler, such as tcp://127.0.0.1:8786."),
]
AsJsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
