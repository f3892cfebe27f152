"""Random numbers that belong to a round: a function of (seed, writer, round) and nothing else.

So a learner that was stopped needs no generator state to go on exactly where it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1024


class RoundDraws:
    """The uniform number of every round of one writer.

    Attributes:
        block: the numbers of the rounds from `first` on, as far as they have been made.

    Args:
        seed: of the learner.
        writer: which of several learners that share one store; 0 where there is one.

    >>> first = RoundDraws(1).uniform(5)
    >>> RoundDraws(1).uniforms(4, 3)[1] == first
    np.True_
    """

    __slots__ = ("_last", "block", "first", "seed", "writer")

    def __init__(self, seed: int, writer: int = 0) -> None:
        self.seed = seed
        self.writer = writer
        self.first = 0
        self.block: list[float] = []
        self._last: tuple[int, NDArray[np.float64] | None] = (-1, None)

    def uniform(self, sequence: int) -> float:
        """The number of the round that this writer began as its `sequence`-th."""
        at = sequence - self.first
        if 0 <= at < len(self.block):
            return self.block[at]
        first = sequence // _BLOCK * _BLOCK
        block: list[float] = self._generator(0, sequence // _BLOCK).random(_BLOCK).tolist()
        # Both after all calls: an interrupt leaves the old two or the new two.
        self.block = block
        self.first = first
        return block[sequence - first]

    def uniforms(self, first: int, number: int) -> NDArray[np.float64]:
        """The numbers of `number` rounds from `first` on, at once."""
        low, high = first // _BLOCK, (first + number - 1) // _BLOCK
        kept, numbers = self._last  # where the batch before ended, this one mostly begins
        blocks = [
            numbers if at == kept and numbers is not None else self._generator(0, at).random(_BLOCK)
            for at in range(low, high + 1)
        ]
        self._last = (high, blocks[-1])
        start = first - low * _BLOCK
        return np.concatenate(blocks)[start : start + number]

    def generator(self, sequence: int) -> np.random.Generator:
        """A whole generator for the round: for policies that draw in their own way."""
        return self._generator(1, sequence)

    def _generator(self, kind: int, at: int) -> np.random.Generator:
        key = (self.writer, kind, at)
        # What `default_rng` would make, without asking what it was given.
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key))
        )
