"""A few signs of SVG: enough for plots that live inside one page and need nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

# Okabe and Ito's colours, which people with any colour vision can tell apart.
STAGE_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A7F00", "#5B5B5B",
)  # fmt: skip
INK, GREY, FAINT = "#1c2430", "#5d6875", "#e3e7ec"
GOOD, OPEN = "#009E73", "#E69F00"


def stage_colour(stage: int) -> str:
    """The colour of a stage, the same in every plot.

    >>> stage_colour(0) == stage_colour(8)
    True
    """
    return STAGE_COLOURS[stage % len(STAGE_COLOURS)]


class Drawing:
    """An SVG picture of a given size; coordinates are pixels from the upper left corner."""

    def __init__(self, width: float, height: float, label: str) -> None:
        """Start empty; `label` is what a screen reader says."""
        self.width, self.height, self.label = width, height, label
        self._parts: list[str] = []

    def __str__(self) -> str:
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img"'
            f' aria-label="{escape(self.label)}" style="max-width:{self.width:g}px">'
            + "".join(self._parts)
            + "</svg>"
        )

    def raw(self, part: str) -> None:
        """Add SVG as it is."""
        self._parts.append(part)

    def text(
        self,
        x: float,
        y: float,
        content: str,
        *,
        anchor: str = "start",
        size: float = 12,
        colour: str = INK,
        bold: bool = False,
        turn: float = 0,
    ) -> None:
        """Write text; `anchor` is start, middle or end."""
        turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}"'
            f' fill="{colour}"{weight}{turned}>{escape(content)}</text>'
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        colour: str = GREY,
        width: float = 1,
        dash: str = "",
    ) -> None:
        """Draw a straight line."""
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
            f' stroke="{colour}" stroke-width="{width:g}"{dashed}/>'
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        opacity: float = 1,
        title: str = "",
        round_: float = 0,
    ) -> None:
        """Draw a filled rectangle; `title` shows when one points at it."""
        inside = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}"'
            f' height="{max(height, 0):.1f}" rx="{round_:g}" fill="{fill}"'
            f' fill-opacity="{opacity:g}">{inside}</rect>'
        )

    def circle(self, x: float, y: float, radius: float, *, fill: str, title: str = "") -> None:
        """Draw a dot."""
        inside = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="#fff"'
            f' stroke-width="1.5">{inside}</circle>'
        )

    def path(
        self,
        points: Sequence[tuple[float, float]],
        *,
        colour: str = "none",
        width: float = 2,
        fill: str = "none",
        opacity: float = 1,
        dash: str = "",
    ) -> None:
        """Draw a line through points, or an area if filled."""
        if not points:
            return
        steps = " ".join(
            f"{'M' if at == 0 else 'L'}{x:.1f},{y:.1f}" for at, (x, y) in enumerate(points)
        )
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<path d="{steps}" fill="{fill}" stroke="{colour}" stroke-width="{width:g}"'
            f' opacity="{opacity:g}" stroke-linejoin="round"{dashed}/>'
        )


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends.

    >>> nice_ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> nice_ticks(0, 3.3)
    [0.0, 1.0, 2.0, 3.0]
    """
    if not high > low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / most))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= most:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(step * k, 12) for k in range(first, last + 1)]


def spread_labels(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move label positions apart so that none overlap, keeping their order.

    >>> spread_labels([10, 11, 50], 10, 0, 100)
    [10.0, 20.0, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda k: wanted[k])
    placed = [float(value) for value in wanted]
    previous = low - gap
    for k in order:
        placed[k] = previous = max(placed[k], previous + gap)
    limit = high
    for k in reversed(order):
        placed[k] = min(placed[k], limit)
        limit = placed[k] - gap
    return placed
