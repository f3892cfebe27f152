"""The command line: one thin file per command.

A command's module holds one function, `command`, and imports what is heavy inside it.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, NoReturn

import typer

from stopwise.checks import StopwiseError

# In the order in which `stopwise --help` shows them.
COMMANDS = {
    "reproduce": "stopwise.cli.simulation.reproduce",
    "analyze": "stopwise.cli.logs.analyze",
    "fit": "stopwise.cli.logs.fit",
    "explain": "stopwise.cli.logs.explain",
    "replay": "stopwise.cli.logs.replay",
    "audit": "stopwise.cli.logs.audit",
    "live": "stopwise.cli.running.live",
    "simulate": "stopwise.cli.simulation.simulate",
    "sweep": "stopwise.cli.simulation.sweep",
    "problem": "stopwise.cli.simulation.problem",
    "policies": "stopwise.cli.simulation.policies",
    "bench-policies": "stopwise.cli.simulation.bench_policies",
    "serve": "stopwise.cli.running.serve",
    "keys": "stopwise.cli.running.keys",
}


def build_app() -> typer.Typer:
    """The command with all its sub-commands."""
    app = typer.Typer(
        name="stopwise",
        help="Learn where to stop in a cascade of models, tests or people, without a label.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, module in COMMANDS.items():
        app.command(name)(importlib.import_module(module).command)

    @app.callback(invoke_without_command=True)
    def start(
        context: typer.Context,
        version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    ) -> None:
        if version:
            from stopwise.version import __version__

            typer.echo(__version__)
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(2)

    return app


def main() -> None:
    """Run the command. What a user gave wrong is one line on stderr and status 2."""
    # By default polars reads many row groups of a Parquet file ahead: a third more memory than this
    # takes on 50 million rows, and no less time. As a library Stopwise leaves such settings alone.
    os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "1")
    # The base of all usage errors, whichever click this version of Typer brings along.
    usage_error: Any = typer.BadParameter.__bases__[0]
    try:
        # Not standalone: Typer's own way of telling a usage error takes a box of several lines.
        status = build_app()(standalone_mode=False) or 0
    except StopwiseError as error:
        _refuse(str(error))
    except usage_error as error:
        hint = f"; see {error.ctx.command_path} --help" if error.ctx is not None else ""
        _refuse(error.format_message().rstrip(".") + hint)
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    if status == 130:
        typer.echo("stopwise: interrupted", err=True)
    sys.exit(status)


def _refuse(message: str) -> NoReturn:
    from stopwise.logs.formatting import printable

    # One line whatever is in it, and no escape codes: names of files and columns may hold both.
    typer.echo(f"stopwise: {printable(' '.join(message.split()))}", err=True)
    sys.exit(2)
