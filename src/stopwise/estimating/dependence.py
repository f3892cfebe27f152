"""Whether the stages agree more than their estimated errors explain: the check of the estimate.

If errors were independent, two stages would agree with probability a_i a_j + (1 - a_i)(1 - a_j) /
(K - 1). Exits of one network, models of one family and votes that contain each other agree more
than that, above all neighbours; and a deeper stage then rarely goes back to an earlier answer that
the stage between them had left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.arrays import FloatArray
from stopwise.estimating.consensus import Groups, disagreements

NOTABLE = 0.05
"""Agreement that exceeds what is explained by this share of items is worth naming."""

SIGMAS = 4.0

_CHAIN = 0.01
"""In a chain, neighbours agree this much more (beyond what is explained) than others do."""


@dataclass(frozen=True)
class Dependence:
    """How far agreement goes beyond what independent errors explain.

    Attributes:
        unexplained: for every pair, the share of items on which they agree, less what is explained.
        pairs: pairs for which that is both more than chance and worth naming.
        going_back: how often a deeper stage goes back to an earlier answer that a stage between
            them had left, as a share of what is explained; below 1 where each stage follows the
            one before it.
        chain: how far the stages look like a chain, from 0 to 1.

    >>> from stopwise.estimating import estimate
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 3000)
    >>> one, two, other = (np.where(rng.random(3000) < 0.3, 1 - truth, truth) for _ in range(3))
    >>> estimate(np.stack([one, one, other, two], axis=1)).dependence.pairs    # a copy
    ((0, 1),)
    """

    unexplained: FloatArray
    pairs: tuple[tuple[int, int], ...]
    going_back: float
    chain: float


def dependence(groups: Groups, accuracy: FloatArray, kinds: int) -> Dependence:
    """Compare agreement with what these accuracies explain.

    Args:
        groups: the rows, reduced (`consensus.Groups`).
        accuracy: of every stage.
        kinds: how many labels there are.

    >>> rows = Groups.of(np.array([[0, 0, 0], [0, 0, 1]]), np.array([90.0, 10.0]))
    >>> found = dependence(rows, np.array([0.9, 0.9, 0.9]), kinds=2)
    >>> found.pairs, found.unexplained[0].round(2)       # the first two never differ
    (((0, 1),), array([0.  , 0.18, 0.08]))
    """
    stage_count = len(accuracy)
    shares = disagreements(groups.codes, groups.number)
    a, b = accuracy[:, None], accuracy[None, :]
    explained = a * b + (1 - a) * (1 - b) / (kinds - 1)
    unexplained = np.nan_to_num(1 - shares - explained)
    np.fill_diagonal(unexplained, 0.0)
    rows = groups.number.sum()
    error = np.sqrt(np.maximum(explained * (1 - explained), 1e-12) / rows)
    notable = (unexplained > NOTABLE) & (unexplained > SIGMAS * error)
    pairs = tuple(
        (i, j) for i in range(stage_count) for j in range(i + 1, stage_count) if notable[i, j]
    )
    going_back = _going_back(groups, accuracy, kinds)
    near = [unexplained[i, i + 1] for i in range(stage_count - 1)]
    far = [unexplained[i, j] for i in range(stage_count) for j in range(i + 2, stage_count)]
    chained = bool(far) and float(np.mean(near) - np.mean(far)) > _CHAIN
    return Dependence(
        unexplained=unexplained,
        pairs=pairs,
        going_back=going_back,
        chain=float(np.clip((0.9 - going_back) / 0.3, 0.0, 1.0)) if chained else 0.0,
    )


def _going_back(groups: Groups, accuracy: FloatArray, kinds: int) -> float:
    stage_count, codes, number = len(accuracy), groups.codes, groups.number
    seen = expected = 0.0
    wrong_label = 1 / (kinds - 1)
    for j in range(1, stage_count - 1):
        for i in range(j):
            for k in range(j + 1, stage_count):
                all_three = (codes[:, [i, j, k]] >= 0).all(axis=1)
                back = all_three & (codes[:, i] == codes[:, k]) & (codes[:, i] != codes[:, j])
                seen += number[back].sum()
                both_right = accuracy[i] * accuracy[k] * (1 - accuracy[j])
                both_wrong = (1 - accuracy[i]) * (1 - accuracy[k]) * wrong_label
                left = accuracy[j] + (1 - accuracy[j]) * (1 - wrong_label)
                expected += number[all_three].sum() * (both_right + both_wrong * left)
    return float(seen / expected) if expected > 0 else 1.0
