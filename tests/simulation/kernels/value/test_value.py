"""The compiled elimination walks decide as the policies do, and whole runs are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from stopwise.bench.families import make_family
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy
from stopwise.policies.imed import Imed
from stopwise.policies.voi import UssVoi, UssVoiAnytime
from stopwise.problem import Problem
from stopwise.simulation.compiled import value_settings
from stopwise.simulation.kernels.pairs import STEPS, A, B, new_pairs
from stopwise.simulation.kernels.value import worth
from stopwise.simulation.kernels.value.settings import Moment, span_of
from stopwise.simulation.kernels.value.walk import stays, walk
from stopwise.simulation.run import simulate

HORIZON = 5_000


def m_of(policy: Any, round: int) -> float:
    return 1.0 if isinstance(policy, Imed) else policy.rounds_to_repay(round)


def random_evidence(rng: np.random.Generator) -> tuple[Evidence, Costs, np.ndarray]:
    """Evidence as a noisy cascade would give it, with thresholds near its disagreements."""
    count = int(rng.integers(2, 8))
    flips = rng.random(count) * 0.5
    costs = Costs.from_stages((rng.random(count) * rng.choice([0.02, 0.1, 0.3])).tolist())
    evidence = Evidence(count)
    for _ in range(int(rng.choice([0, 3, 30, 300]))):
        outputs = (rng.random(count) < flips).astype(int).tolist()
        evidence.add(outputs[: int(rng.integers(1, count + 1))])
    return evidence, costs, flips


def pairs_of(evidence: Evidence, costs: Costs) -> np.ndarray:
    pairs = new_pairs(np.array(costs.thresholds), 1.0, 1.0)
    pairs[:, :, A] += evidence.disagreed
    pairs[:, :, B] += evidence.seen - evidence.disagreed
    pairs[:, :, STEPS] = 0.0
    return pairs


def rho_of(policy: Any, evidence: Evidence) -> float:
    return 0.0 if isinstance(policy, Imed) else policy.excess(evidence)


POLICIES = [UssVoi(horizon=HORIZON), UssVoiAnytime(), Imed(HORIZON)]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_same_decision_on_random_evidence(policy: Policy) -> None:
    rng = np.random.default_rng(7)
    settings = value_settings(policy)
    depths = set()
    for _ in range(400):
        evidence, costs, _ = random_evidence(rng)
        round = int(rng.integers(1, HORIZON))
        pairs, known = pairs_of(evidence, costs), worth.no_answers(costs.stage_count)
        m, rho = m_of(policy, round), rho_of(policy, evidence)
        room = np.zeros(costs.stage_count, dtype=np.int64)
        expected = int(policy.probabilities(evidence, round, costs).argmax())
        # Twice: the second time from the answers that the first one kept.
        for _ in range(2):
            assert walk(pairs, known, settings, Moment(float(m), rho), room) == expected
        depths.add(expected)
    assert len(depths) >= 4


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_a_sure_stop_stays_whatever_is_output(policy: Policy) -> None:
    """Where `stays` says so, no outputs of the rounds that it speaks of change the depth."""
    rng = np.random.default_rng(8)
    settings = value_settings(policy)
    sure = 0
    for _ in range(500):
        evidence, costs, flips = random_evidence(rng)
        round = int(rng.integers(1, HORIZON // 2))
        depth = int(policy.probabilities(evidence, round, costs).argmax())
        if depth == 0:
            continue
        n = int(rng.integers(5, 60))
        m = int(m_of(policy, round))
        switched, twice = float(evidence.switched), float(evidence.switched_twice)
        span = span_of(settings, m, n, switched, twice, depth)
        pairs, known = pairs_of(evidence, costs), worth.no_answers(costs.stage_count)
        if not stays(pairs, known, depth, n, settings, span):
            continue
        sure += 1
        extreme = rng.random()
        for ahead in range(n):
            if extreme < 0.3:  # all agree
                outputs = [0] * (depth + 1)
            elif extreme < 0.6:  # neighbours disagree
                outputs = [stage % 2 for stage in range(depth + 1)]
            else:
                outputs = (rng.random(costs.stage_count) < flips).astype(int).tolist()[: depth + 1]
            evidence.add(outputs)
            now = policy.probabilities(evidence, round + ahead + 1, costs)
            assert now[depth] == 1 or ahead == n - 1
    assert sure >= 20


def round_robin(rng: np.random.Generator, problem: Problem) -> Problem:
    return problem.with_rows(rng.choice(len(problem.p), size=211, p=problem.p))


@pytest.mark.parametrize("name", ["uss-voi", "uss-voi-anytime", "imed", "uss-voi:horizon=300"])
def test_whole_runs_are_the_same(name: str) -> None:
    """Rows in a fixed order leave nothing to chance, so both engines must count alike, exactly."""
    rng = np.random.default_rng(9)
    for instance in [*make_family("strong", 3, seed=3), *make_family("weak", 3, seed=3)]:
        problem = round_robin(rng, instance.problem)
        runs = [
            simulate(
                problem, name, horizon=1_500, replications=1, stream="round-robin", engine=engine
            ).stage_counts.tolist()
            for engine in ("fast", "reference")
        ]
        assert runs[0] == runs[1], instance.name


@pytest.mark.parametrize("name", ["uss-ts-jump", "uss-ts-tempered", "uss-voi"])
def test_random_runs_have_the_same_law(name: str) -> None:
    """Kolmogorov-Smirnov on the final regret; it rejects equal laws with chance below 1e-6."""
    problem = make_family("weak", 2, seed=4)[1].problem
    fast = simulate(problem, name, horizon=60, replications=4_000, seed=1, engine="fast")
    slow = simulate(problem, name, horizon=60, replications=300, seed=2, engine="reference")
    assert ks_2samp(fast.finals, slow.finals).pvalue > 1e-6
