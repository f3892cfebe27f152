"""Random numbers that belong to a round: a function of (seed, writer, round) and nothing else.

So a learner that was stopped needs no generator state to go on exactly where it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 10
_BLOCK = 1 << BITS
LOW_BITS = _BLOCK - 1


class RoundDraws:
    """The uniform number of every round of one writer.

    Args:
        seed: of the learner.
        writer: which of several learners that share one store; 0 where there is one.

    >>> first = RoundDraws(1).uniform(5)
    >>> RoundDraws(1).uniforms(4, 3)[1] == first
    np.True_
    """

    __slots__ = ("at", "block", "seed", "writer")

    def __init__(self, seed: int, writer: int = 0) -> None:
        self.seed = seed
        self.writer = writer
        self.at = -1
        self.block: list[float] = []

    def uniform(self, sequence: int) -> float:
        """The number of the round that this writer began as its `sequence`-th."""
        if sequence >> BITS != self.at:
            self.turn_to(sequence)
        return self.block[sequence & LOW_BITS]

    def turn_to(self, sequence: int) -> None:
        """Make `block` hold the numbers around this one: its low bits are the place in it."""
        at = sequence >> BITS
        block = self._generator(0, at).random(_BLOCK).tolist()
        # Both after all calls: an interrupt leaves the old two or the new two.
        self.block = block
        self.at = at

    def uniforms(self, first: int, number: int) -> NDArray[np.float64]:
        """The numbers of `number` rounds from `first` on, at once."""
        low, high = first // _BLOCK, (first + number - 1) // _BLOCK
        blocks = [self._generator(0, at).random(_BLOCK) for at in range(low, high + 1)]
        start = first - low * _BLOCK
        return np.concatenate(blocks)[start : start + number]

    def generator(self, sequence: int) -> np.random.Generator:
        """A whole generator for the round: for policies that draw in their own way."""
        return self._generator(1, sequence)

    def _generator(self, kind: int, at: int) -> np.random.Generator:
        key = (self.writer, kind, at)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
