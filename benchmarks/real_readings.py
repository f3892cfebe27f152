# ruff: noqa: E501
"""How often each way of reading a log names the truly best stage, on real logs with known truth.

    python benchmarks/real_logs.py SOURCE_FOLDER LOGS      # see there for what it needs
    python benchmarks/real_readings.py LOGS                # writes benchmarks/READINGS.md

Beside the headline and the other readings: the plain consensus (EM), the plurality of the stages,
and each stage held against the plurality of the others. All of them choose among the stages that
are not ruled out for certain, at the same 24 mistake costs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

from stopwise.abstentions import NO_ANSWER, answering_stages
from stopwise.decisions import optimal_stage
from stopwise.estimating import consensus, estimate, plurality
from stopwise.logs import LogSettings
from stopwise.logs.judging.judge_counts import judge_counts
from stopwise.logs.judging.readings import candidate_stages
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.layouts.opening import open_log

HERE = Path(__file__).parent
WAYS = ("headline", "plain EM", "plurality", "others' plurality", "minimax", "the paper's rule")


def judge(path: Path) -> tuple[str, str, dict[str, np.ndarray]]:
    """The part and kind of a log, and the excess cost of every way at every mistake cost."""
    log = np.load(path)
    codes, truth, costs = log["codes"], log["truth"], tuple(log["costs"].tolist())
    names = tuple(f"s{at}" for at in range(codes.shape[1]))
    texts = {
        name: [None if code < 0 else str(code) for code in column]
        for name, column in zip(names, codes.T.tolist(), strict=True)
    }
    frame = pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String))
    counts = count(open_log(frame, LogSettings(stages=names, costs=costs)))
    rows, number = np.asarray(counts.codes), np.asarray(counts.number, dtype=float)
    errors = {
        "headline": estimate(rows, number, bootstraps=0).error_rates,
        "plain EM": wrong(rows, number, consensus(rows, number, votes=np.ones(len(names))).right),
        "plurality": wrong(rows, number, plurality(rows, number)),
        "others' plurality": wrong(rows, number, by_others(rows)),
    }
    true = wrong(codes, np.ones(len(codes)), (codes == truth[:, None]).astype(float))
    spent = np.cumsum(costs)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for mistake_cost in np.geomspace(spent[-1] / 2, 100 * spent[-1], 24):
        settings = LogSettings(stages=names, costs=costs, mistake_cost=float(mistake_cost))
        verdict = judge_counts(counts, settings, families=1)
        kept = np.full(len(names), np.inf)
        kept[list(candidate_stages(verdict))] = 0
        in_mistakes = spent / mistake_cost
        stages = {way: optimal_stage(error + in_mistakes + kept) for way, error in errors.items()}
        stages |= {"minimax": verdict.minimax_stage, "the paper's rule": verdict.recommended}
        totals = true + in_mistakes
        for way, stage in stages.items():
            found[way].append(float(totals[stage] / totals.min() - 1))
    return str(log["part"]), str(log["kind"]), {way: np.array(x) for way, x in found.items()}


def wrong(codes: np.ndarray, number: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How often the answer at each stage is wrong; where a stage abstains, the next one is asked."""
    who = answering_stages(codes, "go on")
    hit = np.take_along_axis(right, np.maximum(who, 0), axis=1)
    return np.asarray(1 - number @ np.where(who == NO_ANSWER, 0.0, hit) / number.sum())


def by_others(codes: np.ndarray) -> np.ndarray:
    """Whether each stage gives the most frequent answer of all others; ties are shared."""
    right = np.zeros(codes.shape)
    for stage in range(codes.shape[1]):
        others = np.delete(codes, stage, axis=1)
        chances = plurality(others)
        same = (others == codes[:, [stage]]) & (others >= 0)
        right[:, stage] = np.where(same, chances, 0.0).max(axis=1)
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    found = [judge(path) for path in sorted(parser.parse_args().logs.glob("*.npz"))]
    lines = [
        "# Readings on real logs",
        "",
        "Written by `python benchmarks/real_readings.py`, on logs that `benchmarks/real_logs.py` makes",
        "from data and tools of PyPI packages. In each cell: the share of mistake costs at which the",
        "stage is truly the best one, the mean excess cost over the best, and the share of mistake",
        "costs at which that excess is above 20 %. Parts of the headline were chosen on the logs of the",
        "part *choice* and further draws of them; those of *final* rest on other data, and choose nothing.",
        "",
    ]
    for part in dict.fromkeys(part for part, _, _ in found):
        logs = [(kind, excess) for other, kind, excess in found if other == part]
        lines += [f"## Part: {part}", "", "| kind | logs | " + " | ".join(WAYS) + " |"]
        lines.append("|---|---|" + "---|" * len(WAYS))
        for kind in (*sorted({kind for kind, _ in logs}), "all"):
            chosen = [excess for own, excess in logs if kind in (own, "all")]
            cells = []
            for way in WAYS:
                x = np.concatenate([excess[way] for excess in chosen])
                cells.append(f"{(x <= 1e-9).mean():.0%}, {x.mean():.1%}, {(x > 0.2).mean():.0%}")
            lines.append(f"| {kind} | {len(chosen)} | " + " | ".join(cells) + " |")
        pairs = [(x["headline"], x["minimax"]) for _, x in logs]
        costlier = max(float(own.mean() - other.mean()) for own, other in pairs)
        rarer = max(float((other <= 1e-9).mean() - (own <= 1e-9).mean()) for own, other in pairs)
        lines += [
            "",
            f"On no log is the headline's mean excess more than {100 * costlier:.0f} points above that of"
            f" minimax. It names the best stage less often by at most {100 * rarer:.0f} points.",
            "",
        ]
    (HERE / "READINGS.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
