"""The per-item part of the HTML report: sentences, a table, the rule in words, the frontier."""

from __future__ import annotations

from html import escape

from stopwise.display import short
from stopwise.logs.formatting import amount, share
from stopwise.logs.items import words
from stopwise.logs.items.alone import AloneItems
from stopwise.logs.items.analysis import ItemAnalysis
from stopwise.logs.items.frontier import Frontier
from stopwise.logs.reporting.page_parts import section, table
from stopwise.logs.reporting.svg import GREY, Drawing, nice_ticks, stage_colour

_WIDTH, _HEIGHT = 640.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 30.0, 20.0, 50.0


def items_section(found: ItemAnalysis) -> str:
    """The section of the report."""
    first, *others = words.sentences(found)
    parts = [f"<p><strong>{escape(first)}</strong></p>"]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in others]
    parts.append(_ways(found))
    parts.append("<h3>Where it stops, and why</h3>")
    parts.append(
        table(
            ["share of items", "rule", "expected wrong"],
            words.why_lines(found.reasons),
            bold=[reason.stop for reason in found.reasons],
        )
    )
    parts.append("<h3>Cost against changed answers</h3>")
    parts.append(str(frontier_picture(found.frontier, found.stages)))
    parts.append(
        "<p>The line is the per-item rule at mistake costs from"
        f" {amount(found.frontier.mistake_costs[0])} to {amount(found.frontier.mistake_costs[-1])},"
        " on rows it has not seen; dots are single stages. Further down and to the left is"
        " better.</p>"
    )
    return section("Item by item", "".join(parts))


def items_alone_section(found: AloneItems) -> str:
    """The same for stages that are called alone: what it costs, and which stages items call."""
    reads = found.rule.reads
    first, *others, begins = (line for line in found.sentences() if line not in reads)
    parts = [f"<p><strong>{escape(first)}</strong></p>"]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in others]
    parts.append(_ways(found))
    parts.append("<h3>Which stages are called</h3>")
    parts.append(f"<p>{escape(begins)}</p>")
    parts.append(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in reads)}</ul>")
    return section("Item by item, stages called alone", "".join(parts))


def _ways(found: ItemAnalysis | AloneItems) -> str:
    own = found.per_item
    ways = (own, *found.ways)
    titles = ["way to stop", "calls cost", "answers changed", "per item saves"]
    titles.append("if every change is a mistake")
    truth = found.per_item.error_rate is not None
    if truth:
        titles += ["wrong answers", "cost in truth"]
    rows = []
    for way in ways:
        row = [
            way.name,
            f"{amount(way.cost)} ± {amount(way.cost_half_width)}",
            f"{share(way.changed)} ± {share(way.changed_half_width)}",
            "" if way is found.per_item else amount(way.expected_total - own.expected_total),
            amount(way.own_total),
        ]
        if truth and way.error_rate is not None and way.total is not None:
            row += [share(way.error_rate), amount(way.total)]
        rows.append(row)
    return table(titles, rows, bold=[at == 0 for at in range(len(ways))])


def frontier_picture(frontier: Frontier, stages: tuple[str, ...]) -> Drawing:
    """Cost per item to the right, share of changed answers upwards.

    >>> picture = frontier_picture(Frontier((1.0,), ((1.0, 0.2),), ((0.5, 0.3), (2.0, 0.0))),
    ...                            ("small", "large"))
    >>> str(picture).count("<circle")
    3
    """
    points = (*frontier.per_item, *frontier.stages)
    most_cost = max(*(cost for cost, _ in points), 1e-12) * 1.08
    most_changed = max(*(changed for _, changed in points), 1e-12) * 1.1
    drawing = Drawing(_WIDTH, _HEIGHT, "Cost per item against the share of changed answers")

    def place(cost: float, changed: float) -> tuple[float, float]:
        x = _LEFT + cost / most_cost * (_WIDTH - _LEFT - _RIGHT)
        return x, _HEIGHT - _BOTTOM - changed / most_changed * (_HEIGHT - _TOP - _BOTTOM)

    floor = _HEIGHT - _BOTTOM
    for tick in nice_ticks(0, most_changed):
        _, y = place(0, tick)
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y, colour="#eee")
        drawing.text(_LEFT - 8, y + 4, share(tick), anchor="end", colour=GREY)
    for tick in nice_ticks(0, most_cost):
        x, _ = place(tick, 0)
        drawing.line(x, floor, x, floor + 4)
        drawing.text(x, floor + 18, amount(tick), anchor="middle", colour=GREY)
    drawing.line(_LEFT, floor, _WIDTH - _RIGHT, floor)
    drawing.text((_LEFT + _WIDTH) / 2, _HEIGHT - 10, "calls cost, per item", anchor="middle")
    drawing.text(16, _HEIGHT / 2, "answers changed", anchor="middle", turn=-90)
    line = sorted(place(*point) for point in frontier.per_item)
    drawing.path(line, colour="#2a6fdb", width=2.5)
    for mistake_cost, point in zip(frontier.mistake_costs, frontier.per_item, strict=True):
        title = (
            f"per item, a mistake costs {amount(mistake_cost)}: {amount(point[0])},"
            f" {share(point[1])} changed"
        )
        drawing.circle(*place(*point), 4, fill="#2a6fdb", title=title)
    for at, (name, point) in enumerate(zip(stages, frontier.stages, strict=True)):
        x, y = place(*point)
        drawing.circle(x, y, 6, fill=stage_colour(at), title=f"always {name}")
        end = x > _WIDTH * 0.7
        at_x, anchor = (x - 10, "end") if end else (x + 10, "start")
        drawing.text(at_x, y - 8, short(name), anchor=anchor)
    return drawing
