"""The plots of the report that show the verdict: stage ladder, mistake-cost strip, frontier."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stopwise.display import short
from stopwise.logs.formatting import amount, counted, round_share, share
from stopwise.logs.reporting.svg import (
    FAINT,
    GOOD,
    GREY,
    INK,
    OPEN,
    Drawing,
    nice_ticks,
    spread_labels,
    stage_colour,
)
from stopwise.logs.reporting.words import range_kind, range_text

if TYPE_CHECKING:
    from stopwise.logs.judging.findings import Findings
    from stopwise.logs.judging.verdict import Verdict


def ladders(verdict: Verdict) -> list[tuple[int, str]]:
    """One ladder for every stage but the last."""
    return [(i, ladder(verdict, i)) for i in range(len(verdict.stages) - 1)]


def ladder(verdict: Verdict, stage: int) -> str:
    """Cumulative cost against disagreement, seen from one stage, with the stop line.

    A deeper stage whose whole band lies below the line cannot be worth its price.
    """
    name = verdict.stages[stage]
    pairs = [pair for pair in verdict.pairs if pair.shallow == stage]
    spent = verdict.costs.cumulative
    mistake_cost = verdict.costs.mistake_cost
    width, height = 470.0, 300.0
    left, right, top, bottom = 66.0, 16.0, 18.0 + 16 * len(pairs), 48.0
    height += 8.0 * len(pairs)
    draw = Drawing(width, height, f"what deeper stages would have to fix, seen from {name}")
    x_low = spent[stage]
    x_high = spent[-1] if spent[-1] > x_low else x_low + 1
    x_high += 0.12 * (x_high - x_low)
    tallest = max(*(pair.may_differ_high for pair in pairs), 0.02)
    y_high = min(1.0, tallest * 1.12)

    def x(cost: float) -> float:
        return left + (cost - x_low) / (x_high - x_low) * (width - left - right)

    def y(value: float) -> float:
        return height - bottom - min(value, y_high) / y_high * (height - top - bottom)

    line_end = min(x_high, x_low + y_high * mistake_cost)
    reach = (line_end - x_low) / mistake_cost
    draw.path(
        [(x(x_low), y(0)), (x(line_end), y(reach)), (x(x_high), y(reach)), (x(x_high), y(0))],
        fill=GOOD,
        opacity=0.09,
    )
    _axes(draw, left, width - right, top, height - bottom)
    for tick in nice_ticks(0, y_high):
        draw.line(left, y(tick), width - right, y(tick), colour=FAINT)
        draw.text(left - 6, y(tick) + 4, round_share(tick), anchor="end", size=11, colour=GREY)
    for tick in nice_ticks(x_low, x_high, 4):
        draw.text(
            x(tick), height - bottom + 16, amount(tick), anchor="middle", size=11, colour=GREY
        )
    draw.text(
        (left + width - right) / 2, height - 10, "cost per item up to the deeper stage",
        anchor="middle", size=11, colour=GREY,
    )  # fmt: skip
    draw.text(
        14, (top + height - bottom) / 2, f"answers that differ from {short(name, 14)}",
        anchor="middle", size=11, colour=GREY, turn=-90,
    )  # fmt: skip
    draw.path([(x(x_low), y(0)), (x(line_end), y(reach))], colour=INK, width=1.6, dash="5 3")
    for pair in pairs:
        at = x(spent[pair.deep])
        colour = GOOD if pair.certain else OPEN
        deep = verdict.stages[pair.deep]
        title = (
            f"{name} and {deep}: differ on {share(pair.disagreement)} of"
            f" {counted(pair.seen, 'item')} (between {share(pair.low)} and {share(pair.high)});"
            f" worth its price only above {share(pair.threshold)}: {pair.verdict}"
        )
        draw.rect(
            at - 7, y(pair.may_differ_high), 14, y(pair.low) - y(pair.may_differ_high),
            fill=colour, opacity=0.35, title=title, round_=3,
        )  # fmt: skip
        draw.circle(at, y(pair.disagreement), 5, fill=colour, title=title)
        _name_above(draw, pairs.index(pair), short(deep), at, y(pair.may_differ_high), width)
    draw.circle(x(x_low), y(0), 5, fill=stage_colour(stage))
    middle = x(x_low + 0.62 * (line_end - x_low)), y(0.62 * reach)
    slope = math.degrees(math.atan2(y(reach) - y(0), x(line_end) - x(x_low)))
    draw.text(
        middle[0] - 4, middle[1] - 6, "worth its price above", anchor="middle", size=11,
        colour=GREY, turn=slope,
    )  # fmt: skip
    return str(draw)


def _name_above(draw: Drawing, row: int, name: str, at: float, band: float, width: float) -> None:
    """A stage's name in a row of its own above the plot, so that names never meet."""
    height = 14.0 + 16 * row
    draw.line(at, height + 4, at, band, colour=GREY, width=0.7)
    long = 7.6 * len(name)
    start = at - 4 - long if at > width / 2 else at + 4
    draw.rect(start - 1, height - 9, long + 2, 14, fill="#fff")
    draw.text(start + long / 2, height + 2, name, anchor="middle", size=12, bold=True)


