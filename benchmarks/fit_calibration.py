"""Fit the three disagreement rates of each data set to the published curves of figures 1a to 1c.

    python benchmarks/fit_calibration.py [--points N] [--replications N] [--jobs N] [DATASET ...]

Prints what `src/stopwise/paper/data/calibration.toml` holds. The method:

1. The error rates are the printed ones, exactly; the draws are independent. Only p12, p13, p23 are
   free, inside a box around an earlier, coarser fit (a wide box makes step 4 inexact).
2. Rates are drawn at random from the box, and kept if a joint distribution with them exists and if
   all five instances have the optimal arm and the weak dominance flag of the paper's tables.
3. At each of them instances 1, 2, 3 and 5 are simulated with USS-TS (instance 4 is zero in all).
4. The logarithm of the mean regret at each published round is fitted by a quadratic in the rates.
   This averages the noise of the simulations over all of them.
5. The sum of squared differences to all published points is minimised over the rates that keep the
   flags. Each curve is taken in units of its last published point, so that all count alike, and
   each point is weighted by its round: one published curve (BSC, instance 2) has a shape that no
   rates give, and weighted, the misfit falls on its early rounds.
6. The result is rounded to four digits and simulated again, with many replications.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from scipy.optimize import minimize

from stopwise import Costs, Problem, StopwiseError
from stopwise.paper.instances import PublishedKey, get_dataset, load_published
from stopwise.simulation.run import simulate

FIGURES = {"bsc": "1a", "pima": "1b", "heart": "1c"}
INSTANCES = (1, 2, 3, 5)
HORIZON = 10_000
GRID = list(range(1000, HORIZON + 1, 1000))
# Low and high of p12, p13, p23.
BOXES = {
    "bsc": np.array([(0.218, 0.2335), (0.350, 0.3995), (0.360, 0.4257)]),
    "pima": np.array([(0.192, 0.208), (0.200, 0.2225), (0.012, 0.0185)]),
    "heart": np.array([(0.255, 0.275), (0.150, 0.270), (0.105, 0.140)]),
}


def problem_with(dataset, rates, costs):
    p12, p13, p23 = (float(rate) for rate in rates)
    table = [[0, p12, p13], [p12, 0, p23], [p13, p23, 0]]
    return Problem.from_rates(get_dataset(dataset).error_rates, table, costs)


def admissible(dataset, rates):
    """Whether a joint distribution exists and all five instances have the printed flags."""
    try:
        joint = problem_with(dataset, rates, Costs.from_cumulative((0, 0, 0)))
    except StopwiseError:
        return False
    for instance in get_dataset(dataset).instances:
        problem = joint.with_costs(instance.costs)
        if problem.optimal_stage + 1 != instance.optimal_arm:
            return False
        if problem.weak_dominance != instance.weak_dominance:
            return False
    return True


def mean_curve(dataset, number, rates, *, replications, seed, jobs):
    problem = problem_with(dataset, rates, get_dataset(dataset).instance(number).costs)
    result = simulate(
        problem, "uss-ts", horizon=HORIZON, replications=replications, seed=seed, grid=GRID,
        jobs=jobs,
    )  # fmt: skip
    return np.array([point.mean for point in result.curve])


def published_curve(dataset, number):
    points = load_published()[PublishedKey(FIGURES[dataset], str(number), "uss-ts")]
    return np.array([points[float(x)] for x in GRID])


def features(rates, box):
    """One, the rates, and their products, with the box scaled to [-1, 1]."""
    u = 2 * (np.atleast_2d(rates) - box[:, 0]) / (box[:, 1] - box[:, 0]) - 1
    products = [u[:, a] * u[:, b] for a in range(3) for b in range(a, 3)]
    return np.stack([np.ones(len(u)), *u.T, *products], axis=1)


def fit(dataset, points, replications, jobs):
    box = BOXES[dataset]
    rng = np.random.default_rng(2020)
    sample: list[Any] = []
    while len(sample) < points:
        rates = rng.uniform(box[:, 0], box[:, 1])
        if admissible(dataset, rates):
            sample.append(rates)
    curves: dict[int, list[Any]] = {number: [] for number in INSTANCES}
    for at, rates in enumerate(sample):
        for number in INSTANCES:
            count = max(replications // 5, 10) if number == 5 else replications
            curves[number].append(
                mean_curve(dataset, number, rates, replications=count, seed=at, jobs=jobs)
            )
        print(f"\r{dataset}: {at + 1} of {points} rates simulated", end="", file=sys.stderr)
    print(file=sys.stderr)
    table = features(np.array(sample), box)
    surfaces = {
        number: np.linalg.lstsq(table, np.log(np.array(curve)), rcond=None)[0]
        for number, curve in curves.items()
    }
    published = {number: published_curve(dataset, number) for number in INSTANCES}

    shapes = {number: curve / curve[-1] for number, curve in published.items()}
    weights = np.array(GRID) / HORIZON

    def misfit(rates):
        inside = ((rates >= box[:, 0]) & (rates <= box[:, 1])).all()
        if not inside or not admissible(dataset, rates):
            return np.inf
        row = features(rates, box)
        return sum(
            (weights * (np.exp(row @ surfaces[k])[0] / published[k][-1] - shapes[k]) ** 2).sum()
            for k in INSTANCES
        )

    starts = sorted(sample, key=misfit)[:8]
    found = [
        minimize(
            misfit, start, method="Nelder-Mead",
            options={
                # Small first steps: one that leaves the box teaches the search nothing.
                "initial_simplex": start + np.vstack([np.zeros(3), np.diag(box @ [-0.05, 0.05])]),
                "xatol": 1e-6, "fatol": 1e-9, "maxfev": 2000,
            },
        )
        for start in starts
    ]  # fmt: skip
    best = min(found, key=lambda result: result.fun)
    rates = np.round(best.x, 4)
    if not admissible(dataset, rates):
        # Rounding may step over the edge of what exists: take the nearest neighbour that does.
        steps = np.array(np.meshgrid(*[[-1e-4, 0, 1e-4]] * 3)).reshape(3, -1).T
        rates = min((r for r in rates + steps if admissible(dataset, r)), key=misfit)
    return rates, float(best.fun)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", metavar="DATASET", default=list(FIGURES))
    parser.add_argument("--points", type=int, default=150)
    parser.add_argument("--replications", type=int, default=800)
    parser.add_argument("--check", type=int, default=4000, help="replications of the last check")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    for dataset in given.datasets:
        rates, misfit = fit(dataset, given.points, given.replications, given.jobs)
        print(f"[{dataset}]  # sum of squares {misfit:.4f}")
        for name, rate in zip(("p12", "p13", "p23"), rates, strict=True):
            print(f"{name} = {rate:.4f}")
        for number in INSTANCES:
            curve = mean_curve(
                dataset, number, rates, replications=given.check, seed=10**6, jobs=given.jobs
            )
            target = published_curve(dataset, number)
            print(f"# instance {number}: {curve[-1]:.1f}, published {target[-1]:.1f}", flush=True)


if __name__ == "__main__":
    main()
