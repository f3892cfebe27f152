"""From finished runs to the page benchmarks/POLICIES.md and its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stopwise.bench.plan import BASE, BenchPlan
from stopwise.bench.plots import plot_all
from stopwise.bench.runs import BenchResult, Score, score
from stopwise.storage import write_whole

FAMILY_TITLES = {
    "paper": "The paper's 12 learnable instances (calibrated)",
    "strong": "Strong dominance",
    "weak": "Weak dominance, not strong",
}


def scores_of(results: Sequence[BenchResult]) -> dict[str, dict[str, Score]]:
    """For every policy but the base: its score in every family."""
    scores: dict[str, dict[str, Score]] = {}
    for policy in dict.fromkeys(result.policy for result in results):
        if policy == BASE:
            continue
        for family in FAMILY_TITLES:
            mine = [r for r in results if r.policy == policy and r.family == family]
            base = [r for r in results if r.policy == BASE and r.family == family]
            scores.setdefault(policy, {})[family] = score(mine, base)
    return scores


def write_report(
    out: Path, plan: BenchPlan, families: Sequence[BenchResult], growth: Sequence[BenchResult]
) -> Path:
    """Write the page and its plots; returns the page."""
    scores = scores_of(families)
    plot_all(out / "policies", scores, families, growth)
    page = out / "POLICIES.md"
    write_whole(page, _page(plan, scores, growth))
    return page


def _page(
    plan: BenchPlan, scores: dict[str, dict[str, Score]], growth: Sequence[BenchResult]
) -> str:
    half = next(iter(scores.values()))["strong"].instances
    lines = [
        "# Policies compared",
        "",
        "Made by `stopwise bench-policies`; do not edit. Regret is in units of one mistake; ratios"
        " are (regret + 1) / (regret of USS-TS + 1), so below 1 is better than USS-TS.",
        "",
        f"Horizon {plan.horizon:,}; {plan.replications:,} replications of every policy on every"
        f" instance; seed {plan.seed}. Two families of {plan.instances} instances"
        f" (seed {plan.family_seed}; 2, 3, 5, 8 and 16 stages in turn, the optimal stage spread"
        f" over the cascade, smallest margin 0.003 to 0.15). Parameters were chosen on one half of"
        f" them; the tables below are of the other half, {half} instances each, and of the paper's"
        " instances.",
        "",
    ]
    for family, title in FAMILY_TITLES.items():
        lines += _family_table(title, {name: by[family] for name, by in scores.items()})
    lines += [
        "`uss-voi:horizon=...` was given a wrong horizon: a tenth, and ten times, of the true one"
        f" ({min(plan.replications, plan.wrong_horizon_replications):,} replications).",
        "",
        "![ratio to USS-TS of every instance, sorted](policies/ratios.png)",
        "",
        "## Regret against the horizon",
        "",
        f"Mean / median / 99th percentile; {plan.growth_replications:,} replications.",
        "",
    ]
    for name in dict.fromkeys(result.instance for result in growth):
        lines += _growth_table(name, [result for result in growth if result.instance == name])
    lines += [
        "The exponent is that of a power of T through the means at 10^4 and at the largest T; near"
        " 0 means logarithmic.",
        "",
        "![mean regret against the horizon](policies/growth.png)",
        "",
        "## Distribution of the final regret",
        "",
        "![distribution of the final regret](policies/distribution.png)",
        "",
    ]
    return "\n".join(lines)


def _family_table(title: str, scores: Mapping[str, Score]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        "| policy | geometric mean | worst | lost by > 5 % | 95th percentile |"
        " 99th percentile | worst instance |",
        "|---|---|---|---|---|---|---|",
    ]
    for policy, s in scores.items():
        lines.append(
            f"| `{policy}` | {s.geometric_mean:.3f} | {s.worst:.2f} | {s.lost:.0%} |"
            f" {s.q95:.3f} | {s.q99:.3f} | {s.worst_instance} |"
        )
    return [*lines, ""]


def _growth_table(instance: str, runs: Sequence[BenchResult]) -> list[str]:
    horizons = sorted({result.horizon for result in runs})
    lines = [
        f"### {instance}",
        "",
        "| policy | " + " | ".join(f"T = {horizon:,}" for horizon in horizons) + " | exponent |",
        "|---" * (len(horizons) + 2) + "|",
    ]
    for policy in dict.fromkeys(result.policy for result in runs):
        mine = {result.horizon: result for result in runs if result.policy == policy}
        cells = [
            f"{mine[h].mean:,.4g} / {mine[h].median:,.4g} / {mine[h].quantiles[99]:,.4g}"
            for h in horizons
        ]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + f" | {_exponent(mine):.2f} |")
    return [*lines, ""]


def _exponent(by_horizon: dict[int, BenchResult]) -> float:
    last = max(by_horizon)
    first = by_horizon[10_000].mean
    return float(np.log(by_horizon[last].mean / first) / np.log(last / 10_000))
