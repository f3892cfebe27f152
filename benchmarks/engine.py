"""How fast the engine is, against what one would otherwise run. Prints and writes RESULTS.md.

All times are processor time of one core, the best of several runs, in one process.

    python benchmarks/engine.py            about ten minutes
    python benchmarks/engine.py --quick    a few instances, to see that it works
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from baselines import mabwiser_loop, numba_loop, numpy_loop, river_loop

from stopwise import Costs, Problem, simulate
from stopwise.paper.environments import make_environment
from stopwise.paper.instances import load_datasets

RESULTS = Path(__file__).with_name("RESULTS.md")
lines: list[str] = []


def say(line: str = "") -> None:
    """A line of the report, shown and kept."""
    print(line, flush=True)
    lines.append(line)


def best(run: Callable[[], object], times: int = 3) -> float:
    """Processor seconds of the fastest of several runs."""
    found = math.inf
    for _ in range(times):
        start = time.process_time()
        run()
        found = min(found, time.process_time() - start)
    return found


def instances() -> dict[str, Problem]:
    """The 15 instances of the paper, with calibrated disagreement rates."""
    return {
        f"{name} {instance.number}": make_environment(name, "calibrated", instance.costs).problem
        for name, dataset in load_datasets().items()
        for instance in dataset.instances
    }


def engine_time(
    problem: Problem, policy: str, horizon: int, *, least: float = 0.25, engine: str = "auto"
) -> float:
    """Seconds of a replication, `simulate` as a user calls it, over enough replications."""
    replications = 4 if engine == "reference" else 16

    def run() -> None:
        simulate(problem, policy, horizon=horizon, replications=replications, engine=engine)

    while (seconds := best(run, 1)) < least / 4 and replications < 8192:
        replications *= 4
    return min(seconds, best(run, 3)) / replications


def numba_time(problem: Problem, rounds: int, replications: int, times: int = 3) -> float:
    """Seconds of a replication of the numba loop with Beta draws."""
    C, cumulative = np.array(problem.costs.in_mistakes), np.cumsum(problem.p)
    numba_loop(problem.outputs, cumulative, C, 10, 1, 0)
    seconds = best(
        lambda: numba_loop(problem.outputs, cumulative, C, rounds, replications, 1), times
    )
    return seconds / replications


def geometric(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def verdict(values: list[float], least: float, mean: float) -> str:
    """Smallest and geometric mean against their goals."""
    low, middle = min(values), geometric(values)
    words = {True: "reached", False: "missed"}
    return (
        f"smallest {low:.0f} (goal {least:.0f}: {words[low >= least]}), geometric mean"
        f" {middle:.0f} (goal {mean:.0f}: {words[middle >= mean]})"
    )


def against_others(problems: dict[str, Problem]) -> None:
    """Rounds a second of everything, T = 10^4, and the ratio to the numba loop at 10^6."""
    say("## USS-TS on the 15 instances: rounds a second, one core")
    say()
    say(
        "| instance | MABWiser | NumPy loop | river | reference engine | numba loop | this engine"
        " | × numba | × river | T = 10⁶: × numba |"
    )
    say("|---|" + "---:|" * 9)
    at_ten_thousand, at_a_million, over_river = [], [], []
    for name, problem in problems.items():
        mab = 400 / best(lambda p=problem: mabwiser_loop(p, 400), 2)
        plain = 2000 / best(lambda p=problem: numpy_loop(p, 2000), 2)
        river = 5000 / best(lambda p=problem: river_loop(p, 5000), 3)
        reference = 500 / engine_time(problem, "uss-ts", 500, least=0.05, engine="reference")
        numba = 1e4 / numba_time(problem, 10_000, 30)
        ours = 1e4 / engine_time(problem, "uss-ts", 10_000)
        long_numba = 1e6 / numba_time(problem, 1_000_000, 1, 2)
        long_ours = 1e6 / engine_time(problem, "uss-ts", 1_000_000)
        at_ten_thousand.append(ours / numba)
        over_river.append(ours / river)
        at_a_million.append(long_ours / long_numba)
        say(
            f"| {name} | {mab:,.0f} | {plain:,.0f} | {river:,.0f} | {reference:,.0f}"
            f" | {numba / 1e6:.2f} M | {ours / 1e6:.0f} M | {ours / numba:.1f}"
            f" | {ours / river:,.0f} | {long_ours / long_numba:,.0f} |"
        )
    say()
    say(f"- T = 10⁴, times the numba loop: {verdict(at_ten_thousand, 15, 40)}")
    say(f"- T = 10⁴, times river: {verdict(over_river, 300, 300)}")
    say(f"- T = 10⁶, times the numba loop: {verdict(at_a_million, 100, 1000)}")
    say()
    say(
        "river and MABWiser run their own Thompson sampling on three Bernoulli arms that pay as"
        " often as the stages are right: an easier task, and what one would otherwise run. All"
        " others run USS-TS. The numba loop draws Beta numbers pair by pair and stops"
        " at the first that fails."
    )
    say()


def growth(problems: dict[str, Problem]) -> None:
    """Time at 10^8 rounds over time at 10^6, for the rules with shortcuts."""
    say("## Time of 10⁸ rounds over time of 10⁶ rounds")
    say()
    say("| instance | USS-TS | USS-UCB | Algorithm 2 |")
    say("|---|---:|---:|---:|")
    policies = ("uss-ts", "uss-ucb", "hanawal-2")
    ratios: dict[str, list[float]] = {policy: [] for policy in policies}
    for name, problem in problems.items():
        for policy in policies:
            short, long = (engine_time(problem, policy, T, least=0.1) for T in (10**6, 10**8))
            ratios[policy].append(long / short)
        say(f"| {name} | " + " | ".join(f"{ratios[policy][-1]:.2f}" for policy in policies) + " |")
    say()
    for policy in policies:
        most, middle = max(ratios[policy]), geometric(ratios[policy])
        words = {True: ": reached", False: ": missed"}
        goals = [f" (goal at most 4{words[middle <= 4]})", f" (goal at most 10{words[most <= 10]})"]
        if policy != "uss-ts":
            goals = ["", ""]
        say(f"- {policy}: geometric mean {middle:.2f}{goals[0]}, largest {most:.1f}{goals[1]}")
    say()
    say(
        "Algorithm 2 on pima 2: a margin of 0.0038 keeps every round at the last stage, taken"
        " in bulk, until more than 1.6 million looks are in, which is after the 10⁶th round."
        " From then on looks are taken one by one (0.3 million of them up to 10⁸ rounds)."
        " USS-UCB and Algorithm 2 have no goal here: their time grows with their looks, and may"
        " be linear in the horizon."
    )
    say()


def chain(count: int) -> Problem:
    """A cascade of any length: each stage repeats the one before, or errs on its own, ever less."""
    rng = np.random.default_rng(count)
    truth = rng.integers(0, 3, size=400)
    outputs = np.empty((400, count), dtype=int)
    for stage in range(count):
        source = truth if stage == 0 or rng.random() < 0.5 else outputs[:, stage - 1]
        wrong = rng.random(400) < 0.4 * (1 - stage / count)
        outputs[:, stage] = np.where(wrong, rng.integers(0, 3, size=400), source)
    costs = np.linspace(0.0, 0.6, count)
    return Problem.from_predictions(
        outputs.tolist(), truth.tolist(), Costs.from_cumulative(tuple(costs.tolist()))
    )


def scaling(problems: dict[str, Problem]) -> None:
    """Against the horizon, the number of stages and the number of replications."""
    say("## USS-TS: milliseconds of a replication against the horizon")
    say()
    horizons = [10**k for k in range(3, 10)]
    say("| instance | " + " | ".join(f"10^{k}" for k in range(3, 10)) + " |")
    say("|---|" + "---:|" * 7)
    for name in [name for name in problems if name.endswith((" 1", " 2"))]:
        times = [engine_time(problems[name], "uss-ts", T, least=0.1) for T in horizons]
        say(f"| {name} | " + " | ".join(f"{1e3 * t:.3g}" for t in times) + " |")
    say()
    say("## USS-TS: milliseconds of a replication of 10⁴ rounds against the number of stages")
    say()
    counts = (2, 3, 5, 8, 12, 20, 35, 50)
    say("| stages | " + " | ".join(map(str, counts)) + " |")
    say("|---|" + "---:|" * len(counts))
    times = [engine_time(chain(count), "uss-ts", 10_000, least=0.1) for count in counts]
    say("| ms | " + " | ".join(f"{1e3 * t:.3g}" for t in times) + " |")
    say()
    say("## Replications: bsc 1, USS-TS, 10⁴ rounds, one core")
    say()
    say("| replications | seconds | peak memory |")
    say("|---:|---:|---:|")
    for horizon, replications in ((10**4, 100), (10**4, 1000), (10**4, 10_000), (10**9, 1000)):
        seconds, megabytes = in_process(horizon, replications)
        label = f"{replications:,}" + (" (of 10⁹ rounds)" if horizon > 10**4 else "")
        say(f"| {label} | {seconds:.2f} | {megabytes:.0f} MB |")
    say()


def in_process(horizon: int, replications: int) -> tuple[float, float]:
    """Seconds and peak memory in a process of its own."""
    program = (
        "import resource, sys, time\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from engine import instances\n"
        "from stopwise import simulate\n"
        "problem = instances()['bsc 1']\n"
        "simulate(problem, 'uss-ts', horizon=10, replications=1)\n"
        "start = time.process_time()\n"
        f"simulate(problem, 'uss-ts', horizon={horizon}, replications={replications})\n"
        "print(time.process_time() - start,"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def machine() -> str:
    """What it ran on, without a name."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    cores = 0
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                model, cores = line.partition(":")[2].strip(), cores + 1
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("numpy", "numba", "scipy", "river", "mabwiser")
    )
    return f"{model}, {cores} cores; Python {platform.python_version()}, {versions}"


def main() -> None:
    """Measure everything and write RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two instances, nothing written")
    quick = parser.parse_args().quick
    problems = instances()
    if quick:
        problems = {name: problems[name] for name in ("bsc 1", "pima 2")}
    for policy in ("uss-ts", "uss-ucb", "hanawal-2"):
        simulate(problems["bsc 1"], policy, horizon=10, replications=1)  # compile
    say("# The engine, measured")
    say()
    say(f"{machine()}. Processor time of one core, best of several, all in one run of")
    say("`benchmarks/engine.py`.")
    say()
    against_others(problems)
    growth(problems)
    scaling(problems)
    if not quick:
        RESULTS.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
