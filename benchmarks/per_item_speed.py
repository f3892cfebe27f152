"""How fast a log is replayed per item: `python benchmarks/per_item_speed.py` prints a table.

Beside it, in the same run, stands the plain loop: round by round, stage by stage, one situation at
a time, as a live cascade does it. Both make the same decisions, which is checked here too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from per_item import models_by_skill

from stopwise.costs import Costs
from stopwise.policies.per_item.learning import Learned, called, learn_over
from stopwise.policies.per_item.policy import PerItem
from stopwise.situations.keys import situations
from stopwise.situations.observations import IntArray, Observations

SIZES = (10_000, 100_000, 1_000_000)
SKILLS = {3: (0.0, 0.9, 2.2), 4: (0.0, 0.6, 1.2, 2.2)}


def main() -> None:
    """Measure and print."""
    print("| stages | rows | rounds a second | plain loop | times as fast |")
    print("|---|---|---|---|---|")
    for count, skills in SKILLS.items():
        base, _, prices, _ = models_by_skill(skills, seed=1)
        costs = Costs.from_stages(prices[:count], 40.0)
        stages = tuple(f"stage {at}" for at in range(count))
        for size in SIZES:
            rows = base.where(np.random.default_rng(0).integers(0, len(base), size))
            fast, depths = timed(
                lambda rows=rows, stages=stages, costs=costs: learn_over(
                    PerItem(), stages, rows, costs, np.random.default_rng(1)
                )[0]
            )
            short = rows.where(slice(0, 10_000))
            slow, plain = timed(
                lambda rows=short, stages=stages, costs=costs: plain_loop(rows, stages, costs), 1
            )
            if size == len(short):
                assert (plain == depths).all(), "the two ways must decide alike"
            rate, loop = size / fast, len(short) / slow
            print(f"| {count} | {size:,} | {rate:,.0f} | {loop:,.0f} | {rate / loop:.0f} |")


def plain_loop(rows: Observations, stages: tuple[str, ...], costs: Costs) -> IntArray:
    """What a live cascade does."""
    policy = PerItem()
    learned = Learned(policy, stages, costs)
    draws = np.random.default_rng(1).random(len(rows))
    last = rows.stage_count - 1
    depths = np.empty(len(rows), dtype=np.int64)
    wait = learned.until_next()
    for at in range(len(rows)):
        row = rows.where(slice(at, at + 1))
        full = bool(draws[at] < policy.full_run_probability(at + 1, costs))
        depth = last if full else 0
        if not full and learned.rule is not None and learned.counts is not None:
            keys = situations(row, learned.counts.binning)[0].tolist()
            while depth < last and not learned.rule.stops(depth, keys[depth]):
                depth += 1
        depths[at] = depth
        learned.record(called(row, depths[at : at + 1]), np.array([full]))
        wait -= 1
        if wait == 0:
            learned.refresh()
            wait = learned.until_next()
    return depths


def timed(run: Callable[[], IntArray], times: int = 3) -> tuple[float, IntArray]:
    """The least processor time of a few runs, and what came of the last."""
    least, result = float("inf"), np.zeros(0, dtype=np.int64)
    for _ in range(times):
        start = time.process_time()
        result = run()
        least = min(least, time.process_time() - start)
    return least, result


if __name__ == "__main__":
    main()
