"""Instances to compare policies on: the paper's learnable ones, and two seeded families.

Every instance of a family depends on the seed, the family and its number alone. Five at a time
(2, 3, 5, 8 and 16 stages), they are in turn for choosing parameters and for reporting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stopwise.checks import one_of, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.paper.environments import make_environment
from stopwise.paper.instances import load_datasets
from stopwise.problem import Problem

STAGES = (2, 3, 5, 8, 16)
SMALLEST_MARGIN, LARGEST_MARGIN = 0.003, 0.15


@dataclass(frozen=True)
class BenchInstance:
    """A problem with a name, and whether parameters may be chosen on it.

    >>> instance = make_family("strong", 5, seed=1)[0]
    >>> instance.name, instance.for_choosing, instance.problem.strong_dominance
    ('strong-000 (K=2, stage 0)', True, True)
    """

    name: str
    family: str
    problem: Problem
    for_choosing: bool


def paper_instances() -> list[BenchInstance]:
    """The paper's 12 learnable instances, calibrated; none is for choosing parameters.

    >>> [instance.problem.optimal_stage for instance in paper_instances()][:4]
    [0, 1, 0, 2]
    """
    return [
        BenchInstance(
            f"{dataset.name} {instance.number}",
            "paper",
            make_environment(dataset.name, "calibrated", instance.costs).problem,
            for_choosing=False,
        )
        for dataset in load_datasets().values()
        for instance in dataset.instances
        if instance.weak_dominance
    ]


def strong_dominance(rng: np.random.Generator, stage_count: int, best: int) -> Problem | None:
    """A stage that is right implies that all deeper ones are; None where the draw does not serve.

    The steps in error rate are random; each stage before the optimal one costs less than the
    mistakes it saves, and each one after it more, mostly.
    """
    first, last = rng.uniform(0.15, 0.5), rng.uniform(0.01, 0.1)
    saved = (first - last) * rng.dirichlet(np.full(stage_count - 1, 1.5))
    log_ratio = np.abs(rng.normal(0.0, 0.8, stage_count - 1)) * np.where(
        np.arange(stage_count - 1) < best, -1, 1
    )
    astray = rng.random(stage_count - 1) < 0.15
    price = saved * np.exp(np.where(astray, -log_ratio, log_ratio))
    errors = first - np.concatenate([[0.0], np.cumsum(saved)])
    # Pattern k: the first k stages are wrong.
    outputs = (np.arange(stage_count)[None, :] < np.arange(stage_count + 1)[:, None]).astype(
        np.int64
    )
    p = -np.diff(np.concatenate([[1.0], errors, [0.0]]))
    costs = Costs.from_cumulative(
        tuple((0.02 + np.concatenate([[0.0], np.cumsum(price)])).tolist())
    )
    return _accepted(_problem(outputs, p, costs), best)


def weak_dominance(rng: np.random.Generator, stage_count: int, best: int) -> Problem | None:
    """Weak dominance without the strong: deeper stages are better on average and err elsewhere.

    An item has a difficulty and every stage its own luck with it; a random sample of items is the
    joint distribution. Costs are laid so that the optimal stage has drawn margins.
    """
    items = int(rng.integers(40, 161))
    skill = np.sort(rng.uniform(0.0, 1.5, stage_count)) + rng.normal(0, 0.1, stage_count)
    hardness = rng.normal(0.0, 1.0, items)
    luck = rng.normal(0.0, 1.0, (items, stage_count)) * rng.uniform(0.2, 0.8)
    wrong = hardness[:, None] + luck > skill[None, :] + rng.uniform(-0.3, 0.6)
    p = rng.dirichlet(np.full(items, 3.0))
    errors = p @ wrong
    disagreements = np.array([p @ (wrong[:, best] != wrong[:, j]) for j in range(stage_count)])
    margins = np.exp(rng.uniform(np.log(0.005), np.log(LARGEST_MARGIN), stage_count))
    cumulative = np.zeros(stage_count)
    allowed = np.inf
    for j in range(best):
        allowed = min(allowed, (errors[j] - errors[best]) * rng.uniform(0.3, 0.95))
        cumulative[j] = -allowed
    for j in range(best + 1, stage_count):
        cumulative[j] = max(cumulative[j - 1], disagreements[j] + margins[j])
    cumulative += 0.02 - cumulative[0]
    if (np.diff(cumulative) < 0).any():
        return None
    problem = _accepted(
        _problem(wrong.astype(np.int64), p, Costs.from_cumulative(tuple(cumulative.tolist()))), best
    )
    return None if problem is None or problem.strong_dominance else problem


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], Problem | None]] = {
    "strong": strong_dominance,
    "weak": weak_dominance,
}


def _problem(outputs: np.ndarray, p: FloatArray, costs: Costs) -> Problem:
    """Equal patterns are merged; the truth is always 0, and 1 is wrong."""
    patterns, which = np.unique(outputs, axis=0, return_inverse=True)
    return Problem(
        costs,
        truth=np.zeros(len(patterns), dtype=np.int64),
        outputs=patterns.astype(np.int64),
        p=np.bincount(which.ravel(), weights=p).astype(np.float64),
        labels=(0, 1),
    )


def _accepted(problem: Problem, best: int) -> Problem | None:
    """Keep what can be learned and is not trivial: the smallest margin is not tiny, nor wide."""
    if problem.optimal_stage != best or not problem.weak_dominance:
        return None
    margins = np.delete(problem.margins, best)
    if not SMALLEST_MARGIN <= margins.min() <= LARGEST_MARGIN:
        return None
    if np.delete(problem.gaps, best).min() < SMALLEST_MARGIN:
        return None
    return problem


def make_family(family: str, number: int, seed: int) -> list[BenchInstance]:
    """The first `number` instances of a family: 2, 3, 5, 8 and 16 stages in turn.

    >>> [i.problem.stage_count for i in make_family("strong", 5, seed=1)]
    [2, 3, 5, 8, 16]
    """
    one_of("family", family, tuple(FAMILIES))
    whole_number("number", number, least=1)
    return [_instance(family, index, seed) for index in range(number)]


def _instance(family: str, index: int, seed: int) -> BenchInstance:
    key = (list(FAMILIES).index(family), index)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    stage_count = STAGES[index % len(STAGES)]
    # The optimal stage goes round the cascade as the numbers do, the same in both halves.
    best = (index // (2 * len(STAGES))) % stage_count
    while True:
        problem = FAMILIES[family](rng, stage_count, best)
        if problem is not None:
            name = f"{family}-{index:03d} (K={stage_count}, stage {best})"
            return BenchInstance(name, family, problem, (index // len(STAGES)) % 2 == 0)
