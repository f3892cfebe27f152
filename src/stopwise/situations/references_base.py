"""The ground that references stand on: what a loss is, and whose answer stands for a stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stopwise.arrays import FloatArray, IntArray

FinalLoss = Callable[[IntArray], FloatArray]
"""From final partitions (a row each) to the loss of each stage's answer, in mistakes."""


def standing(groups: IntArray, stage: int) -> IntArray:
    """The group of a stage's output; where it abstained, of the deepest before it that answered.

    >>> standing(np.array([[0, 1, -1], [0, 0, 1]]), 2)
    array([1, 1])
    """
    held = np.full(len(groups), -1, dtype=np.int64)
    for at in range(stage + 1):
        held = np.where(groups[:, at] >= 0, groups[:, at], held)
    return held


def differs_from(groups: IntArray, stage: int) -> FloatArray:
    """Whether each stage's output differs from that of one stage; no output always does.

    Where the reference itself abstained, the deepest stage before it that answered stands for it.

    >>> differs_from(np.array([[0, 1, 0], [0, 0, -1]]), 2)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    different = groups != standing(groups, stage)[:, None]
    return np.asarray(different | (groups < 0), dtype=np.float64)
