"""The pictures of the pages, as SVG made from numbers; names of stages are escaped.

Widths are percentages and heights are pixels, so that letters keep their size on a phone. No inline
style: the Content-Security-Policy forbids it. Colours come from classes of the style sheet, and
colour is never all that tells two things apart: every picture has labels beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from stopwise.display import short
from stopwise.service.views.cascade import PairLine
from stopwise.service.views.over_time import OverTime, TimeSlice

_MOST_SLICES = 96


def _svg(height: float, label: str, parts: Sequence[str], kind: str = "") -> str:
    """A picture as wide as there is room."""
    return (
        f'<svg width="100%" height="{height:.0f}" role="img" class="{kind}"'
        f' aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _with_axis(height: float, label: str, ticks: Sequence[str], parts: Sequence[str]) -> Markup:
    """A picture with the labels of its upright axis to the left, in a part of fixed width."""
    axis = f'<svg width="46" height="{height:.0f}" aria-hidden="true">{"".join(ticks)}</svg>'
    return Markup(f'<div class="chart">{axis}{_svg(height, label, parts)}</div>')


def _text(x: str, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _across(y: float) -> str:
    return f'<line x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}" class="grid"/>'


def _box(x: float, y: float, width: float, height: float, kind: str, tip: str) -> str:
    """A rectangle; x and width in percent, y and height in pixels."""
    return (
        f'<rect x="{x:.2f}%" y="{y:.1f}" width="{max(width, 0):.2f}%" height="{max(height, 0):.1f}"'
        f' class="{kind}"><title>{escape(tip)}</title></rect>'
    )


def _dot(x: float, y: float, size: float, kind: str, tip: str) -> str:
    return (
        f'<circle cx="{x:.2f}%" cy="{y:.1f}" r="{size:.1f}" class="{kind}">'
        f"<title>{escape(tip)}</title></circle>"
    )


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


def share_bar(shares: Sequence[float], stages: Sequence[str]) -> Markup:
    """One bar, cut into the shares of the stages.

    >>> "b 25 %" in share_bar([0.75, 0.25], ["a", "b"])
    True
    """
    parts, left = [], 0.0
    for at, (share, name) in enumerate(zip(shares, stages, strict=True)):
        parts.append(_box(left, 0, 100 * share, 14, stage_class(at), f"{name}: {share:.1%}"))
        left += 100 * share
    named = ", ".join(f"{n} {100 * s:.3g} %" for n, s in zip(stages, shares, strict=True))
    return Markup(_svg(14, f"Shares of the answers: {named}", parts, "bar"))


def shares_over_time(found: OverTime, stages: Sequence[str]) -> Markup:
    """Which stage gave the answers: a stacked bar for each slice of time with requests.

    >>> found = OverTime(3600, (TimeSlice(0.0, 4, (0.5, 0.5), 1.0, ()),))
    >>> "Which stage answered, by hour" in shares_over_time(found, ("a", "b"))
    True
    """
    slices = [one for one in found.slices if one.requests][-_MOST_SLICES:]
    top, height = 10.0, 150.0
    step = min(100.0 / max(len(slices), 1), 8.0)
    ticks, parts = [], []
    for share in (0.0, 0.5, 1.0):
        y = top + (1 - share) * height
        parts.append(_across(y))
        ticks.append(_text("40", y + 4, f"{100 * share:.0f} %", "end"))
    for at, one in enumerate(slices):
        y = top + height
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.at))
        for stage, share in enumerate(one.shares):
            y -= share * height
            tip = f"{when}: {stages[stage]} {share:.1%} of {one.requests} requests"
            parts.append(_box(at * step, y, step * 0.86, share * height, stage_class(stage), tip))
    parts += _ends(slices, found.seconds, top + height + 18, step * (len(slices) - 0.14))
    label = f"Which stage answered, by {found.word}: " + ", ".join(stages)
    return _with_axis(top + height + 26, label, ticks, parts)


def _ends(slices: Sequence[TimeSlice], seconds: int, y: float, right: float = 100.0) -> list[str]:
    """The times of the first and the last slice, below it."""
    if not slices:
        return []
    form = "%d %b %H:%M" if seconds >= 3600 else "%H:%M:%S"
    words = [time.strftime(form, time.gmtime(slices[at].at)) for at in (0, -1)]
    made = [_text("0", y, words[0] + " UTC", "start", "soft")]
    if len(slices) > 1 and right > 60:
        made.append(_text(f"{right:.2f}%", y, words[1], "end", "soft"))
    return made


def pair_intervals(pairs: Sequence[PairLine]) -> Markup:
    """Every pair's disagreement with its interval, against the threshold it has to stay below.

    >>> line = PairLine("a", "b", 10, 1, 0.1, 0.0, 0.3, 0.4, 0.4, "certain", None)
    >>> "threshold" in pair_intervals([line])
    True
    """
    row, top = 46.0, 0.0
    known = [p.high for p in pairs if p.high is not None]
    known += [min(p.threshold_low, 1.0) for p in pairs]
    most, ticks = _scale(max(known, default=0.0) * 1.08)

    def x(value: float) -> float:
        return 1.0 + 97.0 * min(max(value, 0.0), most) / most

    bottom = top + row * len(pairs) + 4
    parts = []
    for value in ticks:
        place = f"{x(value):.2f}%"
        parts.append(f'<line x1="{place}" y1="{top}" x2="{place}" y2="{bottom:.0f}" class="grid"/>')
        anchor = "start" if value == 0 else "end" if value == most else "middle"
        parts.append(_text(place, bottom + 16, f"{100 * value:.3g} %", anchor, "soft"))
    for at, pair in enumerate(pairs):
        y = top + row * at + 30
        names = f"{short(pair.shallow, 18)} and {short(pair.deep, 18)}"
        if pair.disagreement is None or pair.low is None:
            names += f": {pair.verdict}"
        parts.append(_text("1%", y - 14, names, "start", "over"))
        mark = f"{x(min(pair.threshold_low, most)):.2f}%"
        parts.append(
            f'<line x1="{mark}" y1="{y - 10:.0f}" x2="{mark}" y2="{y + 10:.0f}" class="threshold">'
            f"<title>threshold {pair.threshold_low:.3g}</title></line>"
        )
        if pair.threshold_low > most:
            parts.append(_text("96%", y + 4, "→", "end", "soft"))
        if pair.disagreement is None or pair.low is None or pair.high is None:
            continue
        kind = "sure" if pair.verdict == "certain" else "unsure"
        tip = (
            f"{pair.disagreed} of {pair.seen} differ: {pair.disagreement:.2%},"
            f" {pair.low:.2%} to {pair.high:.2%}; threshold {pair.threshold_low:.3g}:"
            f" {pair.verdict}"
        )
        parts.append(_box(x(pair.low), y - 3, x(pair.high) - x(pair.low), 6, kind, tip))
        parts.append(_dot(x(pair.disagreement), y, 5, kind, tip))
    label = "Disagreement of every pair of stages with its interval, against its threshold"
    return Markup(_svg(bottom + 24, label, parts))


def depth_law(law: Sequence[float], stages: Sequence[str]) -> Markup:
    """How likely each stage is to answer the next request if it were enforced.

    >>> "fast 90.0 %" in depth_law([0.9, 0.1], ["fast", "slow"])
    True
    """
    row = 40.0
    parts = []
    for at, (share, name) in enumerate(zip(law, stages, strict=True)):
        y = row * at
        tip = f"{name}: {share:.2%}"
        parts.append(_text("0", y + 13, f"{short(name, 30)} {100 * share:.1f} %"))
        parts.append(_box(0, y + 19, 100, 14, "ground", tip))
        parts.append(_box(0, y + 19, 100 * share, 14, stage_class(at), tip))
    label = "Probability of each depth: " + ", ".join(
        f"{name} {share:.1%}" for name, share in zip(stages, law, strict=True)
    )
    return Markup(_svg(row * len(stages), label, parts))


def disagreement_over_time(found: OverTime, pair: tuple[str, str]) -> Markup:
    """The disagreement of one pair over time; a dot grows with how often it was seen.

    >>> from stopwise.service.views.over_time import PairShare
    >>> one = TimeSlice(0.0, 40, (0.0, 1.0), 1.0, (PairShare(0.0, "a", "b", 0.1, 40),))
    >>> "a and b" in disagreement_over_time(OverTime(3600, (one,)), ("a", "b"))
    True
    """
    own = [
        share for one in found.slices for share in one.pairs if (share.shallow, share.deep) == pair
    ]
    top, height = 8.0, 90.0
    most, marked = _scale(max((one.disagreement for one in own), default=0.0) * 1.1)
    first, last = (own[0].at, own[-1].at) if own else (0.0, 1.0)
    ticks, parts = [], []
    for tick in marked:
        y = top + height * (1 - tick / most)
        parts.append(_across(y))
        ticks.append(_text("40", y + 4, f"{100 * tick:.3g} %", "end"))
    for one in own:
        x = 2 + 96 * ((one.at - first) / (last - first) if last > first else 0.0)
        y = top + height * (1 - one.disagreement / most)
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.at))
        tip = f"{when}: {one.disagreement:.1%} of {one.seen}"
        parts.append(_dot(x, y, 2.0 + min(6.0, one.seen**0.5 / 6), "stage-1", tip))
    parts += _ends(found.slices, found.seconds, top + height + 18)
    label = f"Disagreement of {pair[0]} and {pair[1]} by {found.word}"
    return _with_axis(top + height + 24, label, ticks, parts)
