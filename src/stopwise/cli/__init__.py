"""The command line: one thin file per command.

A command's module holds one function, `command`, and imports what is heavy inside it.
"""

from __future__ import annotations

import importlib
import sys

import typer

from stopwise.checks import StopwiseError

# In the order in which `stopwise --help` shows them.
COMMANDS = {
    "reproduce": "stopwise.cli.reproduce",
    "analyze": "stopwise.cli.analyze",
    "replay": "stopwise.cli.replay",
    "audit": "stopwise.cli.audit",
    "simulate": "stopwise.cli.simulate",
    "problem": "stopwise.cli.problem",
    "policies": "stopwise.cli.policies",
}


def build_app() -> typer.Typer:
    """The command with all its sub-commands."""
    app = typer.Typer(
        name="stopwise",
        help="Learn where to stop in a cascade of models, tests or people, without a label.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, module in COMMANDS.items():
        app.command(name)(importlib.import_module(module).command)

    @app.callback(invoke_without_command=True)
    def version(
        show: bool = typer.Option(False, "--version", help="Print the version and stop."),
    ) -> None:
        if show:
            from stopwise import __version__

            typer.echo(__version__)
            raise typer.Exit

    return app


def main() -> None:
    """Run the command. What a user gave wrong is one line on stderr and status 2."""
    try:
        build_app()()
    except StopwiseError as error:
        typer.echo(f"stopwise: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("stopwise: interrupted", err=True)
        sys.exit(130)
