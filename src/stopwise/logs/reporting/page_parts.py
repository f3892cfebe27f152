"""Pieces of HTML that the report is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def section(title: str, body: str) -> str:
    """A box with a title."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def with_code(text: str) -> str:
    """Text in which `backquotes` mark code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if at % 2 else p for at, p in enumerate(parts))


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    bold: Sequence[bool] = (),
    colours: Sequence[str] = (),
) -> str:
    """A table; bold rows and coloured dots where asked for."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = []
    for at, row in enumerate(rows):
        cells = [f"<td>{escape(cell)}</td>" for cell in row]
        if colours:
            dot = f'<i class="dot" style="background:{colours[at]}"></i>'
            cells[0] = f"<td>{dot}{escape(row[0])}</td>"
        mark = ' class="now"' if bold and bold[at] else ""
        body.append(f"<tr{mark}>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
