"""Decisions of the confidence-bound kernels, and what they claim to be sure of."""

from __future__ import annotations

import numpy as np

from random_cascades import random_costs, random_evidence
from stopwise.policies.hanawal2 import Hanawal2
from stopwise.policies.uss_ucb import UssUcb
from stopwise.simulation.compiled import confidence_settings as settings_of
from stopwise.simulation.kernels import pairs
from stopwise.simulation.kernels.confidence.replications import decide
from stopwise.simulation.kernels.confidence.sure_depths import surely_reaches


def test_decide_is_the_policy() -> None:
    rng = np.random.default_rng(4)
    stages = set()
    for _ in range(4000):
        count = int(rng.integers(2, 9))
        evidence = random_evidence(rng, count, int(rng.choice([2, 50, 10_000, 10**7])))
        costs = random_costs(rng, count)
        round = int(rng.choice([1, 2, 50, 10**6, 10**9]))
        alpha = float(rng.choice([0.05, 0.5, 1.5]))
        state = np.zeros((count, count, 8))
        state[:, :, pairs.X] = costs.thresholds
        state[:, :, pairs.A] = evidence.disagreed
        state[:, :, pairs.B] = evidence.seen - evidence.disagreed
        for policy in (UssUcb(alpha), Hanawal2(alpha)):
            stage = decide(state, 0, round, settings_of(policy))
            wanted = int(policy.probabilities(evidence, round, costs).argmax())
            assert stage == wanted
            stages.add((policy.name, stage))
    assert len(stages) > 12  # not always the same decision


def test_a_sure_depth_is_sure() -> None:
    """Where it says that shallow stages are passed over, the rule does so on random paths.

    Rounds stop there or deeper; with pairs frozen, there only.
    """
    rng = np.random.default_rng(6)
    sure = {True: 0, False: 0}
    for _ in range(5000):
        count = int(rng.integers(2, 6))
        evidence = random_evidence(rng, count, int(rng.choice([30, 3000])))
        costs = random_costs(rng, count)
        state = np.zeros((count, count, 8))
        state[:, :, pairs.X] = costs.thresholds
        state[:, :, pairs.A] = evidence.disagreed
        state[:, :, pairs.B] = evidence.seen - evidence.disagreed
        depth, rounds = int(rng.integers(1, count)), int(rng.choice([5, 40]))
        round, alpha = int(rng.choice([10, 10**4])), float(rng.choice([0.1, 0.5]))
        two_sided, frozen = bool(rng.integers(2)), bool(rng.integers(2))
        chosen = settings_of(UssUcb(alpha) if two_sided else Hanawal2(alpha))
        if not surely_reaches(state, depth, round, rounds, chosen, frozen):
            continue
        sure[frozen] += 1
        outputs = rng.integers(0, 3, size=(3, count)).astype(np.int32)
        for step in range(rounds):
            assert decide(state, 0, round + step, chosen) >= depth
            stop = depth if frozen or step % 2 else int(rng.integers(depth, count))
            pairs.observe_many(state, outputs, int(rng.integers(3)), stop, 1)
    assert min(sure.values()) > 100
