"""What a round counts for where a stage that gives no answer means more than a missing pair.

With "go on" and "mistake" the pairs of a round are pairs of *answers when stopping at a stage*, by
the one definition in `stopwise.abstentions`. They are counted up to the depth that was drawn: a
stage beyond it was called only because another gave no answer, and would count such items alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stopwise.abstentions import NO_ANSWER, UNKNOWN, Abstentions, answering_stages
from stopwise.live.pairs import Added, added_by, bits, pair_number


class StopsOfRound(NamedTuple):
    """A round as stages to stop at, in bits of stages and of pairs.

    Attributes:
        known: the stages to stop at whose answer is known; that there is none is an answer here.
        disagreed: the pairs of those whose answers differ.
        undecided: the pairs of which the comparator could not say.
        beyond: the pairs (i, k), by number: stopping at i, stage k is called too.
        uncounted: the stages that were called but are not among `known`.
    """

    known: int
    disagreed: int
    undecided: int
    beyond: tuple[int, ...]
    uncounted: tuple[int, ...]


@lru_cache(maxsize=4096)
def stops_of(
    abstentions: Abstentions,
    stage_count: int,
    called: int,
    depth: int,
    answered: int,
    disagreed: int,
    undecided: int = 0,
) -> StopsOfRound:
    """Read a round as stages to stop at.

    Args:
        abstentions: what it means that a stage gives no answer.
        stage_count: how many stages there are.
        called: how many were called.
        depth: the depth that was drawn.
        answered: bits of the stages that answered.
        disagreed: bits of the pairs of outputs that differ.
        undecided: bits of the pairs of which the comparator could not say.

    >>> stops_of("go on", 3, 2, 0, 0b10, 0)      # the first abstained, so the second was called
    StopsOfRound(known=1, disagreed=0, undecided=0, beyond=(0,), uncounted=(1,))
    >>> stops_of("mistake", 2, 2, 1, 0b10, 0).disagreed
    1
    """
    row = [
        stage if answered >> stage & 1 else NO_ANSWER if stage < called else UNKNOWN
        for stage in range(stage_count)
    ]
    counted = np.arange(stage_count)[None, :] <= depth
    who = answering_stages([row], abstentions, counted)[0].tolist()
    known = [stage for stage in range(stage_count) if who[stage] != UNKNOWN]
    differ = unsure = 0
    for j in known:
        for i in known:
            if i >= j or who[i] == who[j]:
                continue
            pair = 1 << pair_number(i, j)
            if NO_ANSWER in (who[i], who[j]):
                differ |= pair
                continue
            outputs = pair_number(*sorted((who[i], who[j])))
            differ |= pair if disagreed >> outputs & 1 else 0
            unsure |= pair if undecided >> outputs & 1 else 0
    beyond: list[int] = []
    if abstentions == "go on":
        for i in known:
            reached = stage_count - 1 if who[i] == NO_ANSWER else who[i]
            beyond += [pair_number(i, k) for k in range(i + 1, reached + 1)]
    mask = sum(1 << stage for stage in known)
    return StopsOfRound(
        mask, differ, unsure, tuple(beyond), tuple(bits(((1 << called) - 1) & ~mask))
    )


@lru_cache(maxsize=4096)
def added_under(
    abstentions: Abstentions,
    stage_count: int,
    called: int,
    depth: int,
    answered: int,
    disagreed: int,
    undecided: int = 0,
) -> Added:
    """What a round adds; see `stops_of`.

    >>> added_under("leave out", 2, 2, 1, 0b10, 0).pairs
    ()
    >>> added_under("go on", 2, 2, 1, 0b10, 0).pairs
    ((0, False),)
    """
    if abstentions == "leave out":
        return added_by(answered, disagreed, undecided)
    stops = stops_of(abstentions, stage_count, called, depth, answered, disagreed, undecided)
    plain = added_by(stops.known, stops.disagreed, stops.undecided)
    return Added(
        answered,
        plain.pairs,
        plain.switched,
        plain.switched_twice,
        disagreed,
        stops.beyond,
        stops.uncounted if abstentions == "go on" else (),
    )
