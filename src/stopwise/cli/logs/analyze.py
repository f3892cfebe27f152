"""`stopwise analyze`: where should my cascade stop, and what can be known without labels?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stopwise.checks import StopwiseError
from stopwise.cli.shared.log_options import ChosenLog, reads_log
from stopwise.cli.shared.run_options import AsJsonOption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from stopwise.logs.analysis import Analysis


@reads_log("segment", "truth", "level", "features", "abstentions", "reading", "sql")
def command(
    log: ChosenLog,
    report: Annotated[
        Path | None, typer.Option(help="Write one self-contained HTML page with plots.")
    ] = None,
    as_json: AsJsonOption = False,
    per_item: Annotated[
        bool, typer.Option("--per-item", help="Say also what deciding per item would be worth.")
    ] = False,
    agree: Annotated[
        float | None,
        typer.Option(
            help="Instead of a verdict: answers equal to the last stage's on this share of items,"
            " such as 0.95, with the confidence of --level, at the least cost."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random choice of items that --agree sends to the last stage to check."
        ),
    ] = 0,
) -> None:
    """Say where a cascade should stop, from a log of its outputs, without labels.

    The log has a column for each stage (or rows of item, stage, output), as CSV, Parquet or JSON
    lines. Costs are each stage's own; or the log has them in columns named **NAME:cost**. A blank
    output is an abstention. The mistake cost is what one wrong answer costs you, in the same units.

    Try it at once:

    **stopwise analyze --example --report report.html**

    Three services, with their prices for one text, where a wrong answer costs 10 cents:

    **stopwise analyze log.csv --stages vader,amazon,google --costs 0,0.0001,0.00025
    --mistake-cost 0.10**

    Costs measured in the log, a verdict for each language, scored against the truth:

    **stopwise analyze log.parquet --stages small,large --mistake-cost 1 --segment language --truth
    label**

    Services or language models, each of which can be called by itself:

    **stopwise analyze log.csv --stages small,large --costs 1,20 --mistake-cost 100 --calls alone**

    Evidence counted elsewhere (SQL, Dask) and saved as JSON is analysed the same way:

    **stopwise analyze evidence.json --stages a,b --costs 1,3**

    Equal to the last stage on 95 % of the items, with 95 % confidence, for less:

    **stopwise analyze log.csv --stages small,large --costs 1,20 --agree 0.95 --level 0.95**
    """
    from stopwise.cli.shared.output import print_json, progress_bar
    from stopwise.logs.reading.files import refuse_log_file
    from stopwise.storage import read_whole

    source, settings, _ = log
    if report is not None:
        refuse_log_file(source, report)
    if agree is not None:
        if per_item or report is not None:
            raise StopwiseError(
                "agree: a promise has no --report and no --per-item; ask for them in a run without"
                " --agree"
            )
        from stopwise.cli.logs.promise import run

        run(source, settings, agree, seed=seed, as_json=as_json)
        return
    if isinstance(source, str) and source.endswith(".json") and not _is_snapshot(source):
        from stopwise.evidence import Evidence
        from stopwise.logs.analysis import analyze_evidence

        if per_item:
            raise StopwiseError("per item: this needs rows of a log, but evidence is only counts")
        evidence = Evidence.from_json(read_whole(Path(source)))
        analysis = analyze_evidence(evidence, settings, name=str(source))
    else:
        from stopwise.logs.analysis import analyze

        with progress_bar("counting", quiet=as_json):
            analysis = analyze(source, settings, per_item=per_item)
    if report is not None:
        analysis.write_report(report)
    if as_json:
        print_json(analysis.to_dict())
    else:
        _print(analysis, report)


def _is_snapshot(source: str) -> bool:
    """Whether a file is what a learner saved; a file that cannot be read is reported later."""
    from stopwise.logs.reading.live import find_stored

    return Path(source).is_file() and find_stored(source) is not None


def _print(analysis: Analysis, report: Path | None) -> None:
    from stopwise.cli.shared.output import plain_console

    console = plain_console()
    _print_verdict(console, analysis)
    console.print(_stage_table(analysis))
    _print_per_item(console, analysis)
    _print_certain(console, analysis)
    _print_mistake_costs(console, analysis)
    if analysis.segments:
        console.print("\nBy segment", style="bold")
        console.print(_segment_table(analysis))
    if analysis.warnings:
        console.print("\nWarnings", style="bold")
        console.print(_listed((w.code, w.message, "yellow") for w in analysis.warnings))
    if analysis.truth is not None:
        from stopwise.logs.reporting.words import truth_sentence

        scored = truth_sentence(analysis.verdict, analysis.readings, analysis.truth)
        console.print(f"\n{scored}", style="bold")
    if report is not None:
        console.print(f"\nreport written to {report}")


def _print_verdict(console: Console, analysis: Analysis) -> None:
    """The first sentence, what there is to say beside it, and what it all rests on."""
    from stopwise.logs.formatting import amount, counted, printable, round_share
    from stopwise.logs.reporting import headline

    verdict, readings = analysis.verdict, analysis.readings
    console.print(analysis.sentence, style="bold")
    for sentence in (
        headline.check_sentence(verdict, readings),
        headline.disagreement_sentence(verdict, readings),
        headline.missing_sentence(verdict),
        headline.shallower_sentence(verdict, readings),
        headline.alone_sentence(analysis.alone, verdict, readings)
        if analysis.alone is not None
        else None,
    ):
        if sentence is not None:
            console.print(sentence)
    measured = ", costs measured in the log" if verdict.cost_bounds.measured else ""
    console.print(
        f"\n{printable(analysis.name)}: {counted(analysis.rows, 'item')}, a mistake costs"
        f" {amount(verdict.costs.mistake_cost)}{measured}; everything called certain holds"
        f" with {round_share(verdict.level)}, together.\n",
        style="dim",
    )


def _print_per_item(console: Console, analysis: Analysis) -> None:
    """What deciding per item is worth, where that was asked for."""
    if analysis.per_item is not None:
        from stopwise.cli.logs.per_item import print_items

        print_items(console, analysis.per_item)
    if analysis.per_item_alone is not None:
        from stopwise.cli.logs.per_item import print_items_alone

        print_items_alone(console, analysis.per_item_alone)


def _print_certain(console: Console, analysis: Analysis) -> None:
    """Bounds of billed costs, and what is known of the pairs that matter."""
    from stopwise.logs.formatting import amount
    from stopwise.logs.reporting import words

    verdict = analysis.verdict
    bounds = verdict.cost_bounds
    if bounds.measured:
        for name, low, high in zip(verdict.stages, bounds.low, bounds.high, strict=True):
            console.print(f"cost of {name}: between {amount(low)} and {amount(high)}", style="dim")
    console.print("\nWhat is certain, and what is not knowable without labels", style="bold")
    shown = words.key_pairs(verdict, analysis.readings)
    colours = {"certain": "green", "too few rows": "cyan"}
    console.print(
        _listed(
            (
                pair.verdict,
                words.pair_sentence(verdict, pair),
                colours.get(pair.verdict, "yellow"),
            )
            for pair in shown
        )
    )
    if hidden := len(verdict.pairs) - len(shown):
        console.print(
            f"({hidden} more pairs, among other stages, in --json and --report)", style="dim"
        )


def _print_mistake_costs(console: Console, analysis: Analysis) -> None:
    """Where the verdict changes with the mistake cost, and with other costs."""
    from stopwise.logs.reporting import words

    console.print("\nMistake cost: where the paper's rule stops, and how sure", style="bold")
    console.print(_mistake_cost_table(analysis))
    if changes := words.key_changes(analysis):
        console.print(f"\n{words.WHAT_IF_TITLE}", style="bold")
        for change in changes:
            console.print("- " + words.what_if_sentence(analysis.verdict, change))


def _listed(entries: Iterable[tuple[str, str, str]]) -> Any:
    """Marks in a colour, and beside each what there is to say."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for reading, text, style in entries:
        table.add_row(Text(reading, style=style, no_wrap=True), Text(text))
    return table


