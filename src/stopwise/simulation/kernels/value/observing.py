"""What rounds add to the pairs and to the switches, for the rules with an elimination walk.

`switches` counts the rounds of three or more answers whose output changed at least once along the
cascade, and at least twice.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import (
    ABOVE,
    BELOW,
    FLOOR,
    STEPS,
    WEIGHT,
    A,
    B,
    Pairs,
    X,
    observe_many,
)
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import split
from stopwise.simulation.kernels.stream import rows_met


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def observe_pair_lazily(pairs: Pairs, i: int, j: int, differ: bool) -> None:
    """One observation of one pair.

    Tails that somebody asked for are stepped, until they have lost digits; others are stale.
    """
    a, b = pairs[i, j, A], pairs[i, j, B]
    pairs[i, j, A] = a + (1.0 if differ else 0.0)
    pairs[i, j, B] = b + (0.0 if differ else 1.0)
    if pairs[i, j, STEPS] != 0.0:
        x = pairs[i, j, X]
        step = pairs[i, j, WEIGHT] / (a if differ else b)
        pairs[i, j, WEIGHT] = step * (a + b) * (x if differ else 1.0 - x)
        step = -step if differ else step
        below = max(pairs[i, j, BELOW] + step, 0.0)
        above = max(pairs[i, j, ABOVE] - step, 0.0)
        pairs[i, j, BELOW] = below
        pairs[i, j, ABOVE] = above
        pairs[i, j, STEPS] -= 1.0
        if min(below, above) < pairs[i, j, FLOOR]:
            pairs[i, j, STEPS] = 0.0


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def observe(pairs: Pairs, outputs: NDArray[np.int32], k: int, depth: int) -> None:
    """One round of class k that stopped at `depth`."""
    for j in range(1, depth + 1):
        for i in range(j):
            observe_pair_lazily(pairs, i, j, outputs[k, i] != outputs[k, j])


@njit(cache=True, nogil=True, inline="always")
def count_switches(
    outputs: NDArray[np.int32], k: int, depth: int, times: int, switches: NDArray[np.float64]
) -> None:
    """The switches of rounds of class k that stopped at `depth`."""
    if depth >= 2:
        changes = 0
        for j in range(1, depth + 1):
            changes += outputs[k, j] != outputs[k, j - 1]
        if changes >= 1:
            switches[0] += times
        if changes >= 2:
            switches[1] += times


@njit(cache=True, nogil=True)
def count_bulk(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    depth: int,
    t: int,
    rounds: int,
    switches: NDArray[np.float64],
) -> None:
    """Count the outputs of many rounds after t that all stopped at `depth`."""
    if len(tables.rows):
        for k in range(len(tables.outputs)):
            met = rows_met(tables, k, t, rounds)
            if met:
                observe_many(pairs, tables.outputs, k, depth, met)
                count_switches(tables.outputs, k, depth, met, switches)
        return
    start, end = tables.prefix_start[depth], tables.prefix_start[depth + 1]
    dealt = np.empty(end - start, dtype=np.int64)
    split(rng, rounds, tables.prefix_p[start:end], dealt)
    for at in range(end - start):
        if dealt[at]:
            k = tables.prefix_class[start + at]
            observe_many(pairs, tables.outputs, k, depth, dealt[at])
            count_switches(tables.outputs, k, depth, dealt[at], switches)
