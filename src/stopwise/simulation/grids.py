"""The rounds at which a curve is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from stopwise.checks import fail, whole_number
from stopwise.problem import IntArray

GridName = Literal["linear", "log"]

POINTS = 100

LONGEST = 2**53
"""The longest horizon: whole numbers up to here are exact as floats too."""


def make_grid(grid: GridName | Sequence[int], horizon: int) -> IntArray:
    """Rounds of a linear or logarithmic grid, or those given; the horizon is always the last.

    >>> make_grid("linear", 5)
    array([1, 2, 3, 4, 5])
    >>> make_grid("log", 10**9)[[0, -1]]
    array([         1, 1000000000])
    >>> make_grid([10, 100], 1000)
    array([  10,  100, 1000])
    """
    if horizon > LONGEST:
        raise fail("horizon", horizon, f"at most {LONGEST} rounds")
    if isinstance(grid, str):
        if grid == "linear":
            rounds = np.linspace(horizon / POINTS, horizon, POINTS)
        elif grid == "log":
            rounds = np.geomspace(1, horizon, POINTS)
        else:
            raise fail("grid", grid, "'linear', 'log' or a list of rounds")
        return np.unique(np.maximum(np.round(rounds), 1).astype(np.int64))
    chosen = [whole_number(f"grid[{at}]", value, least=1) for at, value in enumerate(grid)]
    if any(value > horizon for value in chosen):
        raise fail("grid", list(grid), f"rounds of at most the horizon, {horizon}")
    return np.unique(np.array([*chosen, horizon], dtype=np.int64))
