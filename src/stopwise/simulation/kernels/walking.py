"""Where the walk of a Thompson policy ends: its distribution, and a draw from it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import ABOVE, BELOW, Pairs
from stopwise.simulation.kernels.random import State, Words, next_uniform, uniform

STEP_WALK = 0
JUMP_WALK = 1


@njit(cache=True, nogil=True, error_model="numpy")
def depth_distribution(
    shallow: Pairs, pairs: Pairs, limit: int, walk: int, out: NDArray[np.float64]
) -> None:
    """The distribution over depths, with tails from `shallow` up to stage `limit`, else `pairs`.

    Increasing in every tail, so lower bounds on the tails give lower bounds on the depths.
    """
    stages = len(pairs)
    if walk == STEP_WALK:
        arriving = 1.0
        for i in range(stages):
            stop, going_on, passed = 1.0, 0.0, 1.0
            for j in range(i + 1, stages):
                tails = shallow if j <= limit else pairs
                above = tails[i, j, ABOVE]
                stop *= tails[i, j, BELOW]
                going_on += passed * above  # 1 - prod(1 - above), without cancellation
                passed *= 1.0 - above
            out[i] = arriving * stop
            arriving *= going_on
        return
    for i in range(stages):
        out[i] = 0.0
    out[0] = 1.0  # out[i] is the chance of coming to i until it is turned into that of stopping
    for i in range(stages):
        passed = out[i]
        for j in range(i + 1, stages):
            tails = shallow if j <= limit else pairs
            out[j] += passed * tails[i, j, ABOVE]
            passed *= tails[i, j, BELOW]
        out[i] = passed


@njit(cache=True, nogil=True)
def draw(weights: NDArray[np.float64], state: State) -> int:
    """An index, in proportion to the weights."""
    left = uniform(state) * weights.sum()
    chosen = 0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            chosen = k
            if left < weights[k]:
                break
            left -= weights[k]
    return chosen


@njit(cache=True, nogil=True, inline="always")
def walk_on(pairs: Pairs, walk: int, going_on: float, left: float, words: Words) -> tuple[Words, int]:
    """Where the walk ends, given that it goes on from the first stage.

    `left` is uniform on (0, going_on); for further draws there are the words.
    """
    last = len(pairs) - 1
    i = 1
    if walk == STEP_WALK:
        whole = going_on
        while i < last:
            stop = whole
            for j in range(i + 1, last + 1):
                stop *= pairs[i, j, BELOW]
            if left < stop:
                break
            i += 1
            if i < last:
                words, left = next_uniform(words)
                whole = 1.0
        return words, i
    i = 0
    while True:
        # The nearest stage that fails: chances are dealt out along one uniform number.
        passed, to = 1.0, 0
        for j in range(i + 1, last + 1):
            here = passed * pairs[i, j, ABOVE]
            if left < here:
                to = j
                break
            left -= here
            passed *= pairs[i, j, BELOW]
        if to == 0 and i == 0:
            to = last  # rounding at the very end of the first deal
        if to == 0 or to == last:
            return words, max(i, to)
        i = to
        words, left = next_uniform(words)
