"""Paths: the stages called so far, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

LONGEST = 3
MANY_STAGES = 6
"""With more stages than this, paths hold at most `LONGEST` stages before the last."""

StagePath = tuple[int, ...]
KeyTable = tuple[tuple[int, Mapping[int, int]], ...]
"""From fine to coarse: how many bits of a key to cut off, and what to do at each key."""


def paths(stage_count: int) -> Iterator[StagePath]:
    """All paths after which there is something to decide, longest first.

    >>> list(paths(3))
    [(0, 1), (0,), (1,)]
    """
    last = stage_count - 1
    longest = last if stage_count <= MANY_STAGES else min(last, LONGEST)
    for length in range(longest, 0, -1):
        yield from combinations(range(last), length)
