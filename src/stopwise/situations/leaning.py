"""Means by situation, each leaning on its coarser keys as if it had some more rows like them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.situations.keys import LEVELS

LEAST_LEAN = 5.0
MOST_LEAN = (30.0, 300.0)
"""Bounds on how many rows of its coarser key a situation is given beside its own.

Few rounds tell little of how far keys differ. With a high upper bound a rule that learns as it goes
would then treat all situations alike, and stop where it learns nothing of them any more. So the
upper bound grows with the rows, from the first of these numbers to the second: many rows that show
no difference are believed, and stated risks stay calibrated.
"""

ROWS_FOR_LEAN = 10.0
"""The upper bound is one row for this many that were seen."""


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
        return self.at(self.places(situations))

    def places(self, situations: IntArray) -> IntArray:
        """Where the losses of situations stand: the same in all risks over the same keys."""
        return places_of(self.keys, situations)

    def at(self, places: IntArray) -> FloatArray:
        """The losses that stand at these places."""
        return np.asarray(self._all_losses[places])

    @cached_property
    def _all_losses(self) -> FloatArray:
        return np.concatenate(self.losses)


def places_of(keys: tuple[IntArray, ...], situations: IntArray) -> IntArray:
    """The place of each situation's finest known key, where the keys of all levels follow on.

    The coarsest level has one place, for all that is not known any closer.

    >>> fine = np.array([3, 5])
    >>> keys = (np.zeros(1, dtype=int), *(np.unique(fine >> shift) for shift in LEVELS[1:]))
    >>> places_of(keys, np.array([3, 5, 4, 1 << 40])).tolist()    # 4 has the coarser key of both
    [5, 6, 4, 0]
    """
    starts = [0, 1]
    for level_keys in keys[1:]:
        starts.append(starts[-1] + len(level_keys))
    found = np.zeros(len(situations), dtype=np.int64)
    left: IntArray | None = None  # all of them
    for level in range(len(LEVELS) - 1, 0, -1):
        level_keys = keys[level]
        if not len(level_keys):
            continue
        wanted = situations if left is None else situations[left]
        if LEVELS[level]:
            wanted = wanted >> LEVELS[level]
        at = level_keys.searchsorted(wanted)
        np.minimum(at, len(level_keys) - 1, out=at)
        known = level_keys[at] == wanted
        at += starts[level]
        if left is None:
            found[known] = at[known]
            left = np.flatnonzero(~known)
        else:
            found[left[known]] = at[known]
            left = left[~known]
        if not len(left):
            break
    return found


class _Level(NamedTuple):
    """The keys of one level, where each begins among the finest, and its key one level above."""

    keys: IntArray
    first: IntArray
    above: IntArray
    rows: FloatArray
    met: FloatArray


@dataclass(frozen=True)
class Levels:
    """Situations after one stage with all their coarser keys: worked out once, for any values.

    Within a coarser key, situations count by how often they were met, not by how often items went
    on from them: a rule that sends the hard ones on more often leaves the coarse mean unbiased.
    """

    met: FloatArray
    levels: tuple[_Level, ...]

    def places(self, situations: IntArray) -> IntArray:
        """Where situations stand in any risks that lean on these keys."""
        return places_of(tuple(level.keys for level in self.levels), situations)

    @classmethod
    def of(cls, fine: IntArray, rows: FloatArray, met: FloatArray) -> Levels:
        """From sorted situations, how many items went on from each and how many met it.

        >>> one = np.array([1.0])
        >>> levels = Levels.of(np.array([7]), one, one)
        >>> levels.lean(np.array([[0.0]])).losses[0]      # one row, and one that is half a mistake
        array([[0.25]])
        """
        found: list[_Level] = []
        above = np.zeros(0, dtype=np.int64)
        for level, shift in enumerate(LEVELS):
            # Keys are sorted, and cutting bits off keeps them so: equal ones stand side by side.
            cut = fine >> shift
            new = np.ones(len(cut), dtype=np.bool_)
            np.not_equal(cut[1:], cut[:-1], out=new[1:])
            first = np.flatnonzero(new)
            parents = above[first] if level else np.zeros(len(first), dtype=np.int64)
            found.append(_Level(cut[first], first, parents, _by(rows, first), _by(met, first)))
            above = np.cumsum(new) - 1
        return cls(met, tuple(found))

    def lean(self, means: FloatArray, leans: tuple[float, ...] | None = None) -> StageRisks:
        """Means of the finest keys, one row each, to those of all levels.

        Args:
            leans: how many rows of the level above each key is given; by default as many as these
                means themselves ask for.
        """
        above = np.full((1, means.shape[1]), 0.5)  # half a mistake, where nothing was ever seen
        weighed = self.met[:, None] * means
        losses_at: list[FloatArray] = []
        leans_at: list[float] = []
        for at, level in enumerate(self.levels):
            if not at and not len(level.keys):  # no item ever went on from here
                losses_at.append(above)
                leans_at.append(1.0)
                continue
            mean = _by(weighed, level.first) / level.met[:, None]
            parent = above[level.above]
            if leans is not None:
                lean = leans[at]
            else:
                lean = rows_to_lean_on(level.rows, mean, parent) if at else 1.0
            rows = level.rows[:, None]
            above = (rows * mean + lean * parent) / (rows + lean)
            losses_at.append(above)
            leans_at.append(lean)
        keys, rows_at = [level.keys for level in self.levels], [level.rows for level in self.levels]
        if not len(keys[0]):
            keys[0], rows_at[0] = np.zeros(1, dtype=np.int64), np.zeros(1)
        return StageRisks(tuple(keys), tuple(rows_at), tuple(losses_at), tuple(leans_at))


def rows_to_lean_on(number: FloatArray, mean: FloatArray, parent: FloatArray) -> float:
    """How many rows of the coarser key each of its finer keys is given beside its own.

    The variance of a single row over the variance between keys, by their moments: where keys differ
    by no more than chance, they lean on what is above them; where they differ much, they do not.

    >>> same = np.array([[0.5], [0.5]])
    >>> rows_to_lean_on(np.array([100.0, 100.0]), same, same)
    30.0
    >>> rows_to_lean_on(np.array([1000.0, 1000.0]), same, same)      # many rows, and no difference
    200.0
    >>> rows_to_lean_on(np.array([100.0, 100.0]), np.array([[0.1], [0.9]]), same)
    5.0
    """
    most = min(max(float(number.sum()) / ROWS_FOR_LEAN, MOST_LEAN[0]), MOST_LEAN[1])
    if len(number) < 2:
        return most
    within = (parent * (1 - parent)).sum(axis=1)
    apart = ((mean - parent) ** 2).sum(axis=1)
    between = float((number * apart - within).sum())
    if between <= 0:
        return most
    return min(max(float((number * within).sum()) / between, LEAST_LEAN), most)


def _by(values: FloatArray, first: IntArray) -> FloatArray:
    """Sums of values that stand side by side, from each of these places to the next."""
    if not len(first):
        return np.zeros((0, *values.shape[1:]))
    return np.asarray(np.add.reduceat(values, first))
