"""Which classes of patterns the rounds meet, one by one or many at once."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import Pairs, observe_many
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState, split, uniform


@njit(cache=True, nogil=True, inline="always")
def class_of(cumulative: NDArray[np.float64], u: float) -> int:
    """The class that a uniform number falls into."""
    if len(cumulative) > 16:
        return int(np.searchsorted(cumulative, u, side="right"))
    k = 0
    for c in range(len(cumulative)):
        k += u >= cumulative[c]  # no branch: it could not be predicted
    return k


@njit(cache=True, nogil=True, inline="always")
def next_class(
    rows: NDArray[np.int64], cumulative: NDArray[np.float64], t: int, state: RandomState
) -> int:
    """The class of patterns that round t+1 meets.

    Takes the arrays and not the tuple of tables: unpacking that costs more than a whole look.
    """
    if len(rows):
        return rows[t % len(rows)]
    return class_of(cumulative, uniform(state))


@njit(cache=True, nogil=True)
def report_passed(
    grid: NDArray[np.int64],
    at: int,
    t: int,
    counts: NDArray[np.int64],
    table: NDArray[np.int64],
    depth: int,
) -> int:
    """Write the rows of the grid up to round t, given that the latest rounds stopped at `depth`.

    Returns the next place in the grid: at the end, the last one once more. Not inlined: within a
    loop over looks numba would count references to all three arrays in every look.
    """
    while at < len(grid) and grid[at] <= t:
        # One by one: assigning whole rows would compile shape errors for three seconds.
        for k in range(len(counts)):
            table[at, k] = counts[k]
        table[at, depth] -= t - grid[at]
        at += 1
    return min(at, len(grid) - 1)


@njit(cache=True, nogil=True)
def rows_met(tables: Tables, k: int, t: int, rounds: int) -> int:
    """How often the rows of rounds t+1 to t+rounds are of class k."""
    size = len(tables.rows)
    first, rest = t % size, rounds % size
    met = rounds // size * tables.row_counts[size, k]
    if first + rest <= size:
        return met + tables.row_counts[first + rest, k] - tables.row_counts[first, k]
    met += tables.row_counts[size, k] - tables.row_counts[first, k]
    return met + tables.row_counts[first + rest - size, k]


@njit(cache=True, nogil=True)
def count_classes(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    depth: int,
    rounds: int,
    temper: int = 1,
) -> None:
    """Count the outputs of a number of independent rounds that all stopped at `depth`."""
    start, end = tables.prefix_start[depth], tables.prefix_start[depth + 1]
    dealt = np.empty(end - start, dtype=np.int64)
    split(rng, rounds, tables.prefix_p[start:end], dealt)
    for k in range(end - start):
        if dealt[k]:
            stands_for = tables.prefix_class[start + k]
            observe_many(pairs, tables.outputs, stands_for, depth, dealt[k] * temper)


@njit(cache=True, nogil=True)
def count_rows(tables: Tables, pairs: Pairs, depth: int, t: int, rounds: int) -> None:
    """Count the outputs of the round-robin rounds after t, which all stopped at `depth`."""
    for k in range(len(tables.outputs)):
        met = rows_met(tables, k, t, rounds)
        if met:
            observe_many(pairs, tables.outputs, k, depth, met)
