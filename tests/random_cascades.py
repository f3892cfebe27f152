"""Random evidence, costs and problems, for tests over many situations."""

from __future__ import annotations

import numpy as np

from stopwise import Costs, Evidence, Problem


def random_evidence(rng: np.random.Generator, count: int, most: int) -> Evidence:
    seen = np.triu(rng.integers(0, most + 1, size=(count, count)), 1)
    seen[rng.random(seen.shape) < 0.1] = 0
    shares = rng.choice([0.0, 0.02, 0.2, 0.5, 1.0], size=seen.shape)
    return Evidence.from_counts(seen, rng.binomial(seen, shares))


def random_costs(rng: np.random.Generator, count: int) -> Costs:
    steps = rng.random(count) * rng.choice([0.05, 0.3, 1.2]) * (rng.random(count) < 0.8)
    return Costs.from_cumulative(tuple(np.cumsum(steps).tolist()))


def random_problem(rng: np.random.Generator, count: int) -> Problem:
    """A random joint distribution over a few hundred patterns, with errors falling with depth."""
    number = int(rng.integers(20, 300))
    truth = rng.integers(0, 2, size=number)
    wrong = np.sort(rng.random(count) * 0.5)[::-1]
    flips = rng.random((number, count)) < wrong
    p = rng.dirichlet(np.ones(number))
    patterns = [
        (int(y), (y ^ flip).tolist(), float(w))
        for y, flip, w in zip(truth, flips.astype(int), p, strict=True)
    ]
    costs = np.cumsum(rng.random(count) * rng.choice([0.1, 0.3]))
    return Problem.from_patterns(patterns, Costs.from_cumulative(tuple(costs)))
