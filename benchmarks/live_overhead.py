"""What a live round costs beside the stages: ratios measured in one run, chunk about chunk.

    python benchmarks/live_overhead.py            # all; the first part needs `pip install river`

1. begin + observe + end of a round of a three-stage cascade (USS-TS), against river's Thompson
   sampling (`pull` + `update`, three arms, Beta rewards). In the "deep" stream all rounds call all
   three stages; in the "undecided" one too, near a threshold, so that the distribution keeps moving
   (the most expensive case); in the "shallow" one most rounds stop at once.
2. `answer_many` against `answer` one by one, over outputs that are already there.
3. `answer_async` with 1,000 items on their way at once, over stages that answer at once.
4. `import stopwise`, in a fresh interpreter.

The two sides of a ratio take turns in short chunks, so that other work falls on both. Reported are
the median over chunks, and the ratio of the fastest chunk of each side, which is what the machine
does undisturbed.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from stopwise.live import Cascade, Learner, Stage

CHUNKS = 60


def main() -> None:
    try:
        river = river_rounds()
    except ImportError:
        print("river is not installed: the first comparison is left out", file=sys.stderr)
        river = None
    for name, disagreement in (("deep", 0.4), ("undecided", 0.115), ("shallow", 0.02)):
        ours = live_rounds(disagreement)
        if river is not None:
            compare(f"live round, {name} stream", ours, "river pull + update", river, 300)
    one_by_one, many = cascades()
    compare("answer_many, an item", many, "answer, an item", one_by_one, 2000)
    print(f"answer_async, 1,000 at once: {async_microseconds():.2f} us a round (median of 20 runs)")
    print(f"import stopwise: {import_seconds():.3f} s (median of 5 fresh interpreters)")


def river_rounds() -> Callable[[int], None]:
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)
    rng = random.Random(1)
    arms = [0, 1, 2]
    rewards = [rng.random() < 0.5 for _ in range(1000)]

    def run(number: int) -> None:
        for at in range(number):
            policy.update(policy.pull(arms), rewards[at % 1000])

    return run


def live_rounds(disagreement: float) -> Callable[[int], None]:
    learner = Learner({"a": 0.0, "b": 0.1, "c": 0.1}, mistake_cost=1, seed=1)
    rng = random.Random(1)
    items = [
        ["x", *("x" if rng.random() > disagreement else "y" for _ in range(2))] for _ in range(1000)
    ]

    def run(number: int) -> None:
        for at in range(number):
            outputs = items[at % 1000]
            round = learner.begin()
            for stage in range(round.depth + 1):
                round.observe(outputs[stage])
            round.end()

    return run


def cascades() -> tuple[Callable[[int], None], Callable[[int], None]]:
    rng = np.random.default_rng(1)
    size = 5000
    truth = rng.integers(0, 10, size)
    tables = [np.where(rng.random(size) < p, truth, rng.integers(0, 10, size)) for p in (0.7, 0.9)]
    tables.append(truth)

    def build() -> Cascade:
        def stage(at: int) -> Stage:
            return Stage(f"model {at}", lambda xs: tables[at][xs], 0.1 * at, batch=True)

        return Cascade([stage(at) for at in range(3)], mistake_cost=1, seed=1)

    items = np.arange(size)
    single, batched = build(), build()

    def one_by_one(number: int) -> None:
        for item in items[: min(number, size)]:
            single.answer(item)

    def many(number: int) -> None:
        batched.answer_many(items[: min(number, size)], batch_size=size).collect()

    return one_by_one, many


def async_microseconds(at_once: int = 1000) -> float:
    async def odd(item: int) -> int:
        return item & 1

    async def one(item: int) -> int:
        return 1

    stages = [Stage("a", odd, 0), Stage("b", one, 0.1), Stage("c", odd, 0.1)]
    cascade = Cascade(stages, mistake_cost=1, seed=1)

    async def run() -> None:
        await asyncio.gather(*(cascade.answer_async(item) for item in range(at_once)))

    found = []
    for _ in range(20):
        start = time.perf_counter()
        asyncio.run(run())
        found.append((time.perf_counter() - start) / at_once * 1e6)
    return statistics.median(found)


def compare(
    name: str, ours: Callable[[int], None], other: str, theirs: Callable[[int], None], number: int
) -> None:
    ours(10 * number)
    theirs(number)
    mine, yours = [], []
    for _ in range(CHUNKS):
        mine.append(seconds(ours, number) / number)
        yours.append(seconds(theirs, number) / number)
    ratios = [b / a for a, b in zip(mine, yours, strict=True)]
    low, middle, high = (statistics.quantiles(ratios, n=20)[at] for at in (0, 9, 18))
    print(
        f"{name}: {statistics.median(mine) * 1e6:.2f} us; {other}:"
        f" {statistics.median(yours) * 1e6:.2f} us; ratio {middle:.2f}"
        f" (5 % to 95 % of {CHUNKS} chunks: {low:.2f} to {high:.2f});"
        f" fastest chunks {min(mine) * 1e6:.2f} us, {min(yours) * 1e6:.2f} us:"
        f" {min(yours) / min(mine):.2f}"
    )


def seconds(run: Callable[[int], None], number: int) -> float:
    start = time.perf_counter()
    run(number)
    return time.perf_counter() - start


def import_seconds() -> float:
    code = "import time; t = time.perf_counter(); import stopwise; print(time.perf_counter() - t)"
    return statistics.median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    )


if __name__ == "__main__":
    main()
