"""The consensus of the stages: probably true answers, and how accurate each stage then is.

The model is that of Dawid and Skene (1979) with one number for each stage: stage s is right with
probability a_s, and otherwise gives each of the other labels with equal chance, independently of
the other stages. Accuracies and truths are found in turn (EM), starting from the plurality. Under
this model only *which* stages agree matters, not what they say, so rows are first reduced to their
partitions (`stopwise.agreement`): a log of any size has few.

Codes below 0 stand for no answer: such a stage says nothing about that item, right or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stopwise.agreement import partitions
from stopwise.arrays import FloatArray, IntArray
from stopwise.checks import fail, names_settings, whole_numbers

COPY_SHARE = 0.25
"""Stages that differ less than this share of what either differs from others share one vote."""

_PRIOR = (2.0, 1.0)
"""Right and wrong answers that every stage is credited with before the first row."""

_MOST_ROUNDS = 500
_PRECISION = 1e-8


@dataclass(frozen=True)
class Consensus:
    """Probable truths of the rows, and what follows for the stages.

    Attributes:
        accuracy: how often each stage is right when it answers.
        right: one row per row of outputs, one column per stage: the probability that the output of
            this stage is the truth; 0 where it gave none. Stages that agree have the same.
        elsewhere: of each row, the probability that the truth is none of the outputs.
        votes: the share of a vote that each stage has; below 1 for copies of another.
        log_likelihood: of the rows, under the model.

    >>> found = consensus([[0, 0, 0], [0, 1, 0], [1, 0, 0]], [80, 10, 10])
    >>> int(found.accuracy.argmax()), found.right.shape
    (2, (3, 3))
    """

    accuracy: FloatArray
    right: FloatArray
    elsewhere: FloatArray
    votes: FloatArray
    log_likelihood: float

    def error_rates(self, number: ArrayLike | None = None) -> FloatArray:
        """Share of all rows on which each stage is wrong or silent.

        >>> consensus([[0, 0, 0], [0, 0, 1]], [90, 10]).error_rates([90, 10]).round(2)
        array([0.05, 0.05, 0.05])

        The first two always agree: they may be copies, and share one vote.
        """
        times = row_numbers(self.right, number)
        return np.asarray(1 - times @ self.right / times.sum())


@names_settings
def consensus(
    codes: ArrayLike,
    number: ArrayLike | None = None,
    *,
    labels: int | None = None,
    votes: ArrayLike | None = None,
) -> Consensus:
    """Estimate who is right, by expectation maximisation.

    Args:
        codes: one row per item (or per pattern of outputs), one column per stage; below 0: none.
        number: how many items each row stands for.
        labels: how many different answers there are; by default as many as there are codes.
        votes: the share of a vote of each stage; by default `vote_shares`, so that copies of one
            stage count once.

    >>> found = consensus([[0, 0, 0], [0, 0, 1], [0, 1, 1]], [80, 15, 5])
    >>> found.right[1].round(2), found.accuracy.argmax()
    (array([1., 1., 0.]), np.int64(1))
    """
    table = as_codes(codes)
    times = row_numbers(table, number)
    kinds = label_count(table, labels)
    share = vote_shares(table, times) if votes is None else np.asarray(votes, dtype=np.float64)
    groups = Groups.of(table, times)
    accuracy, right, elsewhere, likelihood = maximise(groups, groups.number[None], kinds, share)
    return Consensus(
        accuracy=accuracy[0],
        right=right[0][groups.inverse],
        elsewhere=elsewhere[0][groups.inverse],
        votes=share,
        log_likelihood=float(likelihood[0]),
    )


@names_settings
def plurality(codes: ArrayLike, number: ArrayLike | None = None) -> FloatArray:
    """The probability that each output is right if the most frequent answer is; ties are shared.

    >>> plurality([[0, 0, 1], [0, 1, 2], [0, -1, 1]]).round(2)
    array([[1.  , 1.  , 0.  ],
           [0.33, 0.33, 0.33],
           [0.5 , 0.  , 0.5 ]])
    """
    table = as_codes(codes)
    groups = Groups.of(table, row_numbers(table, number))
    return np.asarray(plurality_of(groups)[groups.inverse])


@names_settings
def vote_shares(codes: ArrayLike, number: ArrayLike | None = None) -> FloatArray:
    """The share of a vote of each stage: copies of one another share one.

    Stages count as copies as far as their disagreement falls below a quarter of what any of them
    has with a stage outside; those that always agree share one vote. Two stages that are both
    nearly always right differ rarely too, but then so does one of the others from them.

    >>> vote_shares([[0, 0, 1], [0, 0, 0], [1, 1, 0]])
    array([0.5, 0.5, 1. ])
    """
    table = as_codes(codes)
    distance = disagreements(table, row_numbers(table, number))
    # Stages never seen together are nobody's copies.
    distance = np.where(np.isnan(distance), 1.0, distance)
    alike = np.zeros_like(distance)
    for family in _families(distance):
        members = np.array(family)
        outside = np.setdiff1d(np.arange(len(distance)), members)
        within = np.ix_(members, members)
        nearest = COPY_SHARE * float(distance[np.ix_(members, outside)].min())
        if nearest > 0:
            found = max(1 - float(distance[within].max()) / nearest, 0.0)
            alike[within] = np.maximum(alike[within], found)
    np.fill_diagonal(alike, 0.0)
    return np.asarray(1 / (1 + alike.sum(axis=1)))


def _families(distance: FloatArray) -> list[list[int]]:
    """Groups of two stages or more, not all of them, that arise as the nearest are joined."""
    groups = [[stage] for stage in range(len(distance))]
    found = []
    while len(groups) > 2:
        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = min(pairs, key=lambda ab: distance[groups[ab[0]]][:, groups[ab[1]]].min())
        groups.append(sorted(groups.pop(a) + groups.pop(b)))
        found.append(groups[-1])
    return found


# ---- the rows, reduced ----------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """The different partitions of the rows.

    Attributes:
        codes: one row per partition.
        number: how many items have it.
        inverse: the partition of every row.
        same: same[g, s, t] tells whether s and t both answered, and alike.
        first: whether stage s is the first that gives its answer.
    """

    codes: IntArray
    number: FloatArray
    inverse: IntArray
    same: FloatArray
    first: NDArray[np.bool_]

    @classmethod
    def of(cls, table: IntArray, times: FloatArray) -> Groups:
        """Reduce rows to their partitions."""
        codes, inverse = np.unique(partitions(table), axis=0, return_inverse=True)
        inverse = inverse.ravel()
        answered = codes >= 0
        same = (
            (codes[:, :, None] == codes[:, None, :]) & answered[:, :, None] & answered[:, None, :]
        )
        earlier = np.tril(np.ones((codes.shape[1],) * 2, dtype=bool), -1)
        return cls(
            codes=codes,
            number=np.bincount(inverse, weights=times, minlength=len(codes)).astype(np.float64),
            inverse=inverse,
            same=same.astype(np.float64),
            first=answered & ~(same & earlier[None]).any(axis=2),
        )


def as_codes(codes: ArrayLike) -> IntArray:
    """Outputs as a table of whole numbers."""
    table = whole_numbers("codes", codes, "a table of whole numbers: items x stages")
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise fail("codes", f"a table of shape {table.shape}", "one row or more, and two stages")
    return table


def row_numbers(table: NDArray[np.generic], number: ArrayLike | None) -> FloatArray:
    """How many items each row stands for; one, if nothing is said."""
    if number is None:
        return np.ones(len(table))
    times = np.asarray(number, dtype=np.float64)
    if times.shape != (len(table),) or (times < 0).any() or not times.sum() > 0:
        raise fail("number", number, f"{len(table)} counts of 0 or more, one for each row")
    return times


def label_count(table: IntArray, labels: int | None) -> int:
    """How many different answers there are: at least two."""
    found = len(np.unique(table[table >= 0]))
    return max(found if labels is None else labels, 2)


def disagreements(table: IntArray, times: FloatArray) -> FloatArray:
    """The share of items answered by both on which two stages differ; nan where never seen.

    >>> disagreements(np.array([[0, 0], [0, 1]]), np.array([3.0, 1.0]))
    array([[0.  , 0.25],
           [0.25, 0.  ]])
    """
    stage_count = table.shape[1]
    result = np.zeros((stage_count, stage_count))
    for i in range(stage_count):
        for j in range(i + 1, stage_count):
            both = (table[:, i] >= 0) & (table[:, j] >= 0)
            seen = times[both].sum()
            differ = times[both & (table[:, i] != table[:, j])].sum()
            result[i, j] = result[j, i] = differ / seen if seen > 0 else np.nan
    return result


# ---- expectation maximisation ---------------------------------------------------------------


def maximise(
    groups: Groups,
    number: FloatArray,
    kinds: int,
    votes: FloatArray,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """EM of several samples at once (one row of `number` each): bootstraps share the partitions.

    Args:
        start: `right` to start from; by default the plurality.

    Returns:
        accuracy (samples x stages), right (samples x partitions x stages), elsewhere (samples x
        partitions) and the log-likelihood of every sample.
    """
    answered = (groups.codes >= 0).astype(np.float64)
    said = _Answers.of(groups)
    begun = plurality_of(groups, votes) if start is None else start
    right = np.broadcast_to(begun[said.group, said.stage], (len(number), len(said.group)))
    answers = number @ answered + sum(_PRIOR)
    times = number[:, said.group]
    with np.errstate(divide="ignore"):
        unsaid = np.log(np.maximum(kinds - groups.first.sum(axis=1), 0))[None]
    for _ in range(_MOST_ROUNDS):
        hits = (times * right) @ said.by
        accuracy = np.minimum(np.maximum((hits + _PRIOR[0]) / answers, 1e-4), 1 - 1e-4)
        updated, elsewhere, likelihood = _truths(said, answered, unsaid, accuracy, kinds, votes)
        change = float(np.abs(updated - right).max(initial=0.0))
        right = updated
        if change < _PRECISION:
            break
    total = np.einsum("bg,bg->b", number, likelihood)
    nobody = np.zeros((len(number), 1))
    return accuracy, np.hstack([right, nobody])[:, said.of_stage], elsewhere, total


@dataclass(frozen=True)
class _Answers:
    """The different answers of every partition: as many as are said, however many stages say them.

    Attributes:
        group: the partition of each answer, in order.
        stage: the first stage that gives it.
        by: by[a, s] tells whether stage s gives answer a.
        starts: where the answers of each partition that has any begin.
        has: the partitions that have any.
        of_stage: the answer that each stage gives in each partition; behind the last where none.
    """

    group: IntArray
    stage: IntArray
    by: FloatArray
    starts: IntArray
    has: IntArray
    of_stage: IntArray

    @classmethod
    def of(cls, groups: Groups) -> _Answers:
        group, stage = np.nonzero(groups.first)
        has, starts = np.unique(group, return_index=True)
        same = groups.same[group, stage]
        of_stage = np.full(groups.codes.shape, len(group), dtype=np.int64)
        at, who = np.nonzero(same)
        of_stage[group[at], who] = at
        return cls(group, stage, same, starts, has, of_stage)


def _truths(
    said: _Answers,
    answered: FloatArray,
    unsaid: FloatArray,
    accuracy: FloatArray,
    kinds: int,
    votes: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The E-step: the probability of every answer, given accuracies; a uniform prior on labels.

    `unsaid` is the logarithm of the number of labels that no stage gave, for each partition. This
    runs some dozen times for every estimate, on few partitions: each call of numpy counts.
    """
    when_wrong = np.log((1 - accuracy) / (kinds - 1))
    gain = votes * (np.log(accuracy) - when_wrong)
    everyone_wrong = (votes * when_wrong) @ answered.T
    # Of each answer: those who gave it were right, all others wrong.
    logs = everyone_wrong[:, said.group] + gain @ said.by.T
    other = everyone_wrong + unsaid
    top = other.copy()
    top[:, said.has] = np.maximum(
        other[:, said.has], np.maximum.reduceat(logs, said.starts, axis=1)
    )
    weights = np.exp(logs - top[:, said.group])
    else_weight = np.exp(other - top)
    total = else_weight.copy()
    total[:, said.has] += np.add.reduceat(weights, said.starts, axis=1)
    right = weights / total[:, said.group]
    return right, else_weight / total, top + np.log(total) - np.log(kinds)


def plurality_of(groups: Groups, votes: FloatArray | None = None) -> FloatArray:
    """The most frequent answer of every partition is right; ties are shared."""
    counts = groups.same @ (np.ones(groups.codes.shape[1]) if votes is None else votes)
    most = np.where(groups.first, counts, -1.0).max(axis=1, keepdims=True)
    winners = (counts >= most - 1e-9) & (groups.codes >= 0)
    ties = np.maximum((winners & groups.first).sum(axis=1, keepdims=True), 1)
    return np.asarray(winners / ties)
