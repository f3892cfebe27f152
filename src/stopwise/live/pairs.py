"""Pairs of stages as bits, so that what a round saw is two whole numbers.

Pair (i, j) with i < j is number `j (j - 1) / 2 + i`: the pairs of a shorter prefix come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from stopwise.agreement import count_prefix
from stopwise.evidence import ABSTAINED

PACKED = 28
"""Up to this number of pairs are counted as one number; of more it would be a long one."""
_HALF = 32  # bits of a count
_MASK = (1 << _HALF) - 1
AGREED, DISAGREED = 1, 2
"""What a round can show of a pair that it saw."""


class Added:
    """What a round adds to the counters of pairs; one object for all rounds that add the same.

    Attributes:
        answered: bits of the stages that answered; `last` is the deepest of them.
        pairs: (pair, disagreed) for every pair seen.
        switched, switched_twice: 1 where the answer changed once, or twice, on the way.
        disagreed: bits of the pairs of outputs that disagreed.
        beyond, uncounted: see `stopwise.live.abstaining.StopsOfRound`.
        packed: how often each pair was seen, and disagreed, as one number; see `unpacked`.
    """

    __slots__ = (
        "_kinds", "answered", "beyond", "disagreed", "last", "packed", "pairs", "switched",
        "switched_twice", "uncounted",
    )  # fmt: skip

    def __init__(
        self,
        answered: int,
        pairs: tuple[tuple[int, bool], ...] = (),
        switched: int = 0,
        switched_twice: int = 0,
        disagreed: int = 0,
        beyond: tuple[int, ...] = (),
        uncounted: tuple[int, ...] = (),
    ) -> None:
        self.answered = answered
        self.beyond = beyond
        self.uncounted = uncounted
        self.disagreed = disagreed
        self.last = answered.bit_length() - 1
        self.pairs = pairs
        self.switched = switched
        self.switched_twice = switched_twice
        self.packed = 0
        if len(pairs) <= PACKED:
            self.packed = sum(1 + (differs << _HALF) << 2 * _HALF * at for at, differs in pairs)
        self._kinds = b""

    def kinds(self, size: int) -> bytes:
        """For each of `size` pairs `AGREED` or `DISAGREED`, or 0 where it was not seen.

        >>> list(added_by(0b101, 0b010).kinds(3))
        [0, 2, 0]
        """
        if len(self._kinds) != size:
            found = bytearray(size)
            for number, differs in self.pairs:
                found[number] = DISAGREED if differs else AGREED
            self._kinds = bytes(found)
        return self._kinds

    def agrees_with_last(self, stage: int) -> bool | None:
        """Whether the answer as of a stage agrees with the last one; None where that is not known.

        >>> added_by(0b101, 0b010).agrees_with_last(1)
        False
        """
        early = (self.answered & ((2 << stage) - 1)).bit_length() - 1
        if early < 0 or stage > self.last:
            return None
        if early == self.last:
            return True
        number = pair_number(early, self.last)
        return next((not differs for pair, differs in self.pairs if pair == number), None)

    def __repr__(self) -> str:
        return f"Added({self.pairs}, switched {self.switched}, twice {self.switched_twice})"


class Billed(Added):
    """What one round adds whose calls cost what they reported.

    Args:
        added: what it adds to the counters of pairs.
        costs: what each call cost, as far as that was reported.
        cost: of all calls together.

    >>> Billed(added_by(0b11, 0), [None, 2.5], 3.5).last
    1
    """

    __slots__ = ("added", "cost", "costs")

    def __init__(self, added: Added, costs: Sequence[float | None], cost: float) -> None:
        # Written out, because there is one for every round whose cost is measured.
        self.added = added
        self.answered = added.answered
        self.beyond = added.beyond
        self.uncounted = added.uncounted
        self.disagreed = added.disagreed
        self.last = added.last
        self.pairs = added.pairs
        self.switched = added.switched
        self.switched_twice = added.switched_twice
        self.packed = added.packed
        self._kinds = b""
        self.costs = costs
        self.cost = cost


def unpacked(packed: int, size: int) -> tuple[list[int], list[int]]:
    """How often each of `size` pairs was seen, and disagreed, from a sum of `Added.packed`.

    >>> unpacked(added_by(0b111, 0b010).packed + added_by(0b11, 0).packed, 3)
    ([2, 1, 1], [0, 1, 0])
    """
    counts = [packed >> _HALF * at & _MASK for at in range(2 * size)]
    return counts[::2], counts[1::2]


def pair_number(i: int, j: int) -> int:
    """The number of the pair i < j.

    >>> [pair_number(i, j) for j in range(1, 4) for i in range(j)]
    [0, 1, 2, 3, 4, 5]
    """
    return j * (j - 1) // 2 + i


def pair_count(stage_count: int) -> int:
    """How many pairs there are of this many stages.

    >>> pair_count(3)
    3
    """
    return stage_count * (stage_count - 1) // 2


@lru_cache(maxsize=64)
def pair_list(stage_count: int) -> tuple[tuple[int, int], ...]:
    """All pairs in the order of their numbers.

    >>> pair_list(3)
    ((0, 1), (0, 2), (1, 2))
    """
    return tuple((i, j) for j in range(stage_count) for i in range(j))


@lru_cache(maxsize=4096)
def added_by(answered: int, disagreed: int, undecided: int = 0) -> Added:
    """What a round adds in which these stages answered and these pairs disagreed (bits).

    A pair that the comparator could not decide is neither seen nor disagreed.

    >>> added_by(0b101, 0b010)
    Added(((1, True),), switched 0, twice 0)
    """

    def differ(i: int, j: int) -> bool | None:
        number = pair_number(i, j)
        return None if undecided >> number & 1 else bool(disagreed >> number & 1)

    counted = count_prefix(bits(answered), differ)
    pairs = tuple((pair_number(i, j), differs) for i, j, differs in counted.pairs)
    return Added(answered, pairs, counted.switched, counted.switched_twice, disagreed)


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set.

    >>> bits(0b1011)
    [0, 1, 3]
    """
    return [at for at in range(mask.bit_length()) if mask >> at & 1]


