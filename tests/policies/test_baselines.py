"""USS-UCB and Algorithm 2 of Hanawal et al., against the pseudo code."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from stopwise import Costs, Evidence, Policy
from stopwise.policies.hanawal2 import Hanawal2
from stopwise.policies.uss_ucb import UssUcb


def test_uss_ucb_tests_both_sides():
    # Stage 1 fails only against 3; stage 2 passes upwards but not downwards: C_2 - C_1 > u_12.
    costs = Costs.from_cumulative((0.0, 0.5, 0.9))
    seen = [[0, 10**6, 10**6], [0, 0, 10**6], [0, 0, 0]]
    disagreed = [[0, 10**5, 95 * 10**4], [0, 0, 10**5], [0, 0, 0]]
    evidence = Evidence.from_counts(seen, disagreed)
    assert UssUcb().probabilities(evidence, 10**6, costs).tolist() == [0, 0, 1]
    assert Hanawal2().probabilities(evidence, 10**6, costs).tolist() == [0, 1, 0]


def test_strict_and_weak_inequalities():
    # At round 1 the bonus is 0, so that u = D/N = 1/4 exactly; the price is exactly 1/4.
    evidence = Evidence.from_counts([[0, 4], [0, 0]], [[0, 1], [0, 0]])
    costs = Costs.from_cumulative((0.0, 0.25))
    assert UssUcb().probabilities(evidence, 1, costs).tolist() == [0, 1]  # needs >
    assert Hanawal2().probabilities(evidence, 1, costs).tolist() == [1, 0]  # needs >=


class PlainUssUcb:
    """USS-UCB written from its pseudo-code, with its own state; arms 1..K."""

    def __init__(self, C, alpha):
        self.C, self.K, self.alpha, self.t = C, len(C), alpha, 0
        self.D, self.N = {}, {}

    def choose(self):
        self.t += 1
        if self.t == 1:
            return self.K
        u = {
            pair: float(Fraction(self.D[pair], self.N[pair]))
            + math.sqrt(self.alpha * math.log(self.t) / self.N[pair])
            for pair in self.N
        }
        C = {i: self.C[i - 1] for i in range(1, self.K + 1)}
        arms = range(1, self.K + 1)
        low = {i for i in arms if all(C[i] - C[j] <= u[j, i] for j in arms if j < i)} | {1}
        high = {i for i in arms if all(C[j] - C[i] > u[i, j] for j in arms if j > i)} | {self.K}
        return min((low & high) | {self.K})

    def observe(self, outputs):
        for j in range(2, len(outputs) + 1):
            for i in range(1, j):
                self.D[i, j] = self.D.get((i, j), 0) + (outputs[i - 1] != outputs[j - 1])
                self.N[i, j] = self.N.get((i, j), 0) + 1


class PlainHanawal2:
    """Algorithm 2 written from its pseudo-code, with counts per arm and running means."""

    def __init__(self, C, alpha):
        self.C, self.K, self.alpha, self.t = C, len(C), alpha, 0

    def choose(self):
        self.t += 1
        if self.t == 1:
            return self.K
        for i in range(1, self.K):
            passes = True
            for j in range(i + 1, self.K + 1):
                if self.n[j] == 0:
                    passes = False
                else:
                    u = float(self.g[i, j]) + math.sqrt(self.alpha * math.log(self.t) / self.n[j])
                    passes = passes and self.C[j - 1] - self.C[i - 1] >= u
            if passes:
                return i
        return self.K

    def observe(self, outputs):
        if self.t == 1:
            self.n = {i: int(i == self.K) for i in range(1, self.K + 1)}
            self.g = {
                (i, j): Fraction(int(outputs[i - 1] != outputs[j - 1]))
                for j in range(2, self.K + 1)
                for i in range(1, j)
            }
            return
        for j in range(1, len(outputs) + 1):
            self.n[j] += 1
            for i in range(1, j):
                differs = int(outputs[i - 1] != outputs[j - 1])
                self.g[i, j] += (differs - self.g[i, j]) / self.n[j]


@pytest.mark.parametrize(
    ("plain", "policy"),
    [
        (PlainUssUcb, UssUcb(0.5)),
        (PlainUssUcb, UssUcb(0.05)),
        (PlainHanawal2, Hanawal2(1.5)),
        (PlainHanawal2, Hanawal2(0.05)),
    ],
    ids=lambda value: value.label() if isinstance(value, Policy) else value.__name__,
)
def test_decisions_equal_the_pseudo_code_round_for_round(plain, policy):
    rng = np.random.default_rng(21)
    depths = set()
    for _ in range(30):
        count = int(rng.integers(2, 7))
        costs = Costs.from_cumulative(
            tuple(np.cumsum(rng.random(count) * rng.choice([0.2, 0.6, 1.5])))
        )
        wrong = rng.random(count) * 0.4
        own = plain(costs.cumulative, policy.alpha)
        evidence = Evidence(count)
        for t in range(1, 301):
            outputs = (rng.random(count) < wrong).astype(int).tolist()
            expected = own.choose() - 1
            depth = policy.draw(evidence, t, costs, rng)
            assert depth == expected, (count, t)
            own.observe(outputs[: depth + 1])
            policy.record(evidence, t, outputs[: depth + 1])
            depths.add((count, depth))
    assert len(depths) >= 12  # the runs did meet many depths


def test_hanawal_first_round_counts_only_pairs_with_the_last_stage():
    evidence = Evidence(3)
    Hanawal2().record(evidence, 1, ["a", "b", "a"])
    assert evidence.seen.tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert evidence.disagreed.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    Hanawal2().record(evidence, 2, ["a", "b", "a"])
    assert evidence.seen.tolist() == [[0, 1, 2], [0, 0, 2], [0, 0, 0]]
