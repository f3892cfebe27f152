"""Losses of every situation: transition counts carried back, stage by stage, from the end.

After the last stage the partition says what each stage's answer would lose. One stage earlier a
situation's losses are the mean over the situations that follow it, and so on back to the first
stage (the g-formula). A full run counts with what it really ended in; any other round with what its
like ended in. At every stage a situation leans on its coarser keys as if it had some more rows that
look like them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.costs import Costs
from stopwise.situations.keys import LEVELS, decode
from stopwise.situations.references_base import FinalLoss
from stopwise.situations.transitions import Transitions

LEAST_LEAN, MOST_LEAN = 5.0, 300.0
"""Bounds on how many rows of its coarser key a situation is given beside its own."""


@dataclass(frozen=True)
class StageRisks:
    """What is known after one stage, from coarse to fine.

    Attributes:
        keys: for each level of `LEVELS`, the keys met, sorted.
        rows: for each of them, how many items went on from it.
        losses: for each of them, the expected loss of each stage's answer, in mistakes.
        leans: for each level, how many rows of its coarser key a key was given.
    """

    keys: tuple[IntArray, ...]
    rows: tuple[FloatArray, ...]
    losses: tuple[FloatArray, ...]
    leans: tuple[float, ...]

    def look_up(self, situations: IntArray) -> FloatArray:
        """The losses of situations; one never met has those of its finest known coarser key."""
        if len(situations) and len(self.keys[-1]):  # most are known at once
            at = np.minimum(np.searchsorted(self.keys[-1], situations), len(self.keys[-1]) - 1)
            left = np.flatnonzero(self.keys[-1][at] != situations)
            result = self.losses[-1][at]
        else:
            left = np.arange(len(situations))
            result = np.repeat(self.losses[0], len(situations), axis=0)
        for level in range(len(LEVELS) - 2, -1, -1):
            if not len(left):
                break
            keys, wanted = self.keys[level], situations[left] >> LEVELS[level]
            if not level:
                result[left] = self.losses[0]
            elif len(keys):
                at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
                found = keys[at] == wanted
                result[left[found]] = self.losses[level][at[found]]
                left = left[~found]
        return result


def carry_back(counts: Transitions, loss: FinalLoss) -> tuple[StageRisks, ...]:
    """The losses after every stage but the last.

    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.observations import Observations
    >>> from stopwise.situations.references import hold_against
    >>> rows = Observations(("no", "yes"), np.array([[0, 0]] * 400 + [[1, 0]] * 400))
    >>> counts = Transitions.of(rows, Binning.fit(rows))
    >>> found = carry_back(counts, hold_against(counts, "last", trust=1).loss)
    >>> no, yes = found[0].keys[-1]
    >>> found[0].look_up(np.array([no, yes])).round(2)   # "no" is never changed, "yes" always
    array([[0., 0.],
           [1., 0.]])
    """
    count = counts.stage_count
    result: list[StageRisks] = []
    for stage in range(count - 2, -1, -1):
        before, after, weight = _columns(counts.moves[stage])
        values = result[-1].look_up(after) if result else _at_the_end(after, loss, count)
        fine, inverse = np.unique(before, return_inverse=True)
        rows = _sums(inverse, weight, len(fine))
        means = _sums(inverse, weight[:, None] * values, len(fine)) / rows[:, None]
        if result:
            start, end, number = _columns(counts.ends[stage])
            at = np.searchsorted(fine, start)
            seen = _sums(at, number, len(fine))
            # The chain forgets what the next situation does not hold; full runs have not.
            ended = _sums(at, number[:, None] * _at_the_end(end, loss, count), len(fine))
            means = (ended + (rows - seen)[:, None] * means) / rows[:, None]
        result.append(lean(fine, rows, _met(counts, stage, fine), means))
    return tuple(reversed(result))


def going_on(
    counts: Transitions, loss: FinalLoss, risks: tuple[StageRisks, ...], costs: Costs
) -> tuple[StageRisks, ...]:
    """What going on from each situation costs, in mistakes: optimal stopping, from the end.

    The next stage is paid for, and after it the lesser of stopping there and going on once more.

    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.observations import Observations
    >>> from stopwise.situations.references import hold_against
    >>> rows = Observations(("no", "yes"), np.array([[0, 0]] * 400 + [[1, 0]] * 400))
    >>> counts = Transitions.of(rows, Binning.fit(rows))
    >>> held = hold_against(counts, "last", trust=1)
    >>> costs = Costs.from_stages([1, 2], mistake_cost=20)
    >>> found = going_on(counts, held.loss, carry_back(counts, held.loss), costs)
    >>> found[0].losses[0].round(2)    # 2 / 20, and the last stage loses nothing
    array([[0.1]])
    """
    steps = costs.per_stage / costs.mistake_cost
    last = counts.stage_count - 1
    result: list[StageRisks] = []
    for stage in range(last - 1, -1, -1):
        before, after, weight = _columns(counts.moves[stage])
        if result:
            here = risks[stage + 1].look_up(after)[:, stage + 1]
            values = np.minimum(here, result[-1].look_up(after)[:, 0])
        else:
            values = _at_the_end(after, loss, last + 1)[:, last]
        fine, inverse = np.unique(before, return_inverse=True)
        rows = _sums(inverse, weight, len(fine))
        means = _sums(inverse, weight * (values + steps[stage + 1]), len(fine)) / rows
        met = _met(counts, stage, fine)
        result.append(lean(fine, rows, met, means[:, None], risks[stage].leans))
    return tuple(reversed(result))


def _met(counts: Transitions, stage: int, keys: IntArray) -> FloatArray:
    """How often each of these situations was met, whether or not items went on from it."""
    if stage == 0:
        return np.asarray([counts.first[key] for key in keys.tolist()], dtype=np.float64)
    _, after, number = _columns(counts.moves[stage - 1])
    met = np.searchsorted(keys, after)
    known = (met < len(keys)) & (keys[np.minimum(met, len(keys) - 1)] == after)
    return _sums(met[known], number[known], len(keys))


def _at_the_end(keys: IntArray, loss: FinalLoss, count: int) -> FloatArray:
    """The losses in situations after the last stage; each different one is asked for once."""
    if not len(keys):
        return np.zeros((0, count))
    different, inverse = np.unique(keys, return_inverse=True)
    groups = np.asarray([decode(key).partition for key in different.tolist()], dtype=np.int64)
    return np.asarray(loss(groups)[inverse])


def _columns(pairs: Mapping[tuple[int, int], int]) -> tuple[IntArray, IntArray, FloatArray]:
    number = len(pairs)
    keys = np.fromiter(chain.from_iterable(pairs), dtype=np.int64, count=2 * number)
    return keys[::2], keys[1::2], np.fromiter(pairs.values(), dtype=np.float64, count=number)


def lean(
    fine: IntArray,
    rows: FloatArray,
    met: FloatArray,
    means: FloatArray,
    leans: tuple[float, ...] | None = None,
) -> StageRisks:
    """Means by every level's keys, each leaning on the level above.

    Within a coarser key, situations count by how often they were met, not by how often items went
    on from them: a rule that sends the hard ones on more often leaves the coarse mean unbiased.
    """
    above = np.full((1, means.shape[1]), 0.5)  # half a mistake, as far as nothing was ever seen
    keys_at: list[IntArray] = []
    rows_at: list[FloatArray] = []
    losses_at: list[FloatArray] = []
    leans_at: list[float] = []
    parents = np.zeros(0, dtype=np.int64)
    weighed = met[:, None] * means
    for level, shift in enumerate(LEVELS):
        # Keys are sorted, and cutting bits off keeps them so: equal ones stand side by side.
        cut = fine >> shift
        new = np.ones(len(cut), dtype=np.bool_)
        np.not_equal(cut[1:], cut[:-1], out=new[1:])
        first = np.flatnonzero(new)
        keys, group = cut[first], np.cumsum(new) - 1
        if len(keys):
            number = np.add.reduceat(rows, first)
            mean = np.add.reduceat(weighed, first) / np.add.reduceat(met, first)[:, None]
        else:
            number, mean = np.zeros(0), np.zeros((0, means.shape[1]))
        parent = above[parents[first]] if level else np.repeat(above, len(keys), axis=0)
        if leans is not None:
            lean = leans[level]
        else:
            lean = rows_to_lean_on(number, mean, parent) if level else 1.0
        losses = (number[:, None] * mean + lean * parent) / (number[:, None] + lean)
        if not level and not len(keys):  # no item ever went on from here
            keys, number, losses = np.zeros(1, dtype=np.int64), np.zeros(1), above
        keys_at.append(keys)
        rows_at.append(number)
        losses_at.append(losses)
        leans_at.append(lean)
        above, parents = losses, group
    return StageRisks(tuple(keys_at), tuple(rows_at), tuple(losses_at), tuple(leans_at))


def rows_to_lean_on(number: FloatArray, mean: FloatArray, parent: FloatArray) -> float:
    """How many rows of the coarser key each of its finer keys is given beside its own.

    The variance of a single row over the variance between keys, by their moments: where keys differ
    by no more than chance, they lean on what is above them; where they differ much, they do not.

    >>> same = np.array([[0.5], [0.5]])
    >>> rows_to_lean_on(np.array([100.0, 100.0]), same, same)
    300.0
    >>> rows_to_lean_on(np.array([100.0, 100.0]), np.array([[0.1], [0.9]]), same)
    5.0
    """
    if len(number) < 2:
        return MOST_LEAN
    within = (parent * (1 - parent)).sum(axis=1)
    apart = ((mean - parent) ** 2).sum(axis=1)
    between = float((number * apart - within).sum())
    if between <= 0:
        return MOST_LEAN
    return float(np.clip((number * within).sum() / between, LEAST_LEAN, MOST_LEAN))


def _sums(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """The sum of values, or of rows of them, in each group."""
    if values.ndim == 1:
        # Of nothing it gives whole numbers, whatever the weights.
        return np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    return np.stack([_sums(group, column, groups) for column in values.T], axis=1)
