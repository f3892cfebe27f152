"""Where the walk of a Thompson policy ends: its distribution, and a draw from it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import ABOVE, BELOW, Pairs
from stopwise.simulation.kernels.thompson.settings import STEP_WALK


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def fill_depths(
    shallow: Pairs, pairs: Pairs, limit: int, walk: int, out: NDArray[np.float64]
) -> None:
    """`depth_distribution`, to be inlined where it is called in a loop."""
    stages = len(pairs)
    if walk == STEP_WALK:
        arriving = 1.0
        for i in range(stages):
            stop, going_on, passed = 1.0, 0.0, 1.0
            for j in range(i + 1, stages):
                bounded = j <= limit
                above = shallow[i, j, ABOVE] if bounded else pairs[i, j, ABOVE]
                stop *= shallow[i, j, BELOW] if bounded else pairs[i, j, BELOW]
                going_on += passed * above  # 1 - prod(1 - above), without cancellation
                passed *= 1.0 - above
            out[i] = arriving * stop
            arriving *= going_on
    else:
        for i in range(stages):
            out[i] = 0.0
        out[0] = 1.0  # out[i] is the chance of coming to i until it is turned into stopping there
        for i in range(stages):
            passed = out[i]
            for j in range(i + 1, stages):
                bounded = j <= limit
                above = shallow[i, j, ABOVE] if bounded else pairs[i, j, ABOVE]
                out[j] += passed * above
                passed *= shallow[i, j, BELOW] if bounded else pairs[i, j, BELOW]
            out[i] = passed


@njit(cache=True, nogil=True)
def depth_distribution(
    shallow: Pairs, pairs: Pairs, limit: int, walk: int, out: NDArray[np.float64]
) -> None:
    """The distribution over depths, with tails from `shallow` up to stage `limit`, else `pairs`.

    Increasing in every tail, so lower bounds on the tails give lower bounds on the depths.
    """
    fill_depths(shallow, pairs, limit, walk, out)
