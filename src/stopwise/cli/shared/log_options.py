"""The options that every command on a log shares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stopwise.checks import StopwiseError

if TYPE_CHECKING:
    from stopwise.logs.reading.databases import Query
    from stopwise.logs.settings import LogSettings

LogFileOption = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG",
        help="CSV (also .csv.gz), Parquet or JSON lines; several, or 'logs/*.parquet'; - for"
        " standard input; with --sql, a database.",
    ),
]
StagesOption = Annotated[
    str | None, typer.Option(help="Stages in order, cheapest first: vader,amazon,google.")
]
CostsOption = Annotated[
    str | None, typer.Option(help="Each stage's own cost, for one item: 0.001,0.75,2.5.")
]
MistakeCostOption = Annotated[
    float | None, typer.Option(help="What one wrong answer costs, in the units of the costs.")
]
SegmentOption = Annotated[
    str | None, typer.Option(help="A column: one more verdict for each value.")
]
TruthOption = Annotated[
    str | None, typer.Option(help="A column of right answers, only to score with.")
]
SettingsFileOption = Annotated[
    Path | None,
    typer.Option("--settings", help="A TOML file with these settings; options given here win."),
]
ItemOption = Annotated[str | None, typer.Option(help="The column that names items.")]
LayoutOption = Annotated[
    str | None, typer.Option(help="auto, wide (one column per stage) or long (one row per stage).")
]
LevelOption = Annotated[
    float | None, typer.Option(help="Probability that everything called certain is true. [0.99]")
]
MaxLabelsOption = Annotated[
    int | None, typer.Option(help="Refuse a log with more different outputs than this. [2000]")
]
TrailingBlanksOption = Annotated[
    str | None,
    typer.Option(help="Blanks at the end of a row: not-called (default) or abstained."),
]
AbstentionsOption = Annotated[
    str | None,
    typer.Option(
        "--abstentions",
        help="A stage gives no answer: go-on (the next one answers), mistake or leave-out. [go-on]",
    ),
]
CallsOption = Annotated[
    str | None,
    typer.Option(
        "--calls",
        help="cascade (a stage needs those before it) or alone (each can be called by itself, and"
        " costs what it costs alone); both are shown where this is not given.",
    ),
]
SqlOption = Annotated[
    str | None,
    typer.Option(
        "--sql", help="A SELECT; LOG is then sqlite:///FILE, duckdb:///FILE or postgresql://..."
    ),
]
FeaturesOption = Annotated[
    str | None,
    typer.Option(help="Columns known of an item before its first call: length,language."),
]
ExampleOption = Annotated[
    bool, typer.Option("--example", help="Use the example log that comes with Stopwise.")
]


def log_and_settings(
    log: list[str] | None, example: bool, file: Path | None, sql: str | None = None, **given: Any
) -> tuple[str | list[str] | Query, LogSettings]:
    """The log to read and the settings for it; the example brings its own."""
    from stopwise.logs.reading.databases import Query
    from stopwise.logs.settings import LogSettings

    if example:
        if log:
            raise StopwiseError("give a log or --example, not both")
        from stopwise.logs.example import example_log, example_settings

        usual = example_settings()
        given = usual | {name: value for name, value in given.items() if value is not None}
        return str(example_log()), LogSettings.of(file, **given)
    if not log:
        raise StopwiseError("no log given; name a file, or try --example")
    source: str | list[str] | Query = log[0] if len(log) == 1 else log
    if sql is not None:
        if len(log) != 1:
            raise StopwiseError("sql: name one database, such as sqlite:///FILE")
        source = Query(log[0], sql)
    return source, LogSettings.of(file, **given)