def compare_answers(
    answers: Sequence[Any], differ: Callable[[Any, Any], bool] | None
) -> tuple[int, int]:
    """Which stages answered and which pairs disagreed, as bits; None compares with `!=`.

    >>> compare_answers(["a", None, "b"], None)
    (5, 2)
    """
    answered = disagreed = number = 0
    for j, later in enumerate(answers):
        if later is ABSTAINED:
            number += j
            continue
        answered |= 1 << j
        for i in range(j):
            earlier = answers[i]
            if earlier is not ABSTAINED and (
                earlier != later if differ is None else differ(earlier, later)
            ):
                disagreed |= 1 << number
            number += 1
    return answered, disagreed


class Token:
    """Stands for an answer whose disagreements are known though the answer is not.

    Policies that count in their own way are handed a prefix of these: `!=` between two of them says
    what the comparator said, also when a log is read back that never held the outputs.

    >>> first, second = tokens(0b11, 0b1, 2)
    >>> first != second
    True
    """

    __slots__ = ("disagreed", "stage")
    __hash__ = None  # type: ignore[assignment]  # agreeing within a tolerance is no equality

    def __init__(self, stage: int, disagreed: int) -> None:
        self.stage = stage
        self.disagreed = disagreed

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, Token):
            return True
        if other.stage == self.stage:
            return False
        i, j = sorted((self.stage, other.stage))
        return bool(self.disagreed >> pair_number(i, j) & 1)

    def __eq__(self, other: object) -> bool:
        return not self != other


def tokens(answered: int, disagreed: int, called: int) -> list[Token | None]:
    """A prefix of `called` stages that compares as the bits say.

    >>> [token is None for token in tokens(0b101, 0, 3)]
    [False, True, False]
    """
    return [
        Token(stage, disagreed) if answered >> stage & 1 else ABSTAINED for stage in range(called)
    ]