def strip(analysis: Findings) -> str:
    """Which stage at which mistake cost, on a logarithmic scale; hatched where not certain."""
    verdict = analysis.verdict
    windows = analysis.mistake_cost_ranges
    now = verdict.costs.mistake_cost
    ends = [w.end for w in windows if math.isfinite(w.end) and w.end > 0]
    low = min([*ends, now]) / 5
    high = max([*ends, now]) * 5
    width, height, left, right = 960.0, 150.0, 12.0, 12.0
    draw = Drawing(width, height, "which stage is chosen at which mistake cost")
    draw.raw(
        '<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><rect width="3.2" height="7" fill="#fff"'
        ' fill-opacity="0.62"/></pattern></defs>'
    )

    def x(cost: float) -> float:
        at = (math.log(min(max(cost, low), high)) - math.log(low)) / math.log(high / low)
        return left + at * (width - left - right)

    top, tall = 44.0, 44.0
    for window in windows:
        start, end = x(window.start), x(window.end)
        title = (
            f"mistake cost {range_text(window)}: {verdict.stages[window.stage]},"
            f" {range_kind(window, verdict)}"
        )
        colour = stage_colour(window.stage)
        draw.rect(start, top, end - start, tall, fill=colour, title=title)
        sure = x(max(window.nothing_deeper_pays_below, window.start))
        if sure < end:
            draw.rect(sure, top, end - sure, tall, fill="url(#hatch)", title=title)
    for stage in dict.fromkeys(window.stage for window in windows):
        own = [window for window in windows if window.stage == stage]
        start, end = x(own[0].start), x(own[-1].end)
        room = int((end - start) / 7.5)
        if room >= 3:
            name = short(verdict.stages[stage], room)
            draw.rect(
                (start + end) / 2 - 4 - 3.7 * len(name), top + 11, 8 + 7.4 * len(name), 22,
                fill="#fff", opacity=0.86, round_=4,
            )  # fmt: skip
            draw.text((start + end) / 2, top + 27, name, anchor="middle", size=13, bold=True)
    shown = -1e9
    for end in ends:
        at = x(end)
        draw.line(at, top + tall, at, top + tall + 6)
        if at - shown > 54:
            draw.text(at, top + tall + 20, amount(end), anchor="middle", size=11, colour=GREY)
            shown = at
    draw.text(
        width / 2, height - 6, "what one wrong answer costs (logarithmic scale)",
        anchor="middle", size=11, colour=GREY,
    )  # fmt: skip
    at = x(now)
    draw.line(at, top - 12, at, top + tall + 4, colour=INK, width=2)
    anchor = "start" if at < 120 else "end" if at > width - 120 else "middle"
    draw.text(at, top - 18, f"now: {amount(now)}", anchor=anchor, size=12, bold=True)
    return str(draw)


def frontier(analysis: Findings) -> str:
    """Cost against true error rate, with the line on which all else is equal to the best stage."""
    truth, verdict = analysis.truth, analysis.verdict
    assert truth is not None
    spent = verdict.costs.cumulative
    width, height = 720.0, 320.0
    left, right, top, bottom = 60.0, 230.0, 16.0, 48.0
    draw = Drawing(width, height, "true error rate against cost")
    x_high = max(spent) * 1.08 or 1.0
    y_high = min(1.0, max(float(truth.error_rates.max()), 0.01) * 1.2)

    def x(cost: float) -> float:
        return left + cost / x_high * (width - left - right)

    def y(rate: float) -> float:
        return height - bottom - rate / y_high * (height - top - bottom)

    _axes(draw, left, width - right, top, height - bottom)
    for tick in nice_ticks(0, y_high):
        draw.line(left, y(tick), width - right, y(tick), colour=FAINT)
        draw.text(left - 6, y(tick) + 4, round_share(tick), anchor="end", size=11, colour=GREY)
    for tick in nice_ticks(0, x_high):
        draw.text(
            x(tick), height - bottom + 16, amount(tick), anchor="middle", size=11, colour=GREY
        )
    draw.text((left + width - right) / 2, height - 10, "cost per item", anchor="middle", size=11,
              colour=GREY)  # fmt: skip
    draw.text(14, (top + height - bottom) / 2, "true error rate", anchor="middle", size=11,
              colour=GREY, turn=-90)  # fmt: skip
    best = truth.optimal_stage
    total = float(truth.expected_total_costs[best])
    points = _equal_total(total, verdict.costs.mistake_cost, x_high, y_high)
    draw.path([(x(a), y(b)) for a, b in points], colour=INK, width=1.4, dash="5 3")
    labels = spread_labels([y(float(rate)) for rate in truth.error_rates], 15, top, height - bottom)
    for stage, name in enumerate(verdict.stages):
        rate = float(truth.error_rates[stage])
        at = x(spent[stage]), y(rate)
        title = f"{name}: error rate {share(rate)}, cost {amount(spent[stage])}"
        draw.circle(*at, 7 if stage == best else 5, fill=stage_colour(stage), title=title)
        mark = " (best)" if stage == best else ""
        mark += " (chosen)" if stage == verdict.recommended else ""
        draw.text(at[0] + 9, labels[stage] - 7, short(name, 24) + mark, size=12,
                  bold=stage == best)  # fmt: skip
    return str(draw)


def _equal_total(
    total: float, mistake_cost: float, x_high: float, y_high: float
) -> list[tuple[float, float]]:
    """The part of the line of equal total cost that lies inside the plot."""
    start = max(0.0, (total - y_high) * mistake_cost)
    end = min(x_high, total * mistake_cost)
    return [(cost, total - cost / mistake_cost) for cost in (start, end)] if end > start else []


def _axes(draw: Drawing, left: float, right: float, top: float, bottom: float) -> None:
    draw.line(left, bottom, right, bottom)
    draw.line(left, top, left, bottom)
