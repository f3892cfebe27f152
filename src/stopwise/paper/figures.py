"""The paper's six figures, each as SVG and PNG, with the published points laid over ours."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stopwise.lazy import missing
from stopwise.paper.experiments import PaperFigure, PaperRun
from stopwise.paper.instances import get_dataset
from stopwise.paper.running import PaperSettings, Results, RunResult
from stopwise.simulation.results import CurvePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Okabe and Ito's palette: told apart with any kind of colour vision. Markers tell them apart too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v")

POLICY_NAMES = {
    "uss-ts": "USS-TS",
    "uss-ucb": "USS-UCB (α = 0.5)",
    "hanawal-2": "Algorithm 2 (α = 1.5)",
}
SOURCE_NAMES = {
    "as-printed": "ours, generator as printed",
    "retrained": "ours, classifiers retrained",
    "calibrated": "ours, calibrated (a fit to the figure)",
}
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    # Without these two the same figure is a different file each time.
    "svg.hashsalt": "stopwise",
    "svg.fonttype": "path",
}


def require_matplotlib() -> None:
    """Say at once, before hours of work, that nothing could be drawn at their end."""
    if importlib.util.find_spec("matplotlib") is None:
        raise missing("drawing the figures", "matplotlib")


def draw(figure: PaperFigure, results: Results, settings: PaperSettings) -> dict[str, bytes]:
    """The figure's files: {"svg": ..., "png": ...}, the same bytes for the same results."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(_STYLE):
        over_rounds = figure.over_rounds
        canvas = Canvas(figsize=(10.6, 4.4) if over_rounds else (7.6, 4.8))
        FigureCanvasAgg(canvas)
        if over_rounds:
            _draw_over_rounds(canvas, figure, results, settings)
        else:
            _draw_over_margins(canvas, results, settings)
        files = {}
        for kind, metadata in (("svg", {"Date": None}), ("png", {})):
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=kind, dpi=160, metadata=metadata)
            files[kind] = buffer.getvalue()
    return files


def _draw_over_rounds(
    canvas: Canvas, figure: PaperFigure, results: Results, settings: PaperSettings
) -> None:
    """One panel for each source, the calibrated one first; the published points are in both."""
    sources = tuple(reversed(get_dataset(figure.dataset).sources))
    panels = canvas.subplots(1, len(sources))
    canvas.subplots_adjust(left=0.07, right=0.975, top=0.89, bottom=0.235, wspace=0.13)
    compares_policies = len(figure.policies) > 1
    for panel, source in zip(panels, sources, strict=True):
        shown = [(run, result) for run, result in results if run.source == source]
        for at, (run, result) in enumerate(shown):
            name = (
                POLICY_NAMES[run.policy_name] if compares_policies else f"Instance {run.instance}"
            )
            _curve(panel, at, run, result, name, settings)
        title = SOURCE_NAMES[source]
        panel.set_title(title[0].upper() + title[1:], fontsize=10.5, loc="left")
        panel.set_xlabel("Rounds T")
        panel.set_xlim(0, settings.horizon * 1.02)
        panel.set_ylim(bottom=0)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[0].set_ylabel("Regret (in mistakes)")
    _legend(canvas, panels[0], any(run.published(settings.horizon) for run, _ in results), settings)


def _curve(
    panel: Axes, at: int, run: PaperRun, result: RunResult, name: str, settings: PaperSettings
) -> None:
    rounds = [0, *(point.round for point in result.curve)]
    means = [0.0, *(point.mean for point in result.curve)]
    panel.plot(rounds, means, color=COLOURS[at], linewidth=1.6, label=name)
    _bars(panel, at, rounds[1:], result.curve)
    _published(panel, at, run.published(settings.horizon))


def _bars(panel: Axes, at: int, x: Sequence[float], points: Sequence[CurvePoint]) -> None:
    low = [point.ci_low for point in points]
    high = [point.ci_high for point in points]
    panel.vlines(x, low, high, color=COLOURS[at], linewidth=1.6)


def _published(panel: Axes, at: int, points: Mapping[float, float]) -> None:
    panel.plot(
        list(points), list(points.values()), linestyle="none", marker=MARKERS[at], markersize=5.5,
        markerfacecolor="white", markeredgecolor=COLOURS[at], markeredgewidth=1.1, zorder=3,
        clip_on=False,
    )  # fmt: skip


def _legend(canvas: Canvas, panel: Axes, published: bool, settings: PaperSettings) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[at], marker=MARKERS[at], markerfacecolor="white", label=label)
        for at, label in enumerate(panel.get_legend_handles_labels()[1])
    ]
    handles.append(Line2D([], [], color="#444", label="ours, with 95 % interval"))
    if published:
        handles.append(
            Line2D([], [], color="#444", linestyle="none", marker="o", markerfacecolor="white",
                   label="published")
        )  # fmt: skip
    canvas.legend(handles=handles, loc="lower center", ncols=len(handles), columnspacing=1.4)
    canvas.text(
        0.985, 0.985, f"{settings.replications:,} replications, seed {settings.seed}",
        fontsize=8, color="#666", ha="right", va="top",
    )  # fmt: skip


def _draw_over_margins(canvas: Canvas, results: Results, settings: PaperSettings) -> None:
    panel = canvas.subplots()
    canvas.subplots_adjust(left=0.105, right=0.985, top=0.94, bottom=0.215)
    curves = list(dict.fromkeys(run.instance for run, _ in results))
    for at, curve in enumerate(curves):
        shown = [(run, result.final) for run, result in results if run.instance == curve]
        x = [run.x for run, _ in shown if run.x is not None]
        name = curve.replace("optimal-arm-", "Optimal arm ")
        panel.plot(x, [point.mean for _, point in shown], color=COLOURS[at], label=name)
        _bars(panel, at, x, [point for _, point in shown])
        _published(panel, at, shown[0][0].published(settings.horizon))
    panel.axvline(0, color="#888", linewidth=1, linestyle=(0, (4, 3)))
    top = panel.get_ylim()[1]
    for at_x, side, text in ((-0.004, "right", "weak dominance fails"), (0.004, "left", "holds")):
        panel.text(at_x, top, text, ha=side, va="top", fontsize=9, color="#666")
    panel.set_xlabel("Margin ξ of weak dominance")
    panel.set_ylabel(f"Regret after {settings.horizon:,} rounds (in mistakes)")
    panel.set_xticks(np.arange(-0.12, 0.13, 0.03))
    panel.set_ylim(0, top)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _legend(canvas, panel, any(run.published(settings.horizon) for run, _ in results), settings)
