"""Which outputs of a round agree: the one rule by which rounds become counts.

Whatever the outputs are, only their *partition* matters: which stages said the same. A row of
outputs is numbered by first appearance, so that ("cat", "dog", "cat") becomes (0, 1, 0), and every
room that counts rounds does it by `count_prefix`, once for each different partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Increments(NamedTuple):
    """What a round adds to the counters: (i, j, disagreed) for each pair, and the switches."""

    pairs: tuple[tuple[int, int, bool], ...]
    switched: int
    switched_twice: int


def count_prefix(answered: Sequence[int], differ: Callable[[int, int], bool | None]) -> Increments:
    """What one round adds.

    Args:
        answered: the stages that answered, in order; one that abstained is neither agreement nor
            disagreement.
        differ: whether two of them, given by stage, disagreed; None where nobody can say: then
            the pair is not counted.

    >>> count_prefix([0, 1, 2], lambda i, j: (i, j) != (0, 2))   # outputs a, b, a
    Increments(pairs=((0, 1, True), (0, 2, False), (1, 2, True)), switched=1, switched_twice=1)
    """
    pairs = []
    switches = 0
    for at, j in enumerate(answered):
        differs: bool | None = False
        for i in answered[:at]:
            differs = differ(i, j)
            if differs is not None:
                pairs.append((i, j, bool(differs)))
        switches += bool(differs)  # of j and the one that answered just before it
    # With two answers a switch is just a disagreement: only longer rounds can switch back.
    long = len(answered) >= 3
    return Increments(tuple(pairs), int(long and switches >= 1), int(long and switches >= 2))


@lru_cache(maxsize=4096)
def count_partition(partition: tuple[int, ...]) -> Increments:
    """What a round with this partition adds; below 0 stands for a stage that gave no answer.

    >>> count_partition((0, -1, 1)).pairs
    ((0, 2, True),)
    """
    answered = [stage for stage, group in enumerate(partition) if group >= 0]
    return count_prefix(answered, lambda i, j: partition[i] != partition[j])


def partitions(codes: ArrayLike) -> NDArray[np.int64]:
    """The partition of every row of coded outputs; codes below 0 stay below 0 and join none.

    >>> partitions([[7, 3, 7], [5, -1, 5]])
    array([[ 0,  1,  0],
           [ 0, -1,  0]])
    """
    table = np.asarray(codes, dtype=np.int64)
    result = np.empty_like(table)
    groups = np.zeros(len(table), dtype=np.int64)  # how many different outputs came before
    for stage in range(table.shape[1]):
        column = table[:, stage]
        spoke = column >= 0
        own = np.where(spoke, groups, column)
        fresh = spoke.copy()
        for earlier in range(stage):
            same = spoke & (table[:, earlier] == column)
            np.copyto(own, result[:, earlier], where=same)
            fresh &= ~same
        groups += fresh
        result[:, stage] = own
    return result


def distinct(
    rows: NDArray[np.int64], number: ArrayLike | None = None
) -> Iterable[tuple[tuple[int, ...], int]]:
    """Every different row with how often it occurs (each row counting `number` times).

    >>> list(distinct(np.array([[0, 1], [0, 0], [0, 1]])))
    [((0, 0), 1), ((0, 1), 2)]
    """
    if not len(rows):
        return
    low = int(rows.min())
    base, width = int(rows.max()) - low + 1, rows.shape[1]
    size = base**width
    if size > max(4096, 8 * len(rows)):
        found, places = np.unique(rows, axis=0, return_inverse=True)
        total = _sums(places.ravel(), len(found), number)
    else:
        # As digits of one number, rows need no sorting: there are few different ones.
        keys = rows[:, 0] - low
        for at in range(1, width):
            keys = keys * base + (rows[:, at] - low)
        total = _sums(keys, size, number)
        kept = np.flatnonzero(total if number is None else np.bincount(keys, minlength=size))
        powers = base ** np.arange(width - 1, -1, -1)
        found, total = kept[:, None] // powers % base + low, total[kept]
    yield from zip(map(tuple, found.tolist()), total.tolist(), strict=True)


def _sums(places: NDArray[np.int64], size: int, number: ArrayLike | None) -> NDArray[np.int64]:
    if number is None:
        return np.bincount(places, minlength=size)
    # Integers are added as integers: sums of weights in floats would lose counts above 2^53.
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, places, np.asarray(number))
    return total
