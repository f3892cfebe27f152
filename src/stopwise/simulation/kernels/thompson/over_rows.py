"""The Thompson rules over given rows: the depth of every round."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import anchor_due, new_pairs, observe_pair
from stopwise.simulation.kernels.random import RandomState, draw, uniform
from stopwise.simulation.kernels.rows import Codes
from stopwise.simulation.kernels.thompson.settings import ThompsonSettings
from stopwise.simulation.kernels.thompson.walks import depth_distribution


@njit(cache=True, nogil=True)
def run_rows(
    codes: Codes,
    thresholds: NDArray[np.float64],
    settings: ThompsonSettings,
    state: RandomState,
    depths: NDArray[np.uint8],
) -> None:
    """Fill in the depth of every round."""
    pairs = new_pairs(thresholds, settings.prior_disagreed, settings.prior_agreed)
    chances = np.zeros(len(thresholds))
    depth_distribution(pairs, pairs, 0, settings.walk, chances)
    for t in range(len(codes)):
        depth = draw(chances, uniform(state))
        depths[t] = depth
        if depth == 0:
            continue  # a stop at the first stage teaches nothing
        for _ in range(settings.temper):
            due = False
            for j in range(1, depth + 1):
                for i in range(j):
                    if codes[t, i] >= 0 and codes[t, j] >= 0:
                        due |= observe_pair(pairs, i, j, codes[t, i] == codes[t, j])
            if due:
                anchor_due(pairs, depth, 0)
        depth_distribution(pairs, pairs, 0, settings.walk, chances)
