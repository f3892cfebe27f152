"""Regret against an independent implementation, written from the paper's pseudo-code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from random_cascades import random_problem
from stopwise import simulate


class PlainTs:
    def __init__(self, C, rng):
        self.C, self.K, self.rng = C, len(C), rng
        self.S = [[1] * self.K for _ in C]
        self.F = [[1] * self.K for _ in C]

    def stop(self, t):
        for i in range(self.K):
            samples = [self.rng.beta(self.S[i][j], self.F[i][j]) for j in range(i + 1, self.K)]
            prices = [self.C[j] - self.C[i] for j in range(i + 1, self.K)]
            if all(price > sample for price, sample in zip(prices, samples, strict=True)):
                return i
        raise AssertionError("the last stage has no sample to fail")

    def learn(self, t, y):
        for i in range(len(y)):
            for j in range(i + 1, len(y)):
                if y[i] != y[j]:
                    self.S[i][j] += 1
                else:
                    self.F[i][j] += 1


class PlainUcb:
    def __init__(self, C, rng):
        self.C, self.K = C, len(C)
        self.D = [[0] * self.K for _ in C]
        self.N = [[0] * self.K for _ in C]

    def u(self, i, j, t):
        return self.D[i][j] / self.N[i][j] + math.sqrt(0.5 * math.log(t) / self.N[i][j])

    def stop(self, t):
        last = self.K - 1
        if t == 1:
            return last
        for i in range(last):
            low = all(self.C[i] - self.C[j] <= self.u(j, i, t) for j in range(i))
            if low and all(self.C[j] - self.C[i] > self.u(i, j, t) for j in range(i + 1, self.K)):
                return i
        return last

    def learn(self, t, y):
        for i in range(len(y)):
            for j in range(i + 1, len(y)):
                self.D[i][j] += y[i] != y[j]
                self.N[i][j] += 1


class PlainHanawal(PlainUcb):
    def __init__(self, C, rng):
        super().__init__(C, rng)
        self.n = [0] * self.K
        self.g = [[0.0] * self.K for _ in C]

    def stop(self, t):
        last = self.K - 1
        if t == 1:
            return last
        for i in range(last):
            if all(
                self.n[j] > 0
                and self.C[j] - self.C[i] >= self.g[i][j] + math.sqrt(1.5 * math.log(t) / self.n[j])
                for j in range(i + 1, self.K)
            ):
                return i
        return last

    def learn(self, t, y):
        for j in range(len(y)):
            if t > 1 or j == self.K - 1:
                self.n[j] += 1
            for i in range(j):
                weight = 1 / max(self.n[j], 1)
                self.g[i][j] += ((y[i] != y[j]) - self.g[i][j]) * weight


def plain_final_regret(make, problem, horizon, rng):
    rows = rng.choice(len(problem.p), size=horizon, p=problem.p / problem.p.sum())
    C = [c / problem.costs.mistake_cost for c in problem.costs.cumulative]
    error = [
        sum(
            w
            for y, o, w in zip(problem.truth, problem.outputs[:, i], problem.p, strict=True)
            if o != y
        )
        for i in range(len(C))
    ]
    total = [e + c for e, c in zip(error, C, strict=True)]
    learner = make(C, rng)
    outputs = problem.outputs.tolist()
    regret = 0.0
    for t in range(1, horizon + 1):
        depth = learner.stop(t)
        learner.learn(t, outputs[rows[t - 1]][: depth + 1])
        regret += total[depth] - min(total)
    return regret


COMPARED = [
    (name, count)
    for name in ("uss-ts", "uss-ts-literal", "uss-ucb", "hanawal-2")
    for count in (2, 4, 8)
]


@pytest.mark.parametrize(("name", "count"), COMPARED)
def test_regret_equals_an_independent_implementation(name, count):
    """Difference of two means in standard errors, for each engine that runs the policy.

    False-alarm rate over all comparisons: 1e-6. There are at most 2 x 12; the level of each is
    4e-8, for which the law of the difference of the means is taken as Student's t with 39 degrees
    of freedom, no fewer than Welch's for samples of 40 or more.
    """
    plain = {
        "uss-ts": PlainTs, "uss-ts-literal": PlainTs,
        "uss-ucb": PlainUcb, "hanawal-2": PlainHanawal,
    }[name]  # fmt: skip
    case = random_problem(np.random.default_rng(1000 + count), count)
    horizon, own_runs = 100 if count > 5 else 200, 40
    rng = np.random.default_rng(count)
    own = np.array([plain_final_regret(plain, case, horizon, rng) for _ in range(own_runs)])
    usual = simulate(case, name, horizon=1, replications=1).engine
    for engine in {"reference", usual}:
        runs = 40 if engine == "reference" else 400
        result = simulate(case, name, horizon=horizon, replications=runs, seed=17, engine=engine)
        error = math.sqrt(own.var(ddof=1) / own_runs + result.finals.var(ddof=1) / runs)
        bound = scipy.stats.t.isf(1e-6 / (2 * len(COMPARED)) / 2, 39)
        assert abs(own.mean() - result.regret.mean) <= bound * error + 1e-9 * horizon, engine
