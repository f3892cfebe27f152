"""Rounds that meet given rows, one after the other, in which stages may have abstained."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import STEPS, A, B, Pairs

Codes = NDArray[np.int32]
"""One row per round, one column per stage; equal codes agree, below 0 is *abstained*."""


@njit(cache=True, nogil=True)
def count_row(
    pairs: Pairs, codes: Codes, t: int, depth: int, switches: NDArray[np.float64]
) -> None:
    """Count row t up to `depth`, as `agreement.count_prefix` does; the tails are stale then.

    `switches` counts the rows of three or more answers that change at least once, and twice.
    """
    answered, changes, before = 0, 0, -1
    for j in range(depth + 1):
        if codes[t, j] < 0:
            continue
        for i in range(j):
            if codes[t, i] >= 0:
                pairs[i, j, A if codes[t, i] != codes[t, j] else B] += 1.0
                pairs[i, j, STEPS] = 0.0
        changes += answered > 0 and codes[t, j] != before
        before = codes[t, j]
        answered += 1
    if answered >= 3:
        switches[0] += changes >= 1
        switches[1] += changes >= 2
