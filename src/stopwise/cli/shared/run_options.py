"""The options that commands share: how to run, and how to speak to scripts."""

from __future__ import annotations

from typing import Annotated

import typer

Jobs = Annotated[int, typer.Option(help="Workers; -1 for one for every core.")]
Backend = Annotated[
    str, typer.Option(help="'auto', 'threads', 'processes', or 'dask' for a cluster.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Dask scheduler, such as tcp://127.0.0.1:8786."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
