"""The plain loop for a user's own compiled rule: no shortcut, but no Python either."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState, draw, uniform
from stopwise.simulation.kernels.rows import Codes
from stopwise.simulation.kernels.stream import next_class

RuleFunction = Callable[
    [NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int, NDArray[np.float64]], None
]


@njit(nogil=True)
def run_many(
    tables: Tables,
    thresholds: NDArray[np.float64],
    rule: RuleFunction,
    grid: NDArray[np.int64],
    states: NDArray[np.uint64],
    result: NDArray[np.int64],
) -> None:
    """Call `rule(seen, disagreed, thresholds, round, chances)` every round; it fills `chances`."""
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    stages = len(thresholds)
    for replication in range(len(states)):
        seen = np.zeros(thresholds.shape, dtype=np.int64)
        disagreed = np.zeros(thresholds.shape, dtype=np.int64)
        counts = np.zeros(stages, dtype=np.int64)
        chances = np.zeros(stages)
        at = 0
        for t in range(grid[-1]):
            chances[:] = 0.0
            rule(seen, disagreed, thresholds, t + 1, chances)
            depth = draw(chances, uniform(states[replication]))
            k = next_class(rows, cumulative, t, states[replication])
            for j in range(1, depth + 1):
                for i in range(j):
                    seen[i, j] += 1
                    disagreed[i, j] += outputs[k, i] != outputs[k, j]
            counts[depth] += 1
            if grid[at] == t + 1:
                result[replication, at] = counts
                at += 1


@njit(nogil=True)
def run_rows(
    codes: Codes,
    thresholds: NDArray[np.float64],
    rule: RuleFunction,
    state: RandomState,
    depths: NDArray[np.uint8],
) -> None:
    """The same over given rows, in which stages may have abstained; fills in every depth."""
    stages = len(thresholds)
    seen = np.zeros(thresholds.shape, dtype=np.int64)
    disagreed = np.zeros(thresholds.shape, dtype=np.int64)
    chances = np.zeros(stages)
    for t in range(len(codes)):
        chances[:] = 0.0
        rule(seen, disagreed, thresholds, t + 1, chances)
        depth = draw(chances, uniform(state))
        depths[t] = depth
        for j in range(1, depth + 1):
            for i in range(j):
                if codes[t, i] >= 0 and codes[t, j] >= 0:
                    seen[i, j] += 1
                    disagreed[i, j] += codes[t, i] != codes[t, j]
