"""How often each reading of a log names the truly best stage, on cascades with known truth.

    python benchmarks/readings.py --cascades 120

Cascades are made up, of the kinds that logs come from: unlike stages whose errors share hard items,
an expensive last stage that is bad, families of models that err together, copies of one stage,
crowds, and votes that contain each other. Each is judged at 24 mistake costs. For every reading:
the share of mistake costs at which its stage is truly the best one, how much more it costs than the
best (mistakes included), and the share at which that is more than 20 %.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

from stopwise.logs import LogSettings
from stopwise.logs.judging.judge_counts import judge_counts
from stopwise.logs.judging.readings import readings_of
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.layouts.opening import open_log

KINDS = ("unlike stages", "bad last stage", "families", "copies", "crowd", "growing votes")
READINGS = ("headline", "weak-dominance", "minimax")


def cascade(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Outputs (one column per stage) and truth."""
    items, kinds = (
        int(np.exp(rng.uniform(np.log(200), np.log(5000)))),
        int(rng.choice([2, 3, 5, 20])),
    )
    truth = rng.integers(0, kinds, items)
    hard, usual_mistake = rng.normal(size=items), (truth + rng.integers(1, kinds, items)) % kinds
    shared, confused = rng.uniform(0, 0.6), rng.uniform(0, 0.8)

    def stage(accuracy: float, common: np.ndarray | None = None) -> np.ndarray:
        own = rng.normal(size=items)
        if common is not None:
            own = (own + common) / np.sqrt(2)
        difficulty = np.sqrt(shared) * hard + np.sqrt(1 - shared) * own
        wrong = difficulty > np.quantile(difficulty, accuracy)
        other = (truth + rng.integers(1, kinds, items)) % kinds
        mistake = np.where(rng.random(items) < confused, usual_mistake, other)
        return np.where(wrong, mistake, truth)

    number = int(rng.integers(3, 7))
    steps = rng.normal(0.04, 0.05, number - 1)
    accuracies = np.clip(np.cumsum([rng.uniform(0.5, 0.85), *steps]), 0.4, 0.985)
    if kind == "bad last stage":
        accuracies[-1] = max(accuracies[-1] - rng.uniform(0.05, 0.4), 0.3)
    if kind == "families":
        families = [rng.normal(size=items) for _ in range(2)]
        columns = [stage(a, families[int(rng.integers(2))]) for a in accuracies]
    elif kind in ("crowd", "growing votes"):
        columns = [stage(float(a)) for a in np.clip(rng.beta(6, 2.5, 9), 0.45, 0.97)]
        if kind == "growing votes":
            votes = np.stack(columns, axis=1)
            columns = [_majority(votes[:, :size], kinds) for size in (1, 3, 5, 9)]
        else:
            columns = columns[:5]
    else:
        columns = [stage(float(a)) for a in accuracies]
    if kind == "copies":
        copied = columns[int(rng.integers(len(columns)))]
        columns.append(np.where(rng.random(items) < 0.02, truth, copied))
    return np.stack(columns, axis=1), truth


def _majority(votes: np.ndarray, kinds: int) -> np.ndarray:
    counts = np.stack([(votes == label).sum(axis=1) for label in range(kinds)], axis=1)
    return np.asarray((counts + 0.01 * (votes[:, :1] == np.arange(kinds))).argmax(axis=1))


def judge(kind: str, rng: np.random.Generator) -> dict[str, list[float]]:
    """Of one cascade: the excess cost of every reading at every mistake cost."""
    codes, truth = cascade(kind, rng)
    names = tuple(f"s{at}" for at in range(codes.shape[1]))
    own = np.exp(np.cumsum(rng.uniform(0, 1.5, len(names))))
    errors = (codes != truth[:, None]).mean(axis=0)
    frame = pl.DataFrame({name: codes[:, at] for at, name in enumerate(names)})
    counts = count(open_log(frame, LogSettings(stages=names, costs=tuple(own))))
    spent = np.cumsum(own)
    found: dict[str, list[float]] = {reading: [] for reading in READINGS}
    for mistake_cost in np.geomspace(spent[-1] / 2, 100 * spent[-1], 24):
        settings = LogSettings(stages=names, costs=tuple(own), mistake_cost=float(mistake_cost))
        verdict = judge_counts(counts, settings, families=1)
        readings = readings_of(verdict, settings, counts)
        totals = errors + spent / mistake_cost
        stages = {"headline": readings.headline_stage, "weak-dominance": readings.weak_dominance,
                  "minimax": readings.minimax}  # fmt: skip
        for reading, stage in stages.items():
            assert stage is not None
            found[reading].append(float(totals[stage] / totals.min() - 1))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cascades", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    table: dict[str, dict[str, list[float]]] = {}
    for at in range(given.cascades):
        kind = KINDS[at % len(KINDS)]
        for reading, excess in judge(kind, rng).items():
            for row in (kind, "all"):
                table.setdefault(row, {}).setdefault(reading, []).extend(excess)
    print(f"{'':16}" + "".join(f"{reading:>26}" for reading in READINGS))
    print(f"{'':16}" + f"{'best  excess  above 20 %':>26}" * len(READINGS))
    for row in (*KINDS, "all"):
        cells = []
        for reading in READINGS:
            all_of = np.array(table[row][reading])
            right = (all_of <= 1e-9).mean()
            cells.append(f"{right:>9.0%} {all_of.mean():>7.1%} {(all_of > 0.2).mean():>8.0%}")
        print(f"{row:16}" + "".join(cells))


if __name__ == "__main__":
    main()
