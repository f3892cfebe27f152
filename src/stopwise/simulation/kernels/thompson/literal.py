"""USS-TS as printed, compiled: Beta draws for every pair of every round, no shortcut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState
from stopwise.simulation.kernels.replications import runs_settings
from stopwise.simulation.kernels.stream import next_class, report_passed


class LiteralSettings(NamedTuple):
    """The settings of USS-TS: counts before anything was seen."""

    prior_disagreed: float
    prior_agreed: float


@runs_settings(LiteralSettings)
@njit(cache=True, nogil=True)
def run_one(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: LiteralSettings,
    grid: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """Line by line Algorithm USS-TS, as `policies/uss_ts_literal.py`."""
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    last = len(thresholds) - 1
    S = np.full(thresholds.shape, settings.prior_disagreed)
    F = np.full(thresholds.shape, settings.prior_agreed)
    counts = np.zeros(last + 1, dtype=np.int64)
    at = 0
    for t in range(grid[-1]):
        depth = 0
        while depth < last:
            stops = True
            for j in range(depth + 1, last + 1):
                if not thresholds[depth, j] > rng.beta(S[depth, j], F[depth, j]):
                    stops = False
                    break
            if stops:
                break
            depth += 1
        k = next_class(rows, cumulative, t, state)
        for j in range(1, depth + 1):
            for i in range(j):
                if outputs[k, i] != outputs[k, j]:
                    S[i, j] += 1.0
                else:
                    F[i, j] += 1.0
        counts[depth] += 1
        if t + 1 >= grid[at]:
            at = report_passed(grid, at, t + 1, counts, table, depth)
