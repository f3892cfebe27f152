"""What a warning is, and when a difference counts as one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SIGMAS = 4.5
"""Standard errors from which a difference counts as one: under 1 in 100,000 by chance, each."""

LOW_COUNT = 30
"""Below this many items on a side, nothing is compared."""


@dataclass(frozen=True)
class LogWarning:
    """A code for scripts, a sentence for people, and the stage it is about, if it is about one."""

    code: str
    message: str
    stage: int | None = None


def difference(
    x: int | np.int64, n: int | np.int64, y: int | np.int64, m: int | np.int64, extra: int = 1
) -> float | None:
    """x/n - y/m if it is more than chance (pooled z, `extra` comparisons at once), else None.

    >>> difference(10, 100, 60, 100), difference(10, 100, 12, 100)
    (-0.5, None)
    """
    if min(n, m) < LOW_COUNT:
        return None
    pooled = float((x + y) / (n + m))
    error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    gap = float(x / n - y / m)
    needed = math.sqrt(SIGMAS**2 + 2 * math.log(extra))
    return gap if error > 0 and abs(gap) > needed * error else None
