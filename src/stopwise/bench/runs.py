"""Running the benchmark: one line of JSON for every finished run, so that nothing is done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from stopwise.bench.families import BenchInstance
from stopwise.policies.registry import make_policy
from stopwise.simulation.run import simulate

QUANTILES = tuple(range(0, 101))


@dataclass(frozen=True)
class Task:
    """One policy on one instance."""

    instance: BenchInstance
    policy: str
    horizon: int
    replications: int
    seed: int

    def key(self) -> str:
        """What the result depends on; a changed instance or size is another run."""
        problem = hashlib.sha256(self.instance.problem.to_json().encode()).hexdigest()[:16]
        policy = make_policy(self.policy)
        settings = json.dumps(dict(policy.settings()))  # with the defaults, which may change
        parts = (problem, policy.name, settings, self.horizon, self.replications, self.seed)
        return " ".join(str(part) for part in parts)


@dataclass(frozen=True)
class BenchResult:
    """The regret of one run at its horizon; `quantiles` holds the percentiles 0 to 100."""

    key: str
    instance: str
    family: str
    policy: str
    horizon: int
    replications: int
    mean: float
    quantiles: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle replication."""
        return self.quantiles[50]


def load_results(file: Path) -> dict[str, BenchResult]:
    """All finished runs; a last line that was cut off by an interruption is left out."""
    results: dict[str, BenchResult] = {}
    if not file.exists():
        return results
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            form = json.loads(line)
        except json.JSONDecodeError:
            continue
        form["quantiles"] = tuple(form["quantiles"])
        results[form["key"]] = BenchResult(**form)
    return results


def run_all(
    tasks: Sequence[Task],
    file: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, BenchResult]:
    """Run what is not yet in the file, and append every result as soon as it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    results = load_results(file)
    with file.open("a", encoding="utf-8") as out:
        if file.stat().st_size:
            out.write("\n")  # ends a line that an interruption may have cut off
        for done, task in enumerate(tasks, start=1):
            if task.key() not in results:
                result = _run(task, jobs)
                results[result.key] = result
                out.write(json.dumps(asdict(result)) + "\n")
                out.flush()
            if progress is not None:
                progress(done, len(tasks))
    return {task.key(): results[task.key()] for task in tasks}


def _run(task: Task, jobs: int) -> BenchResult:
    simulation = simulate(
        task.instance.problem,
        task.policy,
        horizon=task.horizon,
        replications=task.replications,
        seed=task.seed,
        grid=[task.horizon],
        jobs=jobs,
    )
    return BenchResult(
        key=task.key(),
        instance=task.instance.name,
        family=task.instance.family,
        policy=task.policy,
        horizon=task.horizon,
        replications=task.replications,
        mean=simulation.regret.mean,
        quantiles=tuple(float(q) for q in np.percentile(simulation.finals, QUANTILES)),
    )


@dataclass(frozen=True)
class Score:
    """A policy against USS-TS over many instances; ratios are of (regret + 1)."""

    instances: int
    geometric_mean: float
    worst: float
    worst_instance: str
    lost: float
    q95: float
    q99: float
    ratios: tuple[float, ...]


def score(results: Iterable[BenchResult], base: Iterable[BenchResult]) -> Score:
    """Compare run by run; one is added to both regrets because many are near 0.

    >>> def run(name, mean):
    ...     return BenchResult(name, name, "f", "p", 10, 1, mean, (mean,) * 101)
    >>> score([run("a", 1.0), run("b", 7.0)], [run("a", 7.0), run("b", 1.0)]).geometric_mean
    1.0
    """
    of_base = {result.instance: result for result in base}
    pairs = [(result, of_base[result.instance]) for result in results]

    def ratios(value: Callable[[BenchResult], float]) -> np.ndarray:
        return np.array([(value(mine) + 1) / (value(other) + 1) for mine, other in pairs])

    means = ratios(lambda result: result.mean)
    return Score(
        instances=len(pairs),
        geometric_mean=float(np.exp(np.log(means).mean())),
        worst=float(means.max()),
        worst_instance=pairs[int(means.argmax())][0].instance,
        lost=float((means > 1.05).mean()),
        q95=float(np.exp(np.log(ratios(lambda result: result.quantiles[95])).mean())),
        q99=float(np.exp(np.log(ratios(lambda result: result.quantiles[99])).mean())),
        ratios=tuple(sorted(means.tolist())),
    )
