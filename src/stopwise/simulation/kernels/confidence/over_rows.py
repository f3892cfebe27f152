"""The confidence-bound rules over given rows: the depth of every round."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import ConfidenceSettings
from stopwise.simulation.kernels.confidence.replications import decide
from stopwise.simulation.kernels.pairs import A, B, X
from stopwise.simulation.kernels.rows import Codes


@njit(cache=True, nogil=True)
def run_rows(
    codes: Codes,
    thresholds: NDArray[np.float64],
    settings: ConfidenceSettings,
    depths: NDArray[np.uint8],
) -> None:
    """Fill in the depth of every round."""
    last = len(thresholds) - 1
    pairs = np.zeros((last + 1, last + 1, 8))
    pairs[:, :, X] = thresholds
    for t in range(len(codes)):
        depth = decide(pairs, 0, t + 1, settings)
        depths[t] = depth
        if t == 0 and settings.first_counts_last_only:
            for i in range(last):
                if depth == last and codes[t, i] >= 0 and codes[t, last] >= 0:
                    pairs[i, last, A if codes[t, i] != codes[t, last] else B] += 1.0
            continue
        for j in range(1, depth + 1):
            for i in range(j):
                if codes[t, i] >= 0 and codes[t, j] >= 0:
                    pairs[i, j, A if codes[t, i] != codes[t, j] else B] += 1.0
