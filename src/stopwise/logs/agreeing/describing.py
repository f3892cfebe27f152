"""A situation as a row of numbers, for the regression that orders items by their risk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from stopwise.arrays import IntArray
from stopwise.costs import FloatArray
from stopwise.logs.agreeing.seen import Seen
from stopwise.situations.observations import NOT_CALLED

_MOST_LABELS = 8


class Describer:
    """The columns of one stage's situations: confidence, label, agreement with earlier stages.

    Confidences count by their rank, as a value of the normal distribution: what a stage calls 0.9
    means nothing in itself. Labels are held back more than confidences, because there are few rows
    for each. The penalties belong to the columns.

    Args:
        seen: what was seen so far.
        stage: after which stage.
        known: items on which the stage was called, to rank others by.
        features: what is known of items before the first call.
    """

    def __init__(
        self,
        seen: Seen,
        stage: int,
        known: IntArray,
        features: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self._seen = seen
        self.stage = stage
        self._pools = [_pool(seen.confidences[known, at]) for at in range(stage + 1)]
        found, counts = np.unique(seen.codes[known, stage], return_counts=True)
        self._labels = found[np.argsort(-counts, kind="stable")][:_MOST_LABELS]
        self._beside = [
            column
            for values in (features or {}).values()
            for column in _feature(np.asarray(values))
        ]
        self.penalty = np.asarray([penalty for _, penalty in self._columns(known[:1])])

    def rows(self, items: IntArray) -> FloatArray:
        """The numbers of each item."""
        return np.stack([column for column, _ in self._columns(items)], axis=1)

    def _columns(self, items: IntArray) -> list[tuple[FloatArray, float]]:
        codes = self._seen.codes[items]
        own = self._scores(items, self.stage)
        result = [(np.ones(len(items)), 0.01), (own, 0.3)]
        result += [(own**2 / 2, 1.0), (np.maximum(own - 1, 0), 1.0)]
        for label in self._labels:
            says = (codes[:, self.stage] == label).astype(np.float64)
            result += [(says, 3.0), (says * own, 5.0)]
        for before in range(self.stage):
            called = codes[:, before] != NOT_CALLED
            same = (called & (codes[:, before] == codes[:, self.stage])).astype(np.float64)
            score = self._scores(items, before)
            result += [(same, 0.3), (score, 0.6), (same * score, 1.0), (same * own, 1.0)]
        result += [(column[items], 3.0) for column in self._beside]
        return result

    def _scores(self, items: IntArray, stage: int) -> FloatArray:
        """Normal scores of confidences; 0, the middle, where there is none."""
        return normal_scores(self._pools[stage], self._seen.confidences[items, stage])


def normal_scores(pool: FloatArray, values: FloatArray) -> FloatArray:
    """The rank of values among a sorted pool, as a value of the normal distribution.

    >>> normal_scores(np.array([1.0, 2.0, 3.0]), np.array([2.0, np.nan])).round(2)
    array([0., 0.])
    """
    if not len(pool):
        return np.zeros(len(values))
    below = np.searchsorted(pool, values, side="left")
    through = np.searchsorted(pool, values, side="right")
    rank = (below + through + 1) / 2 / (len(pool) + 1)
    scores = ndtri(np.clip(rank, 1e-4, 1 - 1e-4))
    return np.asarray(np.where(np.isnan(values), 0.0, scores))


def _pool(values: FloatArray) -> FloatArray:
    return np.sort(values[~np.isnan(values)])


def _feature(values: NDArray[Any]) -> list[FloatArray]:
    if np.issubdtype(values.dtype, np.number):
        numbers = values.astype(np.float64)
        score = normal_scores(_pool(numbers), numbers)
        return [score, score**2 / 2]
    found, counts = np.unique(values.astype(str), return_counts=True)
    common = found[np.argsort(-counts, kind="stable")][:_MOST_LABELS]
    return [(values.astype(str) == value).astype(np.float64) for value in common]
