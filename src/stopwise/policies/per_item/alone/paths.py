"""Paths: the stages called so far, in their order, and the situation of an item after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from stopwise.arrays import IntArray
from stopwise.situations.binning import Binning
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations

LONGEST = 3
MANY_STAGES = 6
"""With more stages than this, paths hold at most `LONGEST` stages before the last."""

StagePath = tuple[int, ...]
KeyTable = tuple[tuple[int, Mapping[int, int]], ...]
"""From fine to coarse: how many bits of a key to cut off, and what to do at each key."""


def path_keys(rows: Observations, binning: Binning, path: StagePath) -> IntArray:
    """The situation of every row after a path: that of a cascade of these stages alone."""
    last = rows.stage_count - 1
    # What follows does not matter: a column behind the path keeps its end from being the final one.
    columns = [*path, last]
    part = Observations(
        rows.labels,
        rows.codes[:, columns],
        None if rows.confidences is None else rows.confidences[:, columns],
        rows.features,
    )
    cuts = Binning(
        tuple(binning.edges[at] for at in columns),
        tuple(binning.labels[at] for at in columns),
        binning.features,
        binning.label_count,
    )
    return np.asarray(situations(part, cuts)[:, len(path) - 1])


def paths(stage_count: int) -> Iterator[StagePath]:
    """All paths after which there is something to decide, longest first.

    >>> list(paths(3))
    [(0, 1), (0,), (1,)]
    """
    last = stage_count - 1
    longest = last if stage_count <= MANY_STAGES else min(last, LONGEST)
    for length in range(longest, 0, -1):
        yield from combinations(range(last), length)
