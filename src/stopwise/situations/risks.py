"""Losses of every situation: transition counts carried back, stage by stage, from the end.

After the last stage the partition says what each stage's answer would lose. One stage earlier a
situation's losses are the mean over the situations that follow it, and so on back to the first
stage (the g-formula). A full run counts with what it really ended in; any other round with what its
like ended in. At every stage a situation leans on its coarser keys as if it had some more rows that
look like them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.costs import Costs
from stopwise.situations.keys import LEVELS, partition_of
from stopwise.situations.leaning import Levels, StageRisks
from stopwise.situations.references_base import FinalLoss
from stopwise.situations.transitions import Transitions


@dataclass(frozen=True)
class StageMoves:
    """What was counted after one stage, as arrays: made once, for any loss.

    Attributes:
        before, after, weight: the moves: from which situation, to which, how often.
        fine: the different situations that items went on from, sorted.
        inverse: the place of each move's start among them.
        rows: how many items went on from each.
        levels: they and their coarser keys.
        next: where each move's end stands among the keys of the next stage; none at the last.
    """

    before: IntArray
    after: IntArray
    weight: FloatArray
    fine: IntArray
    inverse: IntArray
    rows: FloatArray
    levels: Levels
    next: IntArray

    @classmethod
    def all_of(cls, counts: Transitions) -> tuple[StageMoves, ...]:
        """After every stage but the last.

        >>> from stopwise.situations.binning import Binning
        >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
        >>> counts.add([5, 7])
        >>> StageMoves.all_of(counts)[0].rows
        array([1.])
        """
        found: list[StageMoves] = []
        none = np.zeros(0, dtype=np.int64)
        for moves in counts.moves:
            before, after, weight = _columns(moves)
            fine, inverse = np.unique(before, return_inverse=True)
            rows = _sums(inverse, weight, len(fine))
            met = _met(counts, found[-1] if found else None, fine)
            levels = Levels.of(fine, rows, met)
            if found:
                found[-1] = replace(found[-1], next=levels.places(found[-1].after))
            found.append(cls(before, after, weight, fine, inverse, rows, levels, none))
        return tuple(found)

    def means(self, values: FloatArray) -> FloatArray:
        """The mean of a value of each move, or of a row of them, by where the move starts."""
        if values.ndim == 1:
            return _sums(self.inverse, self.weight * values, len(self.fine)) / self.rows
        sums = _sums(self.inverse, self.weight[:, None] * values, len(self.fine))
        return np.asarray(sums / self.rows[:, None])


def carry_back(
    counts: Transitions, loss: FinalLoss, moved: tuple[StageMoves, ...] | None = None
) -> tuple[StageRisks, ...]:
    """The losses after every stage but the last; `moved` is `StageMoves.all_of(counts)`.

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
    stage_count = counts.stage_count
    moved = StageMoves.all_of(counts) if moved is None else moved
    result: list[StageRisks] = []
    for stage in range(stage_count - 2, -1, -1):
        here = moved[stage]
        values = result[-1].at(here.next) if result else _at_the_end(here.after, loss, stage_count)
        means = here.means(values)
        if result:
            start, end, number = _columns(counts.ends[stage])
            at = np.searchsorted(here.fine, start)
            seen = _sums(at, number, len(here.fine))
            # The chain forgets what the next situation does not hold; full runs have not.
            ended = _sums(at, number[:, None] * _at_the_end(end, loss, stage_count), len(here.fine))
            means = (ended + (here.rows - seen)[:, None] * means) / here.rows[:, None]
        result.append(here.levels.lean(means))
    return tuple(reversed(result))


def going_on(
    counts: Transitions,
    loss: FinalLoss,
    risks: tuple[StageRisks, ...],
    costs: Costs,
    moved: tuple[StageMoves, ...] | None = None,
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
    moved = StageMoves.all_of(counts) if moved is None else moved
    result: list[StageRisks] = []
    for stage in range(last - 1, -1, -1):
        if result:
            places = moved[stage].next
            here = risks[stage + 1].at(places)[:, stage + 1]
            values = np.minimum(here, result[-1].at(places)[:, 0])
        else:
            values = _at_the_end(moved[stage].after, loss, last + 1)[:, last]
        means = moved[stage].means(values + steps[stage + 1])
        result.append(moved[stage].levels.lean(means[:, None], risks[stage].leans))
    return tuple(reversed(result))


def _met(counts: Transitions, before: StageMoves | None, keys: IntArray) -> FloatArray:
    """How often each of these situations was met, whether or not items went on from it."""
    if before is None:
        return np.asarray([counts.first[key] for key in keys.tolist()], dtype=np.float64)
    if not len(keys):
        return np.zeros(0)
    at = np.minimum(np.searchsorted(keys, before.after), len(keys) - 1)
    known = keys[at] == before.after
    return _sums(at[known], before.weight[known], len(keys))


def _at_the_end(keys: IntArray, loss: FinalLoss, stage_count: int) -> FloatArray:
    """The losses in situations after the last stage; each different partition is asked for once."""
    if not len(keys):
        return np.zeros((0, stage_count))
    different, inverse = np.unique(keys >> LEVELS[1], return_inverse=True)
    groups = np.asarray([partition_of(code) for code in different.tolist()], dtype=np.int64)
    return np.asarray(loss(groups)[inverse])


def _columns(pairs: Mapping[tuple[int, int], int]) -> tuple[IntArray, IntArray, FloatArray]:
    number = len(pairs)
    keys = np.fromiter(chain.from_iterable(pairs), dtype=np.int64, count=2 * number)
    return keys[::2], keys[1::2], np.fromiter(pairs.values(), dtype=np.float64, count=number)


def _sums(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """The sum of values, or of rows of them, in each group."""
    if values.ndim == 1:
        # Of nothing it gives whole numbers, whatever the weights.
        return np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    return np.stack([_sums(group, column, groups) for column in values.T], axis=1)
