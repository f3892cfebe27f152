"""The rules that decide by an elimination walk, over given rows: the depth of every round."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import STEPS, new_pairs
from stopwise.simulation.kernels.rows import Codes, count_switches_of_row
from stopwise.simulation.kernels.value.observing import observe_pair_lazily
from stopwise.simulation.kernels.value.replications import planned
from stopwise.simulation.kernels.value.settings import ValueSettings, moment_of
from stopwise.simulation.kernels.value.walk import lasting, walk
from stopwise.simulation.kernels.value.worth import no_answers


@njit(cache=True, nogil=True, error_model="numpy")
def run_rows(
    codes: Codes,
    thresholds: NDArray[np.float64],
    settings: ValueSettings,
    depths: NDArray[np.uint8],
) -> None:
    """Fill in the depth of every round."""
    horizon = len(codes)
    pairs = new_pairs(thresholds, 1.0, 1.0)
    pairs[:, :, STEPS] = 0.0
    known = no_answers(len(thresholds))
    visited = np.zeros(len(thresholds), dtype=np.int64)
    switches = np.zeros(2)
    t, end = 0, settings.rounds
    while t < horizon:
        m, until, end = planned(settings, t, end, horizon)
        moment = moment_of(settings, m, switches)
        depth = walk(pairs, known, settings, moment, visited)
        rounds = 1
        if depth == 0:
            rounds = lasting(pairs, settings, moment, until - t)
        for j in range(1, depth + 1):
            for i in range(j):
                if codes[t, i] >= 0 and codes[t, j] >= 0:
                    observe_pair_lazily(pairs, i, j, codes[t, i] != codes[t, j])
        count_switches_of_row(codes, t, depth, switches)
        depths[t : t + rounds] = depth
        t += rounds
