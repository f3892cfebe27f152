"""How a walk over the stages turns single tests into a distribution over depths."""

from __future__ import annotations

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
    count = len(passes)
    distribution = np.zeros(count)
    arriving = 1.0
    for i in range(count - 1):
        distribution[i] = arriving * np.prod(passes[i, i + 1 :])
        arriving *= going_on(fails[i, i + 1 :])
    distribution[count - 1] = arriving
    return distribution


def going_on(fails: FloatArray) -> float:
    """The probability that at least one of several independent tests fails.

    Written with logarithms so that it keeps its digits when every single one is tiny.

    >>> going_on(np.array([1e-20, 1e-20]))
    2e-20
    """
    if (fails >= 1).any():
        return 1.0
    return float(-np.expm1(np.log1p(-fails).sum()))
