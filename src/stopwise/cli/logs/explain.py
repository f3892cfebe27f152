"""`stopwise explain`: what a per-item rule does, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from stopwise.policies.per_item.alone.rule import AloneRule
    from stopwise.policies.per_item.logistic.rule import LogisticRule
    from stopwise.policies.per_item.rule import Rule


def command(
    rule: Annotated[Path, typer.Argument(metavar="RULE", help="A file written by stopwise fit.")],
    most: Annotated[int, typer.Option(help="Lines to show, largest share of items first.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say when a rule stops and when it goes on, and for what share of items.

    For a rule of per-item-logistic: what makes it stop or go on, largest weights first.

    **stopwise explain rule.json**
    """
    from stopwise.cli.shared.output import plain_console, print_json
    from stopwise.logs.formatting import amount, counted, printable
    from stopwise.policies.per_item.alone.rule import AloneRule
    from stopwise.policies.per_item.any_rule import read_rule
    from stopwise.policies.per_item.rule import Rule

    found = read_rule(rule)
    if isinstance(found, AloneRule):
        form, lines, items = _alone(found, most)
    elif isinstance(found, Rule):
        form, lines, items = _table(found, most)
    else:
        form, lines, items = _weights(found, most)
    if as_json:
        print_json({"stages": list(found.stages), "rounds": items, **form})
        return
    console = plain_console()
    console.print(
        f"{rule}: {' > '.join(map(printable, found.stages))}; a mistake costs"
        f" {amount(found.costs.mistake_cost)}; from {counted(items, 'item')}",
    )
    console.print(lines)


def _table(rule: Rule, most: int) -> tuple[dict[str, Any], Any, int]:
    """A rule by a table: as JSON, as lines, and of how many items."""
    from dataclasses import asdict

    from stopwise.cli.logs.per_item import reason_table
    from stopwise.logs.items.why import reasons

    lines = tuple(reasons(rule, most=most))
    form = {
        "doubt_of_last_stage": rule.held.doubt,
        "trust": rule.held.trust,
        "reasons": [asdict(line) for line in lines],
    }
    return form, reason_table(lines), rule.counts.rounds


def _alone(rule: AloneRule, most: int) -> tuple[dict[str, Any], Any, int]:
    """A rule for stages that are called alone, the same."""
    from rich.text import Text

    from stopwise.logs.formatting import printable

    lines = [printable(line) for line in rule.reads[:most]]
    first = printable(rule.stages[rule.first])
    form = {"calls": "alone", "first": first, "reads": lines}
    return form, Text("\n".join([f"every item calls {first} first", *lines])), rule.rows


def _weights(rule: LogisticRule, most: int) -> tuple[dict[str, Any], Any, int]:
    """A rule by regressions, the same."""
    from dataclasses import asdict

    from rich.text import Text

    from stopwise.logs.formatting import printable
    from stopwise.policies.per_item.logistic.words import weights_in_words

    lines = weights_in_words(rule, most)
    form = {
        "doubt_of_last_stage": rule.doubt,
        "fitted_by": rule.fitted_by,
        "weights": [asdict(line) for line in lines],
    }
    text = "\n".join(printable(line.words) for line in lines)
    note = (
        "\nIn brackets: what it adds to the log-odds that the stage's answer loses; of a number,"
        " by one standard deviation."
    )
    return form, Text(text).append(note, style="dim"), rule.rows
