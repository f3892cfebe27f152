"""What a rule is expected to do with items like those that were counted: where they stop.

Items are followed from situation to situation as those went on that were counted, and leave where
the rule stops them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import FloatArray, IntArray
from stopwise.situations.transitions import Transitions

Stops = Callable[[int, IntArray], NDArray[np.bool_]]
"""Whether items stop after a stage, in each of some situations."""


class Leaving(NamedTuple):
    """The items that stop after one stage.

    Attributes:
        keys: their situations.
        shares: of all items, those that stop in each.
    """

    keys: IntArray
    shares: FloatArray


def items_leaving(counts: Transitions, stops: Stops) -> list[Leaving]:
    """Where items stop, stage by stage; the shares add up to 1.

    >>> from stopwise.situations.binning import Binning
    >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    >>> for path in ([5, 7], [5, 8], [6], [6, 8]):
    ...     counts.add(path)
    >>> found = items_leaving(counts, lambda stage, keys: keys == 5)
    >>> [(one.keys.tolist(), one.shares.tolist()) for one in found]
    [([5], [0.5]), ([8], [0.5])]
    """
    number = counts.rounds
    keys = np.fromiter(counts.first, dtype=np.int64, count=len(counts.first))
    shares = np.fromiter(counts.first.values(), dtype=np.float64, count=len(keys)) / max(number, 1)
    found: list[Leaving] = []
    astray = 0.0
    for stage, moves in enumerate(counts.moves):
        here = stops(stage, keys)
        found.append(Leaving(keys[here], shares[here]))
        order = np.argsort(keys[~here])
        keys, shares, gone = _go_on(moves, keys[~here][order], shares[~here][order])
        astray += gone
    if astray:  # nobody ever went on from where they are: they go to the end, whatever comes
        keys, shares = np.append(keys, 0), np.append(shares, astray)
    return [*found, Leaving(keys, shares)]


def _go_on(
    moves: Mapping[tuple[int, int], int], keys: IntArray, shares: FloatArray
) -> tuple[IntArray, FloatArray, float]:
    """The situations that follow, and the share of items of which nobody knows what follows."""
    count = len(moves)
    both = np.fromiter(chain.from_iterable(moves), dtype=np.int64, count=2 * count)
    before, after = both[::2], both[1::2]
    number = np.fromiter(moves.values(), dtype=np.float64, count=count)
    at = np.searchsorted(keys, before)
    known = at < len(keys)
    known[known] = keys[at[known]] == before[known]
    at, after, number = at[known], after[known], number[known]
    leaving = np.bincount(at, weights=number, minlength=len(keys))
    unknown = float(shares[leaving == 0].sum())
    rest = float(shares.sum()) - unknown
    if rest <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0), unknown
    # From a situation that nobody went on from, items move as all others do.
    moved = shares[at] * number / leaving[at] * (1 + unknown / rest)
    next_keys, place = np.unique(after, return_inverse=True)
    sums = np.bincount(place, weights=moved, minlength=len(next_keys)).astype(np.float64)
    return next_keys, sums, 0.0
