"""The plots of the benchmark."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stopwise.bench.runs import BenchResult, Score
from stopwise.storage import write_whole

# Okabe and Ito: told apart by most people who do not see all colours; markers help the others.
_STYLES = {
    "uss-ts": ("#000000", "o"),
    "uss-voi": ("#0072B2", "s"),
    "uss-voi-anytime": ("#56B4E9", "D"),
    "uss-ts-jump": ("#D55E00", "^"),
    "uss-ts-tempered": ("#E69F00", "v"),
    "imed": ("#009E73", "P"),
}
_TITLES = {"paper": "paper (calibrated)", "strong": "strong dominance", "weak": "weak dominance"}


def plot_all(
    folder: Path,
    scores: Mapping[str, Mapping[str, Score]],
    families: Sequence[BenchResult],
    growth: Sequence[BenchResult],
) -> None:
    """Write ratios.png, growth.png and distribution.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in (
        ("ratios", _ratios(plt, scores)),
        ("growth", _growth(plt, growth)),
        ("distribution", _distribution(plt, families)),
    ):
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=130)
        write_whole(folder / f"{name}.png", picture.getvalue())
        plt.close(figure)


def _ratios(plt: Any, scores: Mapping[str, Mapping[str, Score]]) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), sharey=True, layout="constrained")
    for axis, (family, title) in zip(axes, _TITLES.items(), strict=True):
        for policy, (colour, marker) in _STYLES.items():
            if policy in scores:
                ratios = scores[policy][family].ratios
                axis.plot(
                    range(1, len(ratios) + 1), ratios, color=colour, marker=marker, markersize=3,
                    linewidth=1.2, label=policy, markevery=max(1, len(ratios) // 12),
                )  # fmt: skip
        axis.axhline(1.0, color="grey", linewidth=1, linestyle="--")
        axis.set(title=title, xlabel="instances, sorted for each policy", yscale="log")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("(regret + 1) / (regret of USS-TS + 1)")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _growth(plt: Any, growth: Sequence[BenchResult]) -> Any:
    names = list(dict.fromkeys(result.instance for result in growth))
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 4), layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        for policy, (colour, marker) in _STYLES.items():
            runs = [r for r in growth if r.instance == name and r.policy == policy]
            runs.sort(key=lambda result: result.horizon)
            axis.plot(
                [run.horizon for run in runs], [run.mean for run in runs],
                color=colour, marker=marker, markersize=4, linewidth=1.4, label=policy,
            )  # fmt: skip
        axis.set(title=name, xlabel="horizon T (rounds)", xscale="log", yscale="log")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("mean regret (mistakes)")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _distribution(plt: Any, families: Sequence[BenchResult]) -> Any:
    names = ("pima 3", "bsc 1", "heart 1", "heart 2")
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 4), layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        for policy, (colour, marker) in _STYLES.items():
            for run in (r for r in families if r.instance == name and r.policy == policy):
                axis.plot(
                    run.quantiles, range(101), color=colour, linewidth=1.4, label=policy,
                    marker=marker, markersize=4, markevery=20,
                )  # fmt: skip
        axis.set(title=f"{name}, T = 10,000", xlabel="final regret (mistakes)")
        axis.set_xscale("symlog", linthresh=10)
        axis.set_xlim(left=0)
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("share of replications at or below (%)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure
