"""The plots of the report that show the evidence: disagreement by direction, change over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stopwise.display import short
from stopwise.logs.formatting import round_share, share
from stopwise.logs.reading.pairs import pair_indices
from stopwise.logs.reporting.svg import (
    FAINT,
    GREY,
    Drawing,
    nice_ticks,
    spread_labels,
    stage_colour,
)
from stopwise.logs.reporting.words import key_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwise.logs.judging.findings import Findings
    from stopwise.logs.reading.counting import PatternCounts

# A pair has the colour of its deeper stage, and a dash that tells its shallower one.
_DASHES = ("", "6 3", "2 3", "8 3 2 3")


def matrix(counts: PatternCounts) -> tuple[str, str]:
    """The disagreement of every two stages, and a sentence that says how to read it.

    With two labels a cell has a direction: how often the row says the one and the column the other.
    """
    names = counts.stages
    two = len(counts.labels) == 2
    labels = sorted(counts.labels)
    label = counts.labels.index(labels[-1])
    cell, left, top = 78.0, 150.0, 34.0
    size = len(names) * cell
    draw = Drawing(left + size + 10, top + size + 8, "disagreement of every two stages")
    for i, name in enumerate(names):
        draw.text(left - 8, top + (i + 0.5) * cell + 4, short(name), anchor="end", size=12)
        draw.text(left + (i + 0.5) * cell, top - 10, short(name, 11), anchor="middle", size=12)
        for j, other in enumerate(names):
            value = 0.0 if i == j else _met(counts, i, j, label if two else None)
            x, y = left + j * cell, top + i * cell
            if i == j:
                draw.rect(x + 1, y + 1, cell - 2, cell - 2, fill=FAINT, round_=4)
                continue
            words = (
                f"{name} says {labels[-1]!r} and {other} says {labels[0]!r}"
                if two
                else f"{name} and {other} differ"
            )
            strength = min(1.0, 0.12 + 2.2 * value)
            draw.rect(x + 1, y + 1, cell - 2, cell - 2, fill="#0072B2", opacity=strength,
                      title=f"{words} on {share(value)} of the items both answered",
                      round_=4)  # fmt: skip
            colour = "#fff" if strength > 0.62 else "#1c2430"
            draw.text(x + cell / 2, y + cell / 2 + 5, share(value), anchor="middle", size=13,
                      colour=colour, bold=True)  # fmt: skip
    reading = (
        f"Share of the items both answered on which the stage of the row says {labels[-1]!r} and"
        f" the stage of the column says {labels[0]!r}. A pair that differs in one direction only"
        " has one stage that is too quick, or too slow, to say so."
        if two
        else "Share of the items both answered on which the two stages differ; the most frequent"
        " switches, with their direction, are listed beside it."
    )
    return str(draw), reading


def _met(counts: PatternCounts, i: int, j: int, label: int | None) -> float:
    both = (counts.codes[:, i] >= 0) & (counts.codes[:, j] >= 0)
    differ = both & (counts.codes[:, i] != counts.codes[:, j])
    if label is not None:
        differ &= counts.codes[:, i] == label
    return float(counts.number[differ].sum() / max(counts.number[both].sum(), 1))


def frequent_switches(
    counts: PatternCounts, most: int = 8
) -> list[tuple[str, str, str, str, float]]:
    """(shallow, its label, deep, its label, share) of the most frequent disagreements."""
    found = []
    for i, j in pair_indices(len(counts.stages)):
        both = (counts.codes[:, i] >= 0) & (counts.codes[:, j] >= 0)
        differ = both & (counts.codes[:, i] != counts.codes[:, j])
        keys = counts.codes[differ, i] * len(counts.labels) + counts.codes[differ, j]
        unique, inverse = np.unique(keys, return_inverse=True)
        sums = np.bincount(inverse, weights=counts.number[differ])
        total = counts.number[both].sum()
        for key, number in zip(unique, sums, strict=True):
            a, b = divmod(int(key), len(counts.labels))
            found.append(
                (counts.stages[i], counts.labels[a], counts.stages[j], counts.labels[b],
                 float(number / total))
            )  # fmt: skip
    return sorted(found, key=lambda switch: -switch[-1])[:most]


def disagreement_over_time(analysis: Findings) -> str:
    """The disagreement in each part of the log, of the pairs that are worth a sentence."""
    names = analysis.verdict.stages
    pairs = [(pair.shallow, pair.deep) for pair in key_pairs(analysis.verdict, analysis.readings)]
    values = [part.disagreement for part in analysis.over_time]
    finite = [float(v[i, j]) for v in values for i, j in pairs if not math.isnan(v[i, j])]
    frame = _TimeFrame(analysis, min(1.0, max([*finite, 0.02]) * 1.15), "disagreement over the log")
    lines, ends = [], []
    for i, j in pairs:
        points = [
            (frame.x(k), frame.y(float(v[i, j])))
            for k, v in enumerate(values)
            if not math.isnan(v[i, j])
        ]
        lines.append(points)
        ends.append(points[-1][1] if points else frame.bottom)
        frame.draw.path(points, colour=stage_colour(j), width=2, dash=_DASHES[i % len(_DASHES)])
    places = spread_labels(ends, 14, frame.top + 4, frame.bottom)
    for at, (i, j) in enumerate(pairs):
        frame.draw.text(
            frame.right + 8, places[at] + 4, f"{short(names[i], 11)} / {short(names[j], 11)}",
            size=11, colour=stage_colour(j), bold=True,
        )  # fmt: skip
    return str(frame.draw)


def stage_share_over_time(analysis: Findings) -> str:
    """What USS-TS would do after each part of the log, having seen all up to there."""
    names = analysis.verdict.stages
    frame = _TimeFrame(analysis, 1.0, "stage share over the log")
    shares = [part.stage_share for part in analysis.over_time]
    floor = np.zeros(len(shares))
    middles: list[float] = []
    for stage in range(len(names)):
        ceiling = floor + np.array([float(s[stage]) for s in shares])
        upper = [(frame.x(k), frame.y(float(v))) for k, v in enumerate(ceiling)]
        lower = [(frame.x(k), frame.y(float(v))) for k, v in enumerate(floor)]
        frame.draw.path([*upper, *reversed(lower)], fill=stage_colour(stage), opacity=0.8)
        middles.append(frame.y(float((floor[-1] + ceiling[-1]) / 2)))
        floor = ceiling
    places = spread_labels([-m for m in middles], 14, -frame.bottom, -frame.top - 4)
    for stage, name in enumerate(names):
        frame.draw.text(
            frame.right + 8, -places[stage] + 4, short(name, 22),
            size=11, colour=stage_colour(stage), bold=True,
        )  # fmt: skip
    return str(frame.draw)


class _TimeFrame:
    """Axes over the rows of the log, with room for labels on the right."""

    def __init__(self, analysis: Findings, y_high: float, label: str) -> None:
        self.left, self.right, self.top, self.bottom = 50.0, 310.0, 12.0, 188.0
        self.draw = Drawing(480, 232, label)
        self._rows = [part.rows for part in analysis.over_time]
        self._y_high = y_high
        for tick in nice_ticks(0, y_high, 4):
            self.draw.line(self.left, self.y(tick), self.right, self.y(tick), colour=FAINT)
            self.draw.text(
                self.left - 6,
                self.y(tick) + 4,
                round_share(tick),
                anchor="end",
                size=11,
                colour=GREY,
            )
        self.draw.line(self.left, self.bottom, self.right, self.bottom)
        self._rows_axis(self._rows)

    def _rows_axis(self, rows: Sequence[int]) -> None:
        for tick in nice_ticks(0, rows[-1], 4):
            at = self.left + tick / rows[-1] * (self.right - self.left)
            self.draw.text(at, self.bottom + 16, _thousands(tick), anchor="middle", size=11,
                           colour=GREY)  # fmt: skip
        self.draw.text((self.left + self.right) / 2, self.bottom + 36, "rows of the log, in order",
                       anchor="middle", size=11, colour=GREY)  # fmt: skip

    def x(self, part: int) -> float:
        """The end of a part."""
        return self.left + self._rows[part] / self._rows[-1] * (self.right - self.left)

    def y(self, value: float) -> float:
        """The height of a share."""
        return self.bottom - min(value, self._y_high) / self._y_high * (self.bottom - self.top)


def _thousands(rows: float) -> str:
    for size, sign in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rows >= 10 * size or (rows >= size and rows % size == 0):
            return f"{rows / size:g}{sign}"
    return f"{rows:g}"
