"""What the parts of a Thompson replication share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import Pairs, new_pairs
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState
from stopwise.simulation.kernels.thompson.settings import ThompsonSettings


class Replication(NamedTuple):
    """One replication at work.

    Attributes:
        pairs: counts and tails of every pair.
        bounds: lower bounds on tails, while a block runs.
        low: lower bounds on the probability of every depth, while a block runs.
        chances: the probability of every depth.
        grid, counts, table: rounds to report at; depth counts so far; what was reported.
        state, rng: for uniforms, and for bulk draws.
    """

    tables: Tables
    settings: ThompsonSettings
    pairs: Pairs
    bounds: Pairs
    low: NDArray[np.float64]
    chances: NDArray[np.float64]
    grid: NDArray[np.int64]
    counts: NDArray[np.int64]
    table: NDArray[np.int64]
    state: RandomState
    rng: np.random.Generator


@njit(cache=True, nogil=True)
def new_replication(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: ThompsonSettings,
    grid: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> Replication:
    """Nothing seen, nothing reported yet."""
    stages = len(thresholds)
    pairs = new_pairs(thresholds, settings.prior_disagreed, settings.prior_agreed)
    return Replication(
        tables,
        settings,
        pairs,
        np.zeros_like(pairs),
        np.zeros(stages),
        np.zeros(stages),
        grid,
        np.zeros(stages, dtype=np.int64),
        table,
        state,
        rng,
    )
