"""The three algorithms as printed, compiled, sharing nothing with stopwise: what tests compare to.

Everything is 0-based but the clock. `rows` is the pattern of every item of a round-robin stream and
empty for independent draws. The result is how often each stage was stopped at, a row a replication.
"""

# ruff: noqa: NPY002  (inside numba this is its own generator, and none of stopwise's)
from __future__ import annotations

import numpy as np
from numba import njit

from stopwise import Problem


def play(
    problem: Problem,
    algorithm: str,
    *,
    horizon: int,
    replications: int,
    seed: int,
    stream: str = "independent",
    settings: tuple[float, ...] = (),
) -> np.ndarray:
    """Stage counts of "uss-ts" (settings S, F), "uss-ucb" (alpha) or "hanawal-2" (alpha)."""
    loop = {"uss-ts": uss_ts, "uss-ucb": uss_ucb, "hanawal-2": hanawal_2}[algorithm]
    rows = np.zeros(0, dtype=np.int64) if stream == "independent" else problem.rows
    counts: np.ndarray = loop(
        np.ascontiguousarray(problem.outputs),
        np.cumsum(problem.p),
        rows,
        np.array(problem.costs.cumulative) / problem.costs.mistake_cost,
        horizon,
        replications,
        seed,
        *settings,
    )
    return counts


@njit(cache=True)
def next_pattern(cumulative, rows, t):
    if len(rows) > 0:
        return rows[(t - 1) % len(rows)]
    u = np.random.random() * cumulative[-1]
    k = 0
    while k < len(cumulative) - 1 and u >= cumulative[k]:
        k += 1
    return k


@njit(cache=True)
def uss_ts(outputs, cumulative, rows, C, horizon, replications, seed, prior_s, prior_f):
    np.random.seed(seed)
    K = len(C)
    result = np.zeros((replications, K), dtype=np.int64)
    for replication in range(replications):
        S = np.full((K, K), prior_s)
        F = np.full((K, K), prior_f)
        for t in range(1, horizon + 1):
            i = 0
            while i < K - 1:
                preferred = True
                for j in range(i + 1, K):
                    if not C[j] - C[i] > np.random.beta(S[i, j], F[i, j]):
                        preferred = False
                        break
                if preferred:
                    break
                i += 1
            y = next_pattern(cumulative, rows, t)
            for a in range(i):
                for b in range(a + 1, i + 1):
                    if outputs[y, a] != outputs[y, b]:
                        S[a, b] += 1.0
                    else:
                        F[a, b] += 1.0
            result[replication, i] += 1
    return result


@njit(cache=True)
def uss_ucb(outputs, cumulative, rows, C, horizon, replications, seed, alpha):
    np.random.seed(seed)
    K = len(C)
    result = np.zeros((replications, K), dtype=np.int64)
    for replication in range(replications):
        D = np.zeros((K, K))
        N = np.zeros((K, K))
        for t in range(1, horizon + 1):
            stop = K - 1
            if t > 1:
                for i in range(K - 1):
                    in_low, in_high = True, True
                    for j in range(i):
                        u = D[j, i] / N[j, i] + np.sqrt(alpha * np.log(t) / N[j, i])
                        in_low = in_low and C[i] - C[j] <= u
                    for j in range(i + 1, K):
                        u = D[i, j] / N[i, j] + np.sqrt(alpha * np.log(t) / N[i, j])
                        in_high = in_high and C[j] - C[i] > u
                    if in_low and in_high:
                        stop = i
                        break
            y = next_pattern(cumulative, rows, t)
            for a in range(stop):
                for b in range(a + 1, stop + 1):
                    N[a, b] += 1.0
                    if outputs[y, a] != outputs[y, b]:
                        D[a, b] += 1.0
            result[replication, stop] += 1
    return result


@njit(cache=True)
def hanawal_2(outputs, cumulative, rows, C, horizon, replications, seed, alpha):
    np.random.seed(seed)
    K = len(C)
    result = np.zeros((replications, K), dtype=np.int64)
    for replication in range(replications):
        g = np.zeros((K, K))
        n = np.zeros(K)
        y = next_pattern(cumulative, rows, 1)
        for i in range(K):
            for j in range(i + 1, K):
                g[i, j] = 1.0 if outputs[y, i] != outputs[y, j] else 0.0
        n[K - 1] = 1.0
        result[replication, K - 1] += 1
        for t in range(2, horizon + 1):
            stop = K - 1
            for i in range(K - 1):
                enough = True
                for j in range(i + 1, K):
                    u = np.inf
                    if n[j] > 0:
                        u = g[i, j] + np.sqrt(alpha * np.log(t) / n[j])
                    enough = enough and C[j] - C[i] >= u
                if enough:
                    stop = i
                    break
            y = next_pattern(cumulative, rows, t)
            for j in range(stop + 1):
                n[j] += 1.0
                for i in range(j):
                    d = 1.0 if outputs[y, i] != outputs[y, j] else 0.0
                    g[i, j] += (d - g[i, j]) / n[j]
            result[replication, stop] += 1
    return result
