"""The options of every command that reads a log, in one place: `reads_log` adds them to one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from stopwise.checks import StopwiseError

if TYPE_CHECKING:
    from stopwise.logs.reading.databases.query import Query
    from stopwise.logs.settings import LogSettings

_LOG_FILE = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG",
        help="CSV (also .csv.gz), Parquet or JSON lines; several, or 'logs/*.parquet'; - for"
        " standard input; with --sql, a database.",
    ),
]


def _text(help: str) -> Any:
    return Annotated[str | None, typer.Option(help=help)]


# Options that stand before those of the command itself, and those that stand after them.
_FIRST: dict[str, Any] = {
    "stages": _text("Stages in order, cheapest first: vader,amazon,google."),
    "costs": _text("Each stage's own cost, for one item: 0.001,0.75,2.5."),
    "mistake_cost": Annotated[
        float | None, typer.Option(help="What one wrong answer costs, in the units of the costs.")
    ],
    "segment": _text("A column: one more verdict for each value."),
    "truth": _text("A column of right answers, only to score with."),
}
_AFTER: dict[str, Any] = {
    "settings": Annotated[
        Path | None,
        typer.Option(help="A TOML file with these settings; options given here win."),
    ],
    "item": _text("The column that names items."),
    "layout": _text("auto, wide (one column per stage) or long (one row per stage)."),
    "level": Annotated[
        float | None,
        typer.Option(help="Probability that everything called certain is true. [0.99]"),
    ],
    "max_labels": Annotated[
        int | None, typer.Option(help="Refuse a log with more different outputs than this. [2000]")
    ],
    "trailing_blanks": _text("Blanks at the end of a row: not-called (default) or abstained."),
    "features": _text("Columns known of an item before its first call: length,language."),
    "abstentions": _text(
        "A stage gives no answer: go-on (the next one answers), mistake or leave-out. [go-on]"
    ),
    "reading": _text(
        "What the first sentence is based on: auto, certain, weak-dominance, estimated or"
        " minimax. [auto]"
    ),
    "calls": _text(
        "cascade (a stage needs those before it) or alone (each can be called by itself, and"
        " costs what it costs alone); both are shown where this is not given."
    ),
    "sql": _text("A SELECT; LOG is then sqlite:///FILE, duckdb:///FILE or postgresql://..."),
    "example": Annotated[
        bool, typer.Option("--example", help="Use the example log that comes with Stopwise.")
    ],
}
_ALWAYS = {
    "stages", "costs", "mistake_cost",
    "settings", "item", "layout", "max_labels", "trailing_blanks", "calls", "example",
}  # fmt: skip


class ChosenLog(NamedTuple):
    """The log that a command was given, and the settings to read it with."""

    source: str | list[str] | Query
    settings: LogSettings
    example: bool


def reads_log(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that say which log it reads, and how.

    The command takes a `ChosenLog` as its first argument; on the command line the file and the
    options of every log stand in its place, with those named here besides.
    """
    shown = _ALWAYS.union(options)
    assert shown <= _FIRST.keys() | _AFTER.keys(), "an option that no log has"

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()

        def run(**given: Any) -> None:
            of_command = {parameter.name: given.pop(parameter.name) for parameter in own}
            command(_choose(**given), **of_command)

        parameters = [
            _parameter("log", _LOG_FILE),
            *(_parameter(name, kind) for name, kind in _FIRST.items() if name in shown),
            *(option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in own),
            *(_parameter(name, kind) for name, kind in _AFTER.items() if name in shown),
        ]
        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    default = False if name == "example" else None
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _choose(
    log: list[str] | None,
    example: bool,
    settings: Path | None,
    sql: str | None = None,
    **given: Any,
) -> ChosenLog:
    """The log to read and the settings for it; the example brings its own."""
    from stopwise.logs.reading.databases.query import Query
    from stopwise.logs.settings import LogSettings

    if example:
        if log:
            raise StopwiseError("give a log or --example, not both")
        from stopwise.logs.example import example_log, example_settings

        usual = example_settings()
        given = usual | {name: value for name, value in given.items() if value is not None}
        return ChosenLog(str(example_log()), LogSettings.of(settings, **given), example)
    if not log:
        raise StopwiseError("no log given; name a file, or try --example")
    source: str | list[str] | Query = log[0] if len(log) == 1 else log
    if sql is not None:
        if len(log) != 1:
            raise StopwiseError("sql: name one database, such as sqlite:///FILE")
        source = Query(log[0], sql)
    return ChosenLog(source, LogSettings.of(settings, **given), example)
