"""Stages called alone: per-item rules against the best stage in hindsight, into ALONE.md.

Fitted without labels on one half of each log and scored by the truth on the other, at 7 mistake
costs. `python benchmarks/alone.py [name=file.csv:costs ...]`
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from made_logs import MadeLog, made_logs, own_log

from stopwise.costs import Costs
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.rule import Rule

PAGE = Path(__file__).with_name("ALONE.md")
MISTAKE_COSTS = np.geomspace(0.5, 200, 7)
"""In units of the last stage's cost."""


def ratios(log: MadeLog, mistake_cost: float) -> list[float]:
    """Total costs over that of the best stage called alone: last alone, cascade, alone."""
    order = np.random.default_rng(0).permutation(len(log.rows))
    made, scored = order[: len(order) // 2], order[len(order) // 2 :]
    names = tuple(str(at) for at in range(len(log.costs)))
    costs = Costs.from_stages(log.costs.tolist(), mistake_cost)
    rows = log.rows.where(scored)
    wrong = rows.codes != log.truth[scored][:, None]
    fixed = log.costs + mistake_cost * wrong.mean(axis=0)
    everyone = np.arange(len(rows))
    depths = Rule.fit(names, log.rows.where(made), costs).depths(rows)
    cascade = np.cumsum(log.costs)[depths].mean() + mistake_cost * wrong[everyone, depths].mean()
    followed = AloneRule.fit(names, log.rows.where(made), costs).follow(rows)
    alone = followed.cost + mistake_cost * wrong[everyone, followed.answered_by].mean()
    return [value / fixed.min() for value in (fixed[-1], cascade, alone)]


def main() -> None:
    """Run everything and write the page."""
    table, means = [], []
    for log in (*map(own_log, sys.argv[1:]), *made_logs()):
        found = np.log([ratios(log, log.costs[-1] * m) for m in MISTAKE_COSTS])
        means.append(found.mean(axis=0))
        shown = " | ".join(f"{value:.3f}" for value in np.exp(means[-1]))
        worst = np.exp(found[:, 2].max())
        table.append(f"| {log.name} | {len(log.rows):,} | {shown} | {worst:.3f} |")
        print(table[-1], flush=True)
    overall = " | ".join(f"**{value:.3f}**" for value in np.exp(np.mean(means, axis=0)))
    page = [
        "# Stages called alone, measured",
        "",
        "Total cost (calls and mistakes) over that of the best stage *called alone* in hindsight;"
        " smaller is better, 1 is what nobody who fixes one stage can beat. Fitted without labels"
        " on one half of a log, scored by the truth on the other, geometric means over"
        f" {len(MISTAKE_COSTS)} mistake costs. Made by `benchmarks/alone.py`. Logs that are not"
        " made here (yelp, digit speech, MMLU-Pro) were given by file.",
        "",
        "| log | rows | last stage alone | per item, in the cascade | per item, alone | worst |",
        "|---|---:|---:|---:|---:|---:|",
        *table,
        f"| **all** | | {overall} | |",
        "",
        "Where it does not help: logs of a few hundred rows (cancer, wine), and stages whose"
        " confidence says little (MMLU-Pro, where it is the length of the answer).",
        "",
        "Rows are held out, logs are not: the settings of the rule (trust, bins, the doubt of the"
        " last stage) were chosen while looking at logs of this page, so on new logs expect"
        " somewhat more.",
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