def _stage_table(analysis: Analysis) -> Any:
    from rich.table import Table

    from stopwise.logs.formatting import amount, share

    verdict, truth, readings = analysis.verdict, analysis.truth, analysis.readings
    mistake_cost = verdict.costs.mistake_cost
    table = Table(box=None, pad_edge=False, header_style="dim")
    titles = ["stage", "cost", "alone" if verdict.alone else "up to it"]
    titles += ["est.\nerrors", "worst\ncase"]
    for title in [*titles, *(["errors", "regret"] if truth is not None else []), ""]:
        number = title not in ("stage", "")  # numbers are never cut; names and readings may be
        table.add_column(
            title, justify="right" if number else "left", overflow="fold", no_wrap=number
        )
    for at, name in enumerate(verdict.stages):
        row = [
            name,
            amount(verdict.cost_bounds.own[at]),
            amount(verdict.costs.cumulative[at]),
            share(float(readings.error_rates[at])) if readings.why_not is None else "-",
            amount(float(verdict.worst_case_regret[at]) * mistake_cost),
        ]
        if truth is not None:
            row.append(share(float(truth.error_rates[at])))
            row.append(amount(float(truth.regret_by_stage[at]) * mistake_cost))
        chosen_by = {
            readings.headline_reading: readings.headline_stage,
            "weak-dominance": readings.weak_dominance,
            "estimated": readings.estimated,
            "minimax": readings.minimax,
        }
        row.append(", ".join(reading for reading, stage in chosen_by.items() if stage == at))
        table.add_row(*row, style="bold" if at == readings.headline_stage else None)
    return table


def _mistake_cost_table(analysis: Analysis) -> Any:
    from rich.table import Table

    from stopwise.logs.reporting import words

    table = Table("mistake cost", "stage", "", box=None, pad_edge=False, header_style="dim")
    for here in analysis.mistake_cost_ranges:
        now = here.start <= analysis.verdict.costs.mistake_cost < here.end
        table.add_row(
            ("> " if now else "  ") + words.range_text(here),
            analysis.verdict.stages[here.stage],
            words.range_kind(here, analysis.verdict),
            style="bold" if now else None,
        )
    return table


def _segment_table(analysis: Analysis) -> Any:
    from rich.table import Table

    from stopwise.logs.reporting.stage_table import SEGMENT_TITLES, segment_rows

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in SEGMENT_TITLES:
        table.add_column(title, justify="right" if title in ("items", "saves per item") else "left")
    for row in segment_rows(analysis):
        table.add_row(*row)
    return table
