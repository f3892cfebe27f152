"""The consensus of the stages: one-coin Dawid-Skene over partitions, without a label.

Every stage is right with one probability of its own, and wrong answers spread evenly over the other
labels. What a row says about the truth then depends only on which outputs agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.situations.observations import FloatArray, IntArray

_ROUNDS = 200
_START = 0.8
_ENOUGH = 1e-6


@dataclass(frozen=True)
class Consensus:
    """What the stages' agreement says of them.

    Attributes:
        accuracies: of every stage, estimated.
        labels: how many labels there are.
    """

    accuracies: FloatArray
    labels: int

    def chance_right(self, groups: IntArray) -> FloatArray:
        """For partitions, a row each: the chance that each stage's output is right.

        >>> found = Consensus(np.array([0.9, 0.8]), labels=2)
        >>> found.chance_right(np.array([[0, 0], [0, 1], [0, -1]])).round(3)
        array([[0.973, 0.973],
               [0.692, 0.308],
               [0.9  , 0.   ]])
        """
        p = np.clip(self.accuracies, 1e-3, 1 - 1e-3)
        answered = groups >= 0
        same = (groups[:, :, None] == groups[:, None, :]) & answered[:, :, None]
        same &= answered[:, None, :]
        # Beside a truth that no stage said, a row is more likely by the odds of all stages that
        # said it; the factors of the others are common to every candidate.
        score = np.where(answered, same @ np.log(p * max(self.labels - 1, 1) / (1 - p)), -np.inf)
        # There is one such candidate for every label that no stage said.
        unsaid = np.log(np.maximum(self.labels - (groups.max(axis=1) + 1), 1e-12))
        top = np.maximum(score.max(axis=1), unsaid)
        each = np.exp(score - top[:, None])
        # Stages that said the same are one candidate, not several.
        total = (each / np.maximum(same.sum(axis=2), 1)).sum(axis=1) + np.exp(unsaid - top)
        return np.asarray(each / total[:, None])


def consensus(groups: IntArray, number: FloatArray, labels: int) -> Consensus:
    """Fit by expectation and maximisation.

    Args:
        groups: partitions, a row each; -1 where a stage abstained.
        number: how often each occurs.
        labels: how many labels there are.

    >>> groups = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1]])
    >>> consensus(groups, np.array([80.0, 15, 5]), labels=2).accuracies.round(2)
    array([0.95, 1.  , 0.85])
    """
    weight = number / number.sum()
    seen = weight @ (groups >= 0)
    found = Consensus(np.full(groups.shape[1], _START), labels)
    for _ in range(_ROUNDS):
        right = weight @ found.chance_right(groups)
        # A stage that never answered keeps what it started with.
        better = np.divide(right, seen, out=np.full_like(seen, _START), where=seen > 0)
        moved = np.abs(better - found.accuracies).max()
        found = Consensus(better, labels)
        if moved < _ENOUGH:
            break
    return found
