"""The per-item part of `stopwise analyze`, and the lines of a rule, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from stopwise.logs.items.alone import AloneItems
    from stopwise.logs.items.analysis import ItemAnalysis
    from stopwise.logs.items.why import Reason


def print_items(console: Console, found: ItemAnalysis) -> None:
    """Sentences first, then ways to stop side by side, then the rule in words."""
    from stopwise.logs.items import words

    first, *others = words.sentences(found)
    console.print(f"\n{first}", style="bold")
    for sentence in others:
        console.print(sentence)
    console.print(_ways(found))
    console.print("\nWhere it stops, and why", style="bold")
    console.print(reason_table(found.reasons))


def print_items_alone(console: Console, found: AloneItems) -> None:
    """The same for stages that are called alone."""
    first, *others = found.sentences()
    console.print(f"\n{first}", style="bold")
    for sentence in others:
        console.print(sentence)
    console.print(_ways(found))


def reason_table(reasons: tuple[Reason, ...]) -> Any:
    """The lines of a rule; those that stop are bold."""
    from rich.table import Table
    from rich.text import Text

    from stopwise.logs.items.words import why_lines

    table = Table(box=None, pad_edge=False)
    for title in ("items", "rule", "expected wrong"):
        table.add_column(title, justify="left" if title == "rule" else "right")
    for line, reason in zip(why_lines(reasons), reasons, strict=True):
        table.add_row(*(Text(cell, style="bold" if reason.stop else "") for cell in line))
    return table


def _ways(found: ItemAnalysis | AloneItems) -> Any:
    from rich.table import Table
    from rich.text import Text

    from stopwise.logs.formatting import amount, share

    table = Table(box=None, pad_edge=False)
    titles = ["way to stop", "calls cost", "answers changed", "per item saves"]
    if found.per_item.total is not None:
        titles += ["wrong answers", "cost in truth"]
    for title in titles:
        left = title == "way to stop"  # a long name takes several lines, and is not cut off
        table.add_column(title, justify="left" if left else "right", overflow="fold")
    for way in (found.per_item, *found.ways):
        saved = way.expected_total - found.per_item.expected_total
        cells = [way.name, amount(way.cost), share(way.changed)]
        cells.append("" if way is found.per_item else amount(saved))
        if way.error_rate is not None and way.total is not None:
            cells += [share(way.error_rate), amount(way.total)]
        table.add_row(
            *(Text(cell, style="bold" if way is found.per_item else "") for cell in cells)
        )
    return table
