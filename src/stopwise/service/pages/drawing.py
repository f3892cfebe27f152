"""The pictures of the pages, as SVG made from numbers; names of stages are escaped.

No inline style: the Content-Security-Policy forbids it. Colours come from classes of the style
sheet, and colour is never all that tells two things apart: every picture has labels beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from stopwise.service.views.cascade import HourShares, PairLine

WIDTH = 720


def _svg(height: int, label: str, parts: Sequence[str], width: int = WIDTH) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" width="100%" role="img"'
        f' aria-label="{escape(label)}" preserveAspectRatio="xMinYMin meet">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _box(x: float, y: float, width: float, height: float, kind: str, tip: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
        f' class="{kind}"><title>{escape(tip)}</title></rect>'
    )


def _short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _scale(most: float) -> tuple[float, list[float]]:
    """The end of an axis for shares, and its ticks at round numbers.

    >>> _scale(0.37)
    (0.4, [0.0, 0.1, 0.2, 0.3, 0.4])
    """
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
    step = next((step for step in steps if most <= 5 * step), 0.25)
    number = min(max(1, math.ceil(most / step)), round(1 / step))
    return round(number * step, 6), [round(at * step, 6) for at in range(number + 1)]


def stage_class(stage: int) -> str:
    """The class that gives a stage its colour; there are six colours, used in turn.

    >>> stage_class(0), stage_class(6)
    ('stage-1', 'stage-1')
    """
    return f"stage-{stage % 6 + 1}"


def shares_over_time(hours: Sequence[HourShares], stages: Sequence[str]) -> Markup:
    """Which stage gave the answers, hour by hour: a stacked bar for each hour with requests.

    >>> hours = [HourShares(0.0, 4, (0.5, 0.5), 1.0)]
    >>> "Which stage answered" in shares_over_time(hours, ("a", "b"))
    True
    """
    hours = [hour for hour in hours if hour.requests][-96:]
    left, top, height = 44.0, 10.0, 150.0
    step = min((WIDTH - left - 10) / max(len(hours), 1), 60.0)
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = top + (1 - share) * height
        parts += [
            _line(left, y, WIDTH - 10, y, "grid"),
            _text(left - 6, y + 4, f"{share:.0%}", "end"),
        ]
    for at, hour in enumerate(hours):
        y = top + height
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(hour.at))
        for stage, share in enumerate(hour.shares):
            y -= share * height
            tip = f"{when}: {stages[stage]} {share:.1%} of {hour.requests} requests"
            parts.append(
                _box(left + at * step, y, step * 0.86, share * height, stage_class(stage), tip)
            )
    if hours:
        ends = [(0, hours[0])] if len(hours) == 1 else [(0, hours[0]), (len(hours) - 1, hours[-1])]
        for at, hour in ends:
            x = left + at * step
            when = time.strftime("%d %b %H:00", time.gmtime(hour.at))
            parts.append(
                _text(x, top + height + 18, when, "start" if at == 0 else "middle", "soft")
            )
    label = "Which stage answered, by hour: " + ", ".join(stages)
    return _svg(int(top + height + 26), label, parts)


def pair_intervals(pairs: Sequence[PairLine]) -> Markup:
    """Every pair's disagreement with its interval, against the threshold it has to stay below.

    >>> line = PairLine("a", "b", 10, 1, 0.1, 0.0, 0.3, 0.4, "certain", None)
    >>> "threshold" in pair_intervals([line])
    True
    """
    left, row, top = 230.0, 30.0, 8.0
    known = [p.high for p in pairs if p.high is not None] + [min(p.threshold, 1.0) for p in pairs]
    most, ticks = _scale(max(known, default=0.0) * 1.08)
    wide = WIDTH - left - 24

    def x(value: float) -> float:
        return left + wide * min(max(value, 0.0), most) / most

    bottom = top + row * len(pairs)
    parts = []
    for value in ticks:
        parts.append(_line(x(value), top, x(value), bottom, "grid"))
        parts.append(_text(x(value), bottom + 16, f"{100 * value:.3g} %", "middle", "soft"))
    for at, pair in enumerate(pairs):
        y = top + row * at + row / 2
        parts.append(
            _text(left - 10, y + 4, f"{_short(pair.shallow)} and {_short(pair.deep)}", "end")
        )
        beyond = pair.threshold > most
        mark = x(min(pair.threshold, most))
        tip = f"threshold {pair.threshold:.3g}"
        parts.append(_box(mark - 1.5, y - 11, 3, 22, "threshold", tip))
        if beyond:
            parts.append(_text(mark - 6, y - 2, "→", "end", "soft"))
        if pair.disagreement is None or pair.low is None or pair.high is None:
            parts.append(_text(left + 6, y + 4, "not compared yet", "start", "soft"))
            continue
        kind = "sure" if pair.verdict == "certain" else "unsure"
        tip = (
            f"{pair.disagreed} of {pair.seen} differ: {pair.disagreement:.2%},"
            f" {pair.low:.2%} to {pair.high:.2%}; threshold {pair.threshold:.3g}: {pair.verdict}"
        )
        parts.append(_box(x(pair.low), y - 3, x(pair.high) - x(pair.low), 6, kind, tip))
        parts.append(
            f'<circle cx="{x(pair.disagreement):.1f}" cy="{y:.1f}" r="5" class="{kind}">'
            f"<title>{escape(tip)}</title></circle>"
        )
    label = "Disagreement of every pair of stages with its interval, against its threshold"
    return _svg(int(bottom + 24), label, parts)


def depth_law(law: Sequence[float], stages: Sequence[str]) -> Markup:
    """How likely each stage is to answer the next request if it were enforced.

    >>> "fast" in depth_law([0.9, 0.1], ["fast", "slow"])
    True
    """
    left, row, top = 150.0, 30.0, 4.0
    parts = []
    for at, (share, name) in enumerate(zip(law, stages, strict=True)):
        y = top + row * at
        parts.append(_text(left - 10, y + 19, _short(name), "end"))
        length = (WIDTH - left - 80) * share
        parts.append(_box(left, y + 5, length, row - 10, stage_class(at), f"{name}: {share:.2%}"))
        parts.append(_text(left + length + 6, y + 19, f"{share:.1%}"))
    label = "Probability of each depth: " + ", ".join(
        f"{name} {share:.1%}" for name, share in zip(stages, law, strict=True)
    )
    return _svg(int(top + row * len(stages) + 4), label, parts)


def disagreement_over_time(
    points: Sequence[tuple[float, str, str, float, int]], pair: tuple[str, str]
) -> Markup:
    """The disagreement of one pair hour by hour; a dot grows with how often it was seen.

    >>> "a and b" in disagreement_over_time([(0.0, "a", "b", 0.1, 40)], ("a", "b"))
    True
    """
    own = [(at, share, seen) for at, i, j, share, seen in points if (i, j) == pair]
    left, top, height = 44.0, 8.0, 90.0
    most, ticks = _scale(max((share for _, share, _ in own), default=0.0) * 1.1)
    first, last = (own[0][0], own[-1][0]) if own else (0.0, 1.0)
    parts = []
    for tick in ticks:
        y = top + height * (1 - tick / most)
        parts += [
            _line(left, y, WIDTH - 10, y, "grid"),
            _text(left - 6, y + 4, f"{100 * tick:.3g} %", "end"),
        ]
    for at, share, seen in own:
        x = (
            left
            + 8
            + (WIDTH - left - 30) * ((at - first) / (last - first) if last > first else 0.0)
        )
        y = top + height * (1 - share / most)
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
        size = 2.0 + min(6.0, seen**0.5 / 6)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" class="stage-1">'
            f"<title>{escape(f'{when}: {share:.1%} of {seen}')}</title></circle>"
        )
    return _svg(int(top + height + 12), f"Disagreement of {pair[0]} and {pair[1]} by hour", parts)
