"""How long the fast engine takes against another release of itself, in turns, in one run.

    git archive COMMIT src | tar x -C ../before
    python benchmarks/engine_against.py ../before/src              # the paper's 15 instances
    python benchmarks/engine_against.py ../before/src --horizon 10000 --policy uss-ucb

Each release runs in a process of its own, all on one core where the system can say so. They take
turns, and the least processor time of several runs counts: what else the machine does only adds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="folder with the other release's source")
    parser.add_argument("--policy", default="uss-ts", help="the rule that runs (default: uss-ts)")
    parser.add_argument("--horizon", type=int, default=10**6, help="rounds (default: a million)")
    parser.add_argument("--replications", type=int, default=700, help="in every run (default: 700)")
    parser.add_argument(
        "--runs", type=int, default=8, help="of each, and one to warm up (default: 8)"
    )
    chosen = parser.parse_args()
    before, now = Release(chosen.before, chosen.policy), Release(HERE, chosen.policy)
    ratios = []
    print("| instance | before, us a replication | now / before |\n|---|---:|---:|")
    for name in now.instances:
        least = {before: math.inf, now: math.inf}
        for run in range(chosen.runs + 1):
            for release in least:
                seconds = release.seconds(name, chosen.horizon, chosen.replications)
                if run:  # the first one warms up
                    least[release] = min(least[release], seconds)
        ratios.append(least[now] / least[before])
        a_replication = least[before] / chosen.replications * 1e6
        print(f"| {name} | {a_replication:.1f} | {ratios[-1]:.3f} |", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\nGeometric mean {mean:.3f}, from {min(ratios):.3f} to {max(ratios):.3f}.")


class Release:
    """A release of Stopwise in a process of its own, which answers with processor seconds."""

    def __init__(self, source: Path, policy: str) -> None:
        if not (source / "stopwise").is_dir():
            raise SystemExit(f"before: {source} holds no folder `stopwise`; give a release's `src`")
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer", policy],
            env={**os.environ, "PYTHONPATH": str(source.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.instances: list[str] = self._answer()

    def seconds(self, instance: str, horizon: int, replications: int) -> float:
        """Processor seconds of that many replications, `simulate` as a user calls it."""
        assert self._process.stdin is not None
        print(json.dumps([instance, horizon, replications]), file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self):  # type: ignore[no-untyped-def]
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def answer(policy: str) -> None:
    """Be a release: time what is asked for, line by line, with nothing that 0.2.0 has not."""
    from stopwise import simulate
    from stopwise.paper.environments import make_environment
    from stopwise.paper.instances import load_datasets

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    problems = {
        f"{name} {instance.number}": make_environment(name, "calibrated", instance.costs).problem
        for name, dataset in load_datasets().items()
        for instance in dataset.instances
    }
    print(json.dumps(list(problems)), flush=True)
    for line in sys.stdin:
        name, horizon, replications = json.loads(line)
        start = time.process_time()
        simulate(problems[name], policy, horizon=horizon, replications=replications, engine="fast")
        print(json.dumps(time.process_time() - start), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer(sys.argv[2])
    else:
        main()
