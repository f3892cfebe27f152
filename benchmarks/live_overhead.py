"""What a live round costs beside the stages, in every mode, against river's Thompson sampling.

    python benchmarks/live_overhead.py                # needs `pip install river` for the ratios
    python benchmarks/live_overhead.py --markdown     # as a table
    python benchmarks/live_overhead.py --against SRC  # and the same of another release's `src`

1. begin + observe + end of a round of a three-stage cascade, in every mode of a learner in
   memory, against `pull` + `update` of river (three arms, Beta rewards). In the "shallow" stream
   most rounds stop at once, in the "deep" one all call all stages; in the "undecided" one too, near
   a threshold, so that the distribution keeps moving (the most expensive case).
2. A round of a cascade of 50 stages, and one that goes to a SQLite file, written behind: with all
   that the writing thread does. And a round of two writers who take turns in one SQLite file, with
   few segments and with many, each in a transaction of its own that is waited for.
3. `answer` and `answer_many` over outputs that are already there, and `answer_async` with 1,000
   items on their way at once, over stages that answer at once.
4. `import stopwise`, in a fresh interpreter.

All take turns, so that other work on the machine falls on all alike; what is reported is the
processor's time in the quickest turn of each, which is what the machine does undisturbed. Every
turn of a mode has a new learner, which is timed from round 1,500 to round 6,000. What goes on from
turn to turn runs a third of a chunk before, untimed: Python adapts its instructions to the objects
that it meets, and has adapted to the others' meanwhile, as in no program that has one learner.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from stopwise.live import Cascade, Drift, Learner, SqliteStore, Stage

Run = Callable[[int], None]
STREAMS = {"shallow": 0.02, "deep": 0.4, "undecided": 0.115}
PLAIN: dict[str, dict[str, Any]] = {
    "uss-ts": {"policy": "uss-ts"},
    "uss-ts-jump (default)": {},
    "uss-voi-anytime": {"policy": "uss-voi-anytime"},
    "full runs": {"full_run_rate": 0.05},
    "on_round": {"on_round": lambda record: None},
    "item budget": {"item_budget": 0.15},
    "run budget": {"run_budget": 1e9},
    "drift": {"drift": Drift()},
    "shadow": {"mode": "shadow"},
    "4 segments": {},
    "4 segments, nothing lent": {"segment_strength": 0.0},
}
RENEWING: dict[str, dict[str, Any]] = {
    "measured costs": {"measured": True},
    "half_life": {"half_life": 1000},
}
FIRST, CHUNK = 1500, 4500
"""Rounds of a new learner before it is timed, and while it is: enough that what is done for
hundreds of rounds at once has its part, and few enough that what is undecided stays so."""
FEW_AND_MANY = (20, 5000)
"""Segments: with one alone, nothing is read of others."""


class Side(NamedTuple):
    """Something to time: its name, what makes what is run, how many rounds in a chunk."""

    name: str
    make: Callable[[], Run]
    rounds: int
    fresh: bool = False  # in every turn: what has seen more is quicker


def main() -> None:
    parser = argparse.ArgumentParser(description="What a live round costs beside the stages.")
    parser.add_argument("--turns", type=int, default=15, help="turns of each")
    parser.add_argument("--only", default="", help="modes whose name contains this")
    parser.add_argument("--markdown", action="store_true", help="write a table")
    parser.add_argument("--json", action="store_true", help="write microseconds by name")
    parser.add_argument("--against", help="folder with another release's source")
    chosen = parser.parse_args()
    sides = [one for one in all_sides() if chosen.only in one.name or one.name == "river"]
    fastest = take_turns(sides, chosen.turns)
    if chosen.json:
        print(json.dumps(fastest))
        return
    before = measured_elsewhere(chosen.against, chosen.only, chosen.turns)
    if before:
        again = take_turns(sides, chosen.turns)
        fastest = {name: min(value, again[name]) for name, value in fastest.items()}
    (show_markdown if chosen.markdown else show)(fastest, before)
    few, many = (fastest.get(two_writers_of(segments)) for segments in FEW_AND_MANY)
    if few and many:
        print(f"two writers, many segments: {many / few:.2f} of the time with few")
    if not chosen.only:
        print(f"import stopwise: {import_seconds():.3f} s (median of 5 fresh interpreters)")


def all_sides() -> Iterable[Side]:
    """All that is timed. What an earlier release does not have is left out."""
    try:
        river = river_rounds()
        yield Side("river", lambda: river, CHUNK)
    except ImportError:
        print("river is not installed: no ratios", file=sys.stderr)
    makers: dict[tuple[str, int], Callable[[], Run]] = {
        (f"{mode}, {stream}", CHUNK): partial(
            live_rounds, stream, segments=4 if mode.startswith("4") else 1, **settings
        )
        for mode, settings in {**PLAIN, **RENEWING}.items()
        for stream in STREAMS
    }
    makers["50 stages, undecided", 10] = fifty_stages
    for stream in ("shallow", "deep"):
        makers[f"SQLite behind, {stream}", 2000] = partial(kept_rounds, stream)
    for segments in FEW_AND_MANY:
        makers[two_writers_of(segments), 60] = partial(two_writers, segments)
    makers["answer", 500] = lambda: cascades()[0]
    makers["answer_many", 5000] = lambda: cascades()[1]
    makers["answer_async, 1,000 at once", 1000] = at_once
    for (name, rounds), maker in makers.items():
        try:
            made = maker()
        except Exception as error:  # noqa: BLE001  # of another release
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        else:
            fresh = rounds == CHUNK
            yield Side(name, maker if fresh else partial(_as_made, made), rounds, fresh)


def _as_made(run: Run) -> Run:
    return run


def take_turns(sides: list[Side], turns: int) -> dict[str, float]:
    """Microseconds of the processor per round in the quickest chunk of each."""
    for side in sides:
        if not side.fresh:
            side.make()(5 * side.rounds)
    fastest = dict.fromkeys((side.name for side in sides), float("inf"))
    for _ in range(turns):
        for name, make, rounds, fresh in sides:
            run = make()
            run(FIRST if fresh else rounds // 3)
            start = time.process_time()
            run(rounds)
            spent = (time.process_time() - start) / rounds * 1e6
            fastest[name] = min(fastest[name], spent)
    return fastest


# ---- what is timed ---------------------------------------------------------------------------


def river_rounds() -> Run:
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)
    rng = random.Random(1)
    arms = [0, 1, 2]
    rewards = [rng.random() < 0.5 for _ in range(1000)]

    def run(number: int) -> None:
        for at in range(number):
            policy.update(policy.pull(arms), rewards[at % 1000])

    return run


def live_rounds(stream: str, *, segments: int = 1, **settings: Any) -> Run:
    learner = Learner({"a": 0.0, "b": 0.1, "c": 0.1}, mistake_cost=1, seed=1, **settings)
    rng = random.Random(1)
    p = STREAMS[stream]
    items = [["x", *("x" if rng.random() > p else "y" for _ in range(2))] for _ in range(1000)]
    names = [f"segment {at}" for at in range(segments)] if segments > 1 else [""]
    costs = [0.0, 0.1, 0.1] if settings.get("measured") else [None] * 3

    def run(number: int) -> None:
        if settings.get("measured"):
            for at in range(number):
                outputs = items[at % 1000]
                round = learner.begin()
                for stage in range(round.depth + 1):
                    round.observe(outputs[stage], costs[stage])
                round.end()
            return
        for at in range(number):
            outputs = items[at % 1000]
            round = learner.begin(names[at % segments])
            for stage in range(round.depth + 1):
                round.observe(outputs[stage])
            round.end()
        if "store" in settings:
            learner.flush()

    return run


def kept_rounds(stream: str) -> Run:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return live_rounds(stream, store=SqliteStore(f"{folder}/rounds.db", durability="behind"))


def two_writers_of(segments: int) -> str:
    return f"two writers on SQLite ({segments} segments)"


def two_writers(segments: int) -> Run:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def writer(durability: Literal["round", "behind"]) -> Learner:
        store = SqliteStore(f"{folder}/rounds.db", durability=durability)
        return Learner({"a": 0.0, "b": 0.1, "c": 0.1}, mistake_cost=1, seed=1, store=store)

    rng = random.Random(1)

    def play(learner: Learner, segment: int) -> None:
        round = learner.begin(f"segment {segment}")
        for _ in range(round.depth + 1):
            round.observe("x" if rng.random() > 0.1 else "y")
        round.end()

    first = writer("behind")
    for segment in range(segments):
        play(first, segment)
    first.close()
    writers = writer("round"), writer("round")

    def run(number: int) -> None:
        for at in range(number):
            play(writers[at % 2], rng.randrange(segments))

    return run


def fifty_stages() -> Run:
    learner = Learner([0.0, *[0.01] * 49], mistake_cost=1, seed=1)
    rng = random.Random(1)
    items = [["x" if rng.random() > 0.15 else "y" for _ in range(50)] for _ in range(100)]

    def run(number: int) -> None:
        for at in range(number):
            outputs = items[at % 100]
            round = learner.begin()
            for stage in range(round.depth + 1):
                round.observe(outputs[stage])
            round.end()

    return run


def cascades() -> tuple[Run, Run]:
    rng = np.random.default_rng(1)
    size = 5000
    truth = rng.integers(0, 10, size)
    tables = [np.where(rng.random(size) < p, truth, rng.integers(0, 10, size)) for p in (0.7, 0.9)]
    tables.append(truth)
    lists = [table.tolist() for table in tables]

    def single(at: int) -> Stage:
        return Stage(f"model {at}", lambda x: lists[at][x], 0.1 * at)

    def batch(at: int) -> Stage:
        return Stage(f"model {at}", lambda xs: tables[at][xs], 0.1 * at, batch=True)

    one = Cascade([single(at) for at in range(3)], mistake_cost=1, seed=1)
    many = Cascade([batch(at) for at in range(3)], mistake_cost=1, seed=1)
    items = np.arange(size)

    def one_by_one(number: int) -> None:
        for item in range(min(number, size)):
            one.answer(item)

    def together(number: int) -> None:
        many.answer_many(items[: min(number, size)], batch_size=size).collect()

    return one_by_one, together


def at_once() -> Run:
    async def odd(item: int) -> int:
        return item & 1

    async def one(item: int) -> int:
        return 1

    stages = [Stage("a", odd, 0), Stage("b", one, 0.1), Stage("c", odd, 0.1)]
    cascade = Cascade(stages, mistake_cost=1, seed=1)

    async def all_of(number: int) -> None:
        await asyncio.gather(*(cascade.answer_async(item) for item in range(number)))

    def run(number: int) -> None:
        asyncio.run(all_of(min(number, 1000)))

    return run


def import_seconds() -> float:
    code = "import time; t = time.perf_counter(); import stopwise; print(time.perf_counter() - t)"
    return statistics.median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    )


# ---- what is shown ---------------------------------------------------------------------------


def measured_elsewhere(folder: str | None, only: str, turns: int) -> dict[str, float]:
    """The same figures for another release, in a process of its own."""
    if folder is None:
        return {}
    command = [sys.executable, __file__, "--json", "--turns", str(turns), "--only", only]
    found = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": folder}
    )
    figures: dict[str, float] = json.loads(found.stdout)
    return figures


def show(fastest: dict[str, float], before: dict[str, float]) -> None:
    river = fastest.get("river")
    for name, us in fastest.items():
        line = f"{name:40} {us:8.2f} us"
        if river is not None and "," in name and "answer" not in name:
            line += f"   {river / us:6.2f} times river"
        if name in before:
            line += f"   {us / before[name]:6.2f} of the time before"
        print(line)


def show_markdown(fastest: dict[str, float], before: dict[str, float]) -> None:
    del before
    river = fastest.get("river", float("nan"))
    print(f"| mode | {' | '.join(STREAMS)} |\n|---|{'---|' * len(STREAMS)}")
    for mode in (*PLAIN, *RENEWING):
        cells = [f"{mode}, {stream}" for stream in STREAMS]
        times = [f"{fastest[c]:.1f} us ({river / fastest[c]:.1f})" for c in cells if c in fastest]
        if times:
            print(f"| {mode} | {' | '.join(times)} |")
    for name, us in fastest.items():
        if not name.endswith(tuple(f", {stream}" for stream in STREAMS)) or name.startswith(
            ("50", "SQL")
        ):
            print(f"\n{name}: {us:.1f} us", end="")
    print()


if __name__ == "__main__":
    main()
