"""The rules that decide by an elimination walk, over given rows: the depth of every round."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import STEPS, new_pairs
from stopwise.simulation.kernels.rows import Codes, count_row
from stopwise.simulation.kernels.value.replications import first_change, walk
from stopwise.simulation.kernels.value.worth import VOI, VOI_ANYTIME, no_answers


@njit(cache=True, nogil=True, error_model="numpy")
def run_rows(
    codes: Codes,
    x: NDArray[np.float64],
    rule: int,
    knob: float,
    rho0: float,
    told: int,
    depths: NDArray[np.uint8],
) -> None:
    """Fill in the depth of every round."""
    rounds_in_all = len(codes)
    pairs = new_pairs(x, 1.0, 1.0)
    pairs[:, :, STEPS] = 0.0
    known = no_answers(len(x))
    visited = np.zeros(len(x), dtype=np.int64)
    switches = np.zeros(2)
    t, end = 0, told
    while t < rounds_in_all:
        if rule == VOI:
            while end < t + 1:
                end *= 2
            m, until = end - t, min(end, rounds_in_all)
        else:
            m, until = t + 1 + told, rounds_in_all
        rho = rho0 + switches[1] / (switches[0] + 2.0)
        depth = walk(pairs, known, rule, knob, m, rho, visited)
        rounds = 1
        if depth == 0:
            rounds = until - t
            if rule == VOI_ANYTIME:
                rounds = first_change(pairs, knob, m, rho, until - t)
        else:
            count_row(pairs, codes, t, depth, switches)
        for at in range(t, t + rounds):
            depths[at] = depth
        t += rounds
