"""Rounds that meet given rows, one after the other, in which stages may have abstained."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Codes = NDArray[np.int32]
"""One row per round, one column per stage; equal codes agree, below 0 is *abstained*."""


@njit(cache=True, nogil=True)
def count_switches_of_row(codes: Codes, t: int, depth: int, switches: NDArray[np.float64]) -> None:
    """Count row t, up to `depth`, among the rows of three or more answers that switch once, twice.

    The rule of `agreement.count_prefix`.
    """
    answered, changes, before = 0, 0, -1
    for j in range(depth + 1):
        if codes[t, j] >= 0:
            changes += answered > 0 and codes[t, j] != before
            before = codes[t, j]
            answered += 1
    if answered >= 3:
        switches[0] += changes >= 1
        switches[1] += changes >= 2
