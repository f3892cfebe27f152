"""How results show themselves: tables for notebooks, data frames, axes to draw on.

Used by every room whose results have `_repr_html_`, `to_frame` or `plot`. Nothing here knows what
it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from stopwise.checks import fail
from stopwise.lazy import load

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442")
"""Colours that colour-blind readers can tell apart (Okabe and Ito)."""


def short(name: str, most: int = 20) -> str:
    """A name cut to fit.

    >>> short("a" * 30, 5)
    'aaaa…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", note: str = ""
) -> str:
    """A small table for a notebook; the first column holds names, the others numbers.

    >>> html_table(["stage", "share"], [["fast & cheap", 0.5]])[-60:]
    'fast &amp; cheap</td><td>0.5</td></tr></tbody></table></div>'
    """
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    above = f"<p><b>{escape(title)}</b></p>" if title else ""
    below = f"<p>{escape(note)}</p>" if note else ""
    return (
        f'<div class="stopwise">{above}{below}<table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _shown(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def frame(records: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
    """A polars frame of records; polars comes with the extra `stopwise[logs]`.

    >>> frame([{"stage": "fast", "share": 0.5}]).columns
    ['stage', 'share']
    """
    made: polars.DataFrame = load("to_frame", "polars").DataFrame(records)
    return made


def new_axes(ax: Axes | None = None, *, width: float = 6.4, height: float = 3.6) -> Axes:
    """The axes to draw on: those given, or new ones; matplotlib comes with `stopwise[paper]`.

    >>> import matplotlib; matplotlib.use("agg")
    >>> new_axes().get_title()
    ''
    """
    if ax is not None:
        if not hasattr(ax, "plot"):
            raise fail("ax", ax, "matplotlib axes to draw on, or None for new ones")
        return ax
    pyplot = load("plot", "matplotlib.pyplot")
    figure: Figure = pyplot.figure(figsize=(width, height), layout="constrained")
    fresh = figure.add_subplot()
    fresh.set_prop_cycle(color=COLOURS)
    return fresh
