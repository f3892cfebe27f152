"""The drift alarm: how often it is raised without cause, and how soon with one.

    python benchmarks/drift_table.py              # about two minutes; prints the tables of the docs

Two stages. "Without cause": rates never change; the share of learners that raise any alarm, ever,
at `false_alarm=0.05`. "With a cause": after 1,000 or 5,000 observations the rate changes, at once
or evenly over 5,000 observations, at the usual `false_alarm=0.01`; the share of 100 learners that
notice within 10,000 more, and how many observations half and nine tenths of them need.
"""

from __future__ import annotations

import json
import random
from typing import NamedTuple

from stopwise.live.watching.drift import Drift, DriftWatch


def any_alarm(seed: int, segments: int, rounds: int, restarts: int, rate: float) -> bool:
    """Whether a learner whose rates never change ever raises an alarm."""
    rng = random.Random(seed)
    watch = DriftWatch(2, Drift(false_alarm=0.05))
    every = rounds // (restarts + 1)
    for at in range(rounds):
        for segment in range(segments):
            if watch.observe(str(segment), ((0, rng.random() < rate),)):
                return True
        if restarts and at % every == every - 1:
            forms = {name: json.dumps(watch.form_of(name)) for name in watch.segments}
            watch = DriftWatch(2, Drift(false_alarm=0.05))
            for name, form in forms.items():
                watch.restore(name, json.loads(form))
    return False


def delay(seed: int, change: Change, limit: int) -> int | None:
    """How many observations after a change began the alarm comes; None where it does not."""
    rng = random.Random(seed)
    watch = DriftWatch(2, Drift())
    watch.begin("s", change.segment, None)
    for _ in range(change.seen):
        watch.observe("s", ((0, rng.random() < change.before),))
    for at in range(1, limit + 1):
        share = min(1.0, at / change.over)
        rate = change.before + share * (change.after - change.before)
        if watch.observe("s", ((0, rng.random() < rate),)):
            return at
    return None


class Change(NamedTuple):
    """A rate that changes after some observations, at once or over others."""

    before: float
    after: float
    seen: int = 1000
    over: int = 1
    segment: int = 1


def without_cause() -> None:
    print("| segments | rounds of each | restarts | learners | raised an alarm |")
    print("|---|---|---|---|---|")
    for segments, rounds, restarts, runs in (
        (1, 20_000, 0, 60), (1, 10_000, 100, 60), (200, 400, 0, 40),
    ):  # fmt: skip
        alarms = sum(any_alarm(seed, segments, rounds, restarts, 0.2) for seed in range(runs))
        print(f"| {segments} | {rounds:,} | {restarts} | {runs} | {alarms} |")


def with_a_cause() -> None:
    print("| change | seen before | segment | noticed | half within | nine tenths within |")
    print("|---|---|---|---|---|---|")
    for change in (
        Change(0.1, 0.6), Change(0.1, 0.4), Change(0.1, 0.3), Change(0.1, 0.2),
        Change(0.1, 0.2, over=5000), Change(0.3, 0.2), Change(0.1, 0.15),
        Change(0.1, 0.15, seen=5000), Change(0.1, 0.12), Change(0.1, 0.12, seen=5000),
        Change(0.02, 0.05), Change(0.1, 0.2, segment=200),
    ):  # fmt: skip
        runs = 100
        delays = [delay(seed, change, 10_000) for seed in range(runs)]
        found = sorted(one for one in delays if one is not None)
        half, most = (
            f"{found[int(share * runs) - 1]:,}" if len(found) >= share * runs else "-"
            for share in (0.5, 0.9)
        )
        name = "first" if change.segment == 1 else f"{change.segment}th"
        slowly = "" if change.over == 1 else f", over {change.over:,} observations"
        print(
            f"| {change.before:.0%} to {change.after:.0%}{slowly} | {change.seen:,} | {name}"
            f" | {len(found) / runs:.0%} | {half} | {most} |",
            flush=True,
        )


if __name__ == "__main__":
    without_cause()
    print()
    with_a_cause()
