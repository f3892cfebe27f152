"""Tests of pairs that count what they have missed when they are asked for.

Fifty stages have 1,225 pairs, and a round may see all of them; but a walk that goes deep asks a few
of each stage, because the first ones settle whether it stops there. So a round is noted, and a pair
counts what was noted when a walk comes to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from stopwise.live.counters.distributions.fast_ts import FastTs
from stopwise.live.counters.distributions.pair_test import PairTest, count_observations
from stopwise.live.pairs import AGREED, DISAGREED, Added

MANY_STAGES = 9
"""With fewer stages a walk asks most pairs anyway."""
_MOST_NOTED = 256
_FEW = 12  # counting up to this number is quicker than asking SciPy again


class LatePairs(list[PairTest]):
    """The tests of all pairs; `[number]` gives one that is up to date, a loop gives them as is.

    >>> pairs = LatePairs([PairTest(1.0, 1.0, 0.5)])
    >>> pairs.note(Added(0b11, ((0, True),)))
    False
    >>> [pair.a for pair in pairs], pairs[0].a
    ([1.0], 2.0)
    """

    def __init__(self, pairs: Iterable[PairTest]) -> None:
        super().__init__(pairs)
        self._noted: list[bytes] = []
        self._counted = [0] * len(self)

    def note(self, added: Added) -> bool:
        """Take a round, to be counted by each pair when it is asked for; whether all have."""
        self._noted.append(added.kinds(len(self)))
        if len(self._noted) < _MOST_NOTED:
            return False
        self.count_all()
        return True

    def count_all(self) -> None:
        """Let all pairs count what they have missed."""
        noted = self._noted
        kinds = np.frombuffer(b"".join(noted), dtype=np.uint8).reshape(len(noted), len(self))
        # Most pairs have missed all of them; the others count by themselves.
        late = [number for number, counted in enumerate(self._counted) if not counted]
        differs, agreed = ((kinds[:, late] == kind).sum(axis=0) for kind in (DISAGREED, AGREED))
        for number, more_differ, more_agree in zip(
            late, differs.tolist(), agreed.tolist(), strict=True
        ):
            pair = super().__getitem__(number)
            if more_differ or more_agree:
                pair.anchor(pair.a + more_differ, pair.b + more_agree)
            self._counted[number] = len(noted)
        for number in range(len(self)):
            self[number]
        self._counted = [0] * len(self)
        self._noted = []

    def __getitem__(self, number: Any) -> Any:  # a slice is never asked for
        pair = super().__getitem__(number)
        counted, noted = self._counted, self._noted
        if counted[number] < len(noted):
            missed = [seen[number] for seen in noted[counted[number] :]]
            counted[number] = len(noted)
            if len(missed) <= _FEW:
                count_observations([(pair, kind == DISAGREED) for kind in missed if kind])
            else:
                differs, agreed = missed.count(DISAGREED), missed.count(AGREED)
                if differs or agreed:
                    pair.anchor(pair.a + differs, pair.b + agreed)
        return pair


class LateTs(FastTs):
    """The same for many stages: pairs count what they have missed when a walk comes to them.

    >>> from stopwise.policies.uss_ts import UssTs
    >>> late = LateTs(UssTs(), [[0.0, 0.25], [0.0, 0.0]])
    >>> late.anchor([1], [0]); late.move(Added(0b11, ((0, False),)))
    >>> late.distribution(3)
    [0.578125, 0.421875]
    """

    __slots__ = ()

    def _gathered(self, pairs: Iterable[PairTest]) -> list[PairTest]:
        return LatePairs(pairs)

    @property
    def _late(self) -> LatePairs:
        assert isinstance(self._pairs, LatePairs)
        return self._pairs

    def move(self, added: Added) -> None:
        """Note a round."""
        if self.still:
            super().move(added)
            return
        if self._noted:
            self._catch_up()
        self.current = None
        if self._late.note(added):
            self._stand_still()

    def _rests(self) -> list[int]:
        """All pairs are settled, or none counts as settled: asking each of them takes its time."""
        rests: list[int] = []
        for pair in self._pairs:
            rests.append(self._rest_of(pair))
            if not rests[-1]:
                return [0] * len(self._pairs)
        return rests

    def distribution(self, number: int) -> list[float]:
        """The probability of every depth, by the policy alone; the same in all rounds."""
        sure, self.sure = self.sure, False  # pairs may move now
        found = super().distribution(number)
        self.sure = sure
        return found

    def to_form(self) -> dict[str, Any]:
        """The carried numbers, with nothing missed."""
        sure, self.sure = self.sure, False
        self._late.count_all()
        self.sure = sure
        return super().to_form()
