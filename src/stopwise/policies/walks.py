"""How a walk over the stages turns single tests into a distribution over depths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stopwise.costs import FloatArray


def step_walk(passes: FloatArray, fails: FloatArray) -> FloatArray:
    """The paper's walk i -> i+1: stop at the first stage that passes against every deeper one.

    Args:
        passes: `[i, j]`, i < j: the probability that the sampled disagreement of the pair stays
            below its threshold; the tests are independent.
        fails: its complement, given apart because the tiny one of the two must stay accurate.

    >>> passes = np.array([[0, 0.5, 0.8], [0, 0, 0.5], [0, 0, 0]])
    >>> step_walk(passes, 1 - passes)
    array([0.4, 0.3, 0.3])
    """
    stage_count = len(passes)
    distribution = np.zeros(stage_count)
    arriving = 1.0
    for i in range(stage_count - 1):
        distribution[i] = arriving * np.prod(passes[i, i + 1 :])
        arriving *= going_on(fails[i, i + 1 :])
    distribution[stage_count - 1] = arriving
    return distribution


def jump_walk(passes: FloatArray, fails: FloatArray) -> FloatArray:
    """Go to the nearest deeper stage that the current one fails against; stop where there is none.

    The pair that sends the walk on is the pair that is observed, so no belief is left without data.
    P(i -> j) = fails_ij prod_{i<k<j} passes_ik, and P(stop at i) = prod_{k>i} passes_ik.

    >>> passes = np.array([[0, 0.5, 0.8], [0, 0, 0.5], [0, 0, 0]])
    >>> jump_walk(passes, 1 - passes)
    array([0.4 , 0.25, 0.35])
    """
    stage_count = len(passes)
    distribution = np.zeros(stage_count)
    distribution[0] = 1.0  # the chance of coming to i, until it is turned into that of stopping
    for i in range(stage_count - 1):
        passed = distribution[i]
        for j in range(i + 1, stage_count):
            distribution[j] += passed * fails[i, j]
            passed *= passes[i, j]
        distribution[i] = passed
    return distribution


def elimination_walk(stage_count: int, worth: Callable[[int, int, int], bool]) -> int:
    """The jump walk with a memory, for rules that decide: where it stops.

    Only the deeper stages that are worth going to from *every* stage visited so far stay in play;
    the walk jumps to the nearest of them and stops when none is left. Under weak dominance and with
    the true disagreements it ends at the optimal stage: from an earlier stage the optimal one is
    always worth its price, so it stays in play and is never passed; from it no deeper one is.

    Args:
        worth: `worth(i, j, last)`: whether going from stage i to the deeper stage j pays; `last` is
            the deepest stage visited, where the walk would stay if it did not go on.

    >>> elimination_walk(4, lambda i, j, last: (i, j) in {(0, 2), (0, 3), (2, 3)})
    3
    >>> elimination_walk(4, lambda i, j, last: (i, j) in {(0, 1), (1, 3)})
    1
    """
    visited = [0]
    for j in range(1, stage_count):
        # The last one is the likeliest to refuse, so it is asked first.
        if all(worth(i, j, visited[-1]) for i in reversed(visited)):
            visited.append(j)
    return visited[-1]


def going_on(fails: FloatArray) -> float:
    """The probability that at least one of several independent tests fails.

    Written with logarithms so that it keeps its digits when every single one is tiny.

    >>> going_on(np.array([1e-20, 1e-20]))
    2e-20
    """
    if (fails >= 1).any():
        return 1.0
    return float(-np.expm1(np.log1p(-fails).sum()))
