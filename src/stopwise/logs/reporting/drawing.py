"""Plots on matplotlib axes, for notebooks; the report draws its own (`plots`, `svg`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stopwise.display import COLOURS, new_axes
from stopwise.lazy import load
from stopwise.logs.judging.findings import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_stages(findings: Findings, ax: Axes | None = None) -> Axes:
    """Cumulative cost of every stage against the share of answers that differ from the last.

    The band is the interval of that share; the stage of the headline is drawn full.
    """
    axes = new_axes(ax)
    verdict = findings.verdict
    last = len(verdict.stages) - 1
    for at, name in enumerate(verdict.stages):
        share, low, high = 0.0, 0.0, 0.0
        if at < last:
            pair = verdict.pair(at, last)
            share, low, high = pair.disagreement, pair.low, pair.high
        cost = verdict.costs.cumulative[at]
        chosen = at == findings.readings.headline_stage
        colour = COLOURS[at % len(COLOURS)]
        axes.plot([cost, cost], [low, high], color=colour, linewidth=2)
        axes.plot(
            [cost], [share], "o", color=colour, markersize=9 if chosen else 7,
            markerfacecolor=colour if chosen else "white", clip_on=False,
        )  # fmt: skip
        axes.annotate(
            f"{name} (stop here)" if chosen else name,
            (cost, share), textcoords="offset points", xytext=(8, 4),
        )  # fmt: skip
    axes.margins(x=0.2)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(load("plot", "matplotlib.ticker").PercentFormatter(1))
    axes.set_xlabel("cost per item when stopped there")
    axes.set_ylabel(f"answers that differ from {verdict.stages[last]}")
    return axes


def plot_stage_shares(
    stages: Sequence[str],
    over_time: Sequence[tuple[int, Sequence[float]]],
    ax: Axes | None = None,
) -> Axes:
    """The share of rounds that stopped at each stage, stacked, part by part.

    Args:
        over_time: for each part, its last round and the shares.
    """
    axes = new_axes(ax)
    ends = [end for end, _ in over_time]
    axes.stackplot(
        ends,
        [[shares[at] for _, shares in over_time] for at in range(len(stages))],
        labels=list(stages),
        colors=[COLOURS[at % len(COLOURS)] for at in range(len(stages))],
    )
    axes.set_ylim(0, 1)
    axes.set_xlabel("rounds")
    axes.set_ylabel("share that stops there")
    axes.legend(loc="lower right")
    return axes
