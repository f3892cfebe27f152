"""USS-TS as printed, compiled: Beta draws for every pair of every round, no shortcut."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import State
from stopwise.simulation.kernels.stream import next_class


@njit(cache=True, nogil=True)
def run_many(
    tables: Tables,
    x: NDArray[np.float64],
    prior_disagreed: float,
    prior_agreed: float,
    grid: NDArray[np.int64],
    states: State,
    rng: np.random.Generator,
    result: NDArray[np.int64],
) -> None:
    """Line by line Algorithm USS-TS, as `policies/uss_ts_literal.py`."""
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    last = len(x) - 1
    for replication in range(len(states)):
        S = np.full(x.shape, prior_disagreed)
        F = np.full(x.shape, prior_agreed)
        counts = np.zeros(last + 1, dtype=np.int64)
        at = 0
        for t in range(grid[-1]):
            depth = 0
            while depth < last:
                stops = True
                for j in range(depth + 1, last + 1):
                    if not x[depth, j] > rng.beta(S[depth, j], F[depth, j]):
                        stops = False
                        break
                if stops:
                    break
                depth += 1
            k = next_class(rows, cumulative, t, states[replication])
            for j in range(1, depth + 1):
                for i in range(j):
                    if outputs[k, i] != outputs[k, j]:
                        S[i, j] += 1.0
                    else:
                        F[i, j] += 1.0
            counts[depth] += 1
            if grid[at] == t + 1:
                result[replication, at] = counts
                at += 1
