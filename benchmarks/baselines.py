"""What one would otherwise run: the paper's loop in NumPy and in numba, two bandit libraries."""

# ruff: noqa: NPY002  (inside numba this is its fastest generator)
from __future__ import annotations

import random

import numpy as np
from numba import njit

from stopwise import Problem


def numpy_loop(problem: Problem, rounds: int, seed: int = 0) -> np.ndarray:
    """USS-TS as printed, in plain Python with NumPy's generator."""
    rng = np.random.default_rng(seed)
    C, outputs = problem.costs.in_mistakes, problem.outputs
    cumulative = np.cumsum(problem.p)
    last = problem.stage_count - 1
    S, F = np.ones((last + 1, last + 1)), np.ones((last + 1, last + 1))
    counts = np.zeros(last + 1, dtype=np.int64)
    for _ in range(rounds):
        i = 0
        while i < last and not (C[i + 1 :] - C[i] > rng.beta(S[i, i + 1 :], F[i, i + 1 :])).all():
            i += 1
        met = int(np.searchsorted(cumulative, rng.random(), side="right"))
        y = outputs[min(met, len(outputs) - 1)]
        for j in range(1, i + 1):
            differ = y[:j] != y[j]
            S[:j, j] += differ
            F[:j, j] += ~differ
        counts[i] += 1
    return counts


@njit(cache=True)
def numba_loop(outputs, cumulative, C, rounds, replications, seed):
    """USS-TS as printed, compiled: a Beta draw for every pair until one fails (early exit)."""
    np.random.seed(seed)
    last = len(C) - 1
    total = np.zeros(last + 1, dtype=np.int64)
    for _ in range(replications):
        S, F = np.ones((last + 1, last + 1)), np.ones((last + 1, last + 1))
        for _ in range(rounds):
            i = 0
            while i < last:
                stops = True
                for j in range(i + 1, last + 1):
                    if C[j] - C[i] <= np.random.beta(S[i, j], F[i, j]):
                        stops = False
                        break
                if stops:
                    break
                i += 1
            if i > 0:  # a stop at the first stage shows nothing, so nothing need be drawn
                u = np.random.random()
                y = 0
                while y < len(cumulative) - 1 and u >= cumulative[y]:
                    y += 1
                for j in range(1, i + 1):
                    for k in range(j):
                        if outputs[y, k] != outputs[y, j]:
                            S[k, j] += 1.0
                        else:
                            F[k, j] += 1.0
            total[i] += 1
    return total


def river_loop(problem: Problem, rounds: int, seed: int = 0) -> None:
    """river's Thompson sampling on Bernoulli arms that pay as often as the stages are right."""
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed)
    arms = list(range(problem.stage_count))
    pays, rng = (1 - problem.error_rates).tolist(), random.Random(seed)
    for _ in range(rounds):
        arm = policy.pull(arms)
        policy.update(arm, rng.random() < pays[arm])


def mabwiser_loop(problem: Problem, rounds: int, seed: int = 0) -> None:
    """MABWiser's Thompson sampling on the same arms, updated after every round."""
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(problem.stage_count))
    mab = MAB(arms=arms, learning_policy=LearningPolicy.ThompsonSampling(), seed=seed)
    mab.fit(decisions=arms, rewards=[1] * len(arms))
    pays, rng = (1 - problem.error_rates).tolist(), random.Random(seed)
    for _ in range(rounds):
        arm = mab.predict()
        mab.partial_fit(decisions=[arm], rewards=[int(rng.random() < pays[arm])])
