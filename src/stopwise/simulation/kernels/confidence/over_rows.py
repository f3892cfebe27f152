"""The confidence-bound rules over given rows: the depth of every round."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import Rule
from stopwise.simulation.kernels.confidence.replications import decide
from stopwise.simulation.kernels.pairs import A, B, X
from stopwise.simulation.kernels.rows import Codes, count_row


@njit(cache=True, nogil=True)
def run_rows(codes: Codes, x: NDArray[np.float64], rule: Rule, depths: NDArray[np.uint8]) -> None:
    """Fill in the depth of every round."""
    last = len(x) - 1
    pairs = np.zeros((last + 1, last + 1, 8))
    pairs[:, :, X] = x
    switches = np.zeros(2)
    for t in range(len(codes)):
        depth = decide(pairs, 0, t + 1, rule)
        depths[t] = depth
        if t == 0 and rule.first_counts_last_only:
            for i in range(last):
                if depth == last and codes[t, i] >= 0 and codes[t, last] >= 0:
                    pairs[i, last, A if codes[t, i] != codes[t, last] else B] += 1.0
        elif depth > 0:
            count_row(pairs, codes, t, depth, switches)
