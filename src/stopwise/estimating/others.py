"""Each stage held against the others: whether they give its answer, by number and by weight.

A stage does not vote on itself. In the consensus it does: stages that often agree gain accuracy,
and with it weight, by their own votes. Two ways to ask the others, which `estimate` takes in equal
parts: by their plurality, which rests on no model and knows no copies; and by the consensus, with
the weight that each of them has earned there.
"""

from __future__ import annotations

import numpy as np

from stopwise.arrays import FloatArray
from stopwise.estimating.consensus import Groups, plurality_of


def held_against_others(
    groups: Groups, accuracy: FloatArray, votes: FloatArray, kinds: int
) -> FloatArray:
    """For each partition and stage: the mean of both ways; nan where no other stage answers.

    >>> rows = Groups.of(np.array([[0, 0, 1]]), np.ones(1))
    >>> held_against_others(rows, np.array([0.8, 0.8, 0.8]), np.ones(3), kinds=2).round(2)
    array([[0.5 , 0.5 , 0.03]])
    """
    by_weight = consensus_of_others(groups, accuracy, votes, kinds)
    return (plurality_of_others(groups) + by_weight) / 2


def plurality_of_others(groups: Groups) -> FloatArray:
    """For each partition and stage: right if the others give its answer most; ties are shared.

    nan where no other stage answers, 0 where the stage itself does not.

    >>> rows = Groups.of(np.array([[0, 0, 1], [0, 1, 2], [0, -1, 1]]), np.ones(3))
    >>> plurality_of_others(rows)[rows.inverse]
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    right = np.zeros(groups.codes.shape)
    for stage in range(groups.codes.shape[1]):
        others = _others(groups, stage)
        rest = Groups.of(groups.codes[:, others], groups.number)
        chances = plurality_of(rest)[rest.inverse]
        right[:, stage] = (groups.same[:, stage, others] * chances).max(axis=1)
    return _where_asked(groups, right)


def consensus_of_others(
    groups: Groups, accuracy: FloatArray, votes: FloatArray, kinds: int
) -> FloatArray:
    """For each partition and stage: the chance that its answer is right, by what the others say.

    As in the consensus: errors independent, all wrong labels alike, the accuracies given.

    >>> rows = Groups.of(np.array([[0, 0, 1]]), np.ones(1))
    >>> consensus_of_others(rows, np.array([0.8, 0.8, 0.8]), np.ones(3), kinds=2).round(2)
    array([[0.5 , 0.5 , 0.06]])
    """
    gain = votes * (np.log(accuracy) - np.log((1 - accuracy) / (kinds - 1)))
    right = np.zeros(groups.codes.shape)
    for stage in range(groups.codes.shape[1]):
        others = _others(groups, stage)
        # Of the answer of every stage: what the others say for it, as the logarithm of odds.
        said = groups.same[:, :, others] @ gain[others]
        top = np.maximum(said.max(axis=1), 0.0)
        odds = np.exp(said - top[:, None])
        # An answer counts once, by the first of the others that gives it; then those nobody gave.
        earlier = np.tril(groups.same[:, others][:, :, others], -1).any(axis=2)
        first = (groups.codes[:, others] >= 0) & ~earlier
        unsaid = np.maximum(kinds - first.sum(axis=1), 0) * np.exp(-top)
        right[:, stage] = odds[:, stage] / ((odds[:, others] * first).sum(axis=1) + unsaid)
    return _where_asked(groups, right)


def _others(groups: Groups, stage: int) -> FloatArray:
    return np.delete(np.arange(groups.codes.shape[1]), stage)


def _where_asked(groups: Groups, right: FloatArray) -> FloatArray:
    """Take nan where no other stage answers, 0 where the stage itself does not."""
    answered = groups.codes >= 0
    nobody = answered.sum(axis=1, keepdims=True) - answered == 0
    return np.where(answered, np.where(nobody, np.nan, right), 0.0)
