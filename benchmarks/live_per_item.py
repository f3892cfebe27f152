"""What a live decision per item costs, and how large its state is.

    python benchmarks/live_per_item.py          # needs `pip install river` for the ratio

Four stages with confidences. Blocks of rounds of each kind alternate with blocks of river's
Thompson sampling (`pull` and `update`, four arms), so that all see the same machine; the fastest
block of each counts. A decision is one call of `Learner.stops`; a round is all of `begin`,
`observe`, `stops` and `end`, in processor time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from per_item import models_by_skill

from stopwise.live import Learner

STAGES = {"one": 0.1, "two": 0.4, "three": 1.0, "four": 4.0}
LEARNED, BLOCK, BLOCKS = 20_000, 500, 12


def main() -> None:
    """Measure and print."""
    rows, *_ = models_by_skill((0.0, 0.6, 1.2, 2.2), seed=1)
    assert rows.confidences is not None
    picked = np.random.default_rng(0).integers(0, len(rows), LEARNED + BLOCK * BLOCKS)
    labels = [[rows.labels[code] for code in row] for row in rows.codes[picked].tolist()]
    sure = rows.confidences[picked].tolist()
    items = list(zip(labels, sure, strict=True))
    sides: dict[str, Callable[[int], tuple[float, float]]] = {}
    for name, more in (("per-item", {}), ("per-item, agree=0.9", {"agree": 0.9})):
        learner = Learner(STAGES, "per-item", mistake_cost=20, seed=1, **more)
        for item in items[:LEARNED]:
            play(learner, *item)
        size = len(json.dumps(learner.to_form()))
        print(f"{name}: state after {LEARNED:,} rounds {size / 1e3:,.0f} kB")
        sides[name] = lambda at, learner=learner: timed(learner, items, at)
    try:
        sides["river"] = river()
    except ImportError:
        print("river is not installed: no ratio")
    least = {name: [float("inf"), float("inf")] for name in sides}
    for at in range(BLOCKS):
        for name, run in sides.items():
            least[name] = [min(pair) for pair in zip(least[name], run(at), strict=True)]
    print("| | a decision, us | a round, us | over river |")
    print("|---|---|---|---|")
    for name, (decision, whole) in least.items():
        ratio = f"{whole / least['river'][1]:.2f}" if "river" in least else ""
        shown = "" if name == "river" else f"{decision * 1e6:.1f}"
        print(f"| {name} | {shown} | {whole * 1e6:.1f} | {ratio} |")


def play(learner: Learner, labels: list[str], sure: list[float]) -> tuple[float, int]:
    """One round; how long its decisions took, and how many they were."""
    spent, asked = 0.0, 0
    round = learner.begin()
    for label, confidence in zip(labels, sure, strict=True):
        round.observe(label, confidence=confidence)
        start = time.perf_counter()
        stops = learner.stops(round)
        spent += time.perf_counter() - start
        asked += 1
        if stops:
            break
    round.end()
    return spent, asked


def timed(learner: Learner, items: list[Any], at: int) -> tuple[float, float]:
    """Seconds of a decision and of a round, over one block."""
    block = items[LEARNED + at * BLOCK : LEARNED + (at + 1) * BLOCK]
    start = time.process_time()
    found = [play(learner, *item) for item in block]
    whole = time.process_time() - start
    return sum(one for one, _ in found) / sum(one for _, one in found), whole / BLOCK


def river() -> Callable[[int], tuple[float, float]]:
    """The same for river's Thompson sampling."""
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)
    arms = list(STAGES)

    def run(at: int) -> tuple[float, float]:
        start = time.process_time()
        for number in range(BLOCK):
            arm = policy.pull(arms)
            policy.update(arm, number % 3 == 0)
        return 0.0, (time.process_time() - start) / BLOCK

    return run


if __name__ == "__main__":
    main()
