"""What a few labels say about whom to believe: references averaged by how well they foretell them.

Labels on items whose outputs differ tell which group of stages was right. Every reference (each
stage, and the consensus) foretells that with a probability; the references are averaged with the
weights that the labels give them, and partitions that were labelled often speak for themselves.
Thirty labels settle most of what matters, because only whole partitions have to be told apart.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.situations.references_base import FinalLoss, standing

PRIOR_LAST, PRIOR_CONSENSUS, PRIOR_OTHERS = 0.55, 0.3, 0.15
"""What each reference weighs before the first label."""

PRIOR_RIGHT, PRIOR_WRONG = 7.0, 3.0
"""A stage that is the reference is right about as often, in labels, before the first one."""

OWN_ROWS = 5.0
"""A partition's own labels weigh as much as the references together when there are this many."""

_SAID = 0.8  # where the reference is wrong, some other stage is right this often
_SLIP = 0.03  # the consensus is never quite sure of itself


class ChancesRight(Protocol):
    """A consensus: the chance that each stage's output is right, given the partition."""

    def chance_right(self, groups: IntArray) -> FloatArray:
        """One row per partition, one column per stage."""


def loss_from_labels(
    groups: IntArray, right: IntArray, number: FloatArray, found: ChancesRight | None
) -> tuple[FinalLoss, dict[str, float]]:
    """The chance that each stage's answer is wrong, and the weight of each reference.

    Args:
        groups: the labelled partitions, a row each.
        right: which of its groups was right; -1 where no stage was.
        number: how often that was so.
        found: the consensus, where there is one.

    >>> groups = np.array([[0, 1, 1], [0, 1, 0], [0, 0, 1]])
    >>> loss, weights = loss_from_labels(groups, np.array([1, 1, 0]), np.array([9.0, 6, 7]), None)
    >>> max(weights, key=weights.get)               # the second stage was always right
    'stage 1'
    >>> loss(np.array([[0, 1, 2]])).round(1)
    array([[1. , 0.1, 1. ]])
    """
    stage_count = groups.shape[1]
    at = np.arange(len(groups))
    column = np.where(right < 0, stage_count, right)
    total = float(number.sum())
    shares, logs = [], []
    for stage in range(stage_count):
        own_group = standing(groups, stage)
        hits = float(number[(own_group == right) & (right >= 0)].sum())
        shares.append((PRIOR_RIGHT + hits) / (PRIOR_RIGHT + PRIOR_WRONG + total))
        prior = PRIOR_LAST if stage == stage_count - 1 else PRIOR_OTHERS / (stage_count - 1)
        foretold = by_stage(groups, stage, shares[stage])[at, column]
        logs.append(np.log(prior) + float(number @ np.log(foretold + 1e-3)))
    if found is not None:
        foretold = by_consensus(groups, found)[at, column]
        logs.append(np.log(PRIOR_CONSENSUS) + float(number @ np.log(foretold + 1e-3)))
    weights = np.exp(np.asarray(logs) - max(logs))
    weights /= weights.sum()
    own: dict[tuple[int, ...], FloatArray] = {}
    for row, group, times in zip(groups.tolist(), column.tolist(), number.tolist(), strict=True):
        own.setdefault(tuple(row), np.zeros(stage_count + 1))[group] += times

    def loss(partitions: IntArray) -> FloatArray:
        chance = sum(
            weights[stage] * by_stage(partitions, stage, shares[stage])
            for stage in range(stage_count)
        )
        if found is not None:
            chance = chance + weights[stage_count] * by_consensus(partitions, found)
        chance = np.asarray(chance)
        for at, row in enumerate(partitions.tolist()):
            if (seen := own.get(tuple(row))) is not None:
                chance[at] = (OWN_ROWS * chance[at] + seen) / (OWN_ROWS + seen.sum())
        # Where all agree nothing is at stake between them: what they lose is the same for all.
        chance[(partitions <= 0).all(axis=1)] = np.eye(stage_count + 1)[0]
        picked = np.take_along_axis(chance, np.maximum(partitions, 0), axis=1)
        return np.asarray(np.where(partitions < 0, 1.0, 1.0 - picked))

    names = [*(f"stage {stage}" for stage in range(stage_count)), "consensus"]
    return loss, {name: float(weight) for name, weight in zip(names, weights, strict=False)}


def by_stage(groups: IntArray, stage: int, share: float) -> FloatArray:
    """The chance of each group to be right, and of none, if one stage is the reference.

    >>> by_stage(np.array([[0, 1, 1]]), 2, 0.7).round(2)
    array([[0.24, 0.7 , 0.  , 0.06]])
    >>> by_stage(np.array([[-1, 0, 1]]), 0, 0.7).round(2)    # it abstained: it tells nothing
    array([[0.12, 0.12, 0.  , 0.76]])
    """
    rows, stage_count = groups.shape
    own = standing(groups, stage)
    said = groups.max(axis=1) + 1
    others = np.maximum(said - (own >= 0), 1)
    chance = np.where(
        np.arange(stage_count)[None] < said[:, None], (1 - share) * _SAID / others[:, None], 0.0
    )
    held = own >= 0
    chance[np.arange(rows)[held], own[held]] = share
    return np.concatenate([chance, 1 - chance.sum(axis=1, keepdims=True)], axis=1)


def by_consensus(groups: IntArray, found: ChancesRight) -> FloatArray:
    """The chance of each group to be right, and of none, by the consensus, made less bold."""
    rows, stage_count = groups.shape
    right = found.chance_right(groups)
    chance = np.zeros((rows, stage_count + 1))
    for stage in range(stage_count):
        answered = groups[:, stage] >= 0
        chance[np.flatnonzero(answered), groups[answered, stage]] = right[answered, stage]
    chance[:, stage_count] = np.maximum(1 - chance.sum(axis=1), 0.0)
    # Stages err together more than it believes: its odds are taken to their square root.
    chance = np.sqrt(chance)
    chance /= chance.sum(axis=1, keepdims=True)
    return np.asarray((1 - _SLIP) * chance + _SLIP / (stage_count + 1))
