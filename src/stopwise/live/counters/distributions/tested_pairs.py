"""Tests of pairs whose numbers are carried along from round to round.

A policy whose tests of pairs are Beta tails needs them after every round; one observation moves one
of them by one step, see `pair_test`. And while a test cannot change by anything that matters for a
number of observations, whatever they show, it is settled: observations are only noted for it. Once
all are settled the distribution stands still.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from stopwise.live.counters.distributions.carried import Carried, Limits
from stopwise.live.counters.distributions.pair_test import PairTest, count_observations
from stopwise.live.pairs import Added, Billed, pair_list, pair_number

Observed = list[tuple[PairTest, bool]]
"""What a round shows: tests, and whether the pair disagreed."""
_MOST_MOVES = 512
LEAST_STILL, MOST_STILL = 32, 1024
"""How many rounds at least, and at most, are only noted where they cannot matter."""


class CarriedTests(Carried):
    """The tests of all pairs of one segment, moved by single observations.

    Args:
        thresholds: `C_j - C_i` in mistakes, as a table.
        priors: of disagreements and agreements.
        limits: see `Carried`.
    """

    __slots__ = ("_live", "_moves", "_noted", "_pairs", "_priors", "_rest", "_rows", "_thresholds")

    def __init__(
        self,
        thresholds: Sequence[Sequence[float]],
        priors: tuple[float, float],
        limits: Limits | None,
    ) -> None:
        super().__init__(limits)
        stage_count = len(thresholds)
        self._priors = priors
        self._thresholds = [
            min(max(float(thresholds[i][j]), 0.0), 1.0) for i, j in pair_list(stage_count)
        ]
        self._rows = [
            [pair_number(i, j) for j in range(i + 1, stage_count)] for i in range(stage_count - 1)
        ]
        self._pairs: list[PairTest] = []
        # Pairs that are settled miss rounds, which are noted: `_rest` more of them while others are
        # `_live`, and `still` more while none is. What rounds show of live pairs is looked up.
        self._noted: list[Added] = []
        self._live: frozenset[int] = frozenset()
        self._rest = 0
        self._moves: dict[Added, Observed] = {}

    @abstractmethod
    def _settled(self, pair: PairTest, steps: int) -> bool:
        """Whether `steps` rounds, whatever they show, cannot change what a pair does."""

    def anchor(
        self,
        seen: Sequence[float],
        disagreed: Sequence[float],
        switched: float = 0,
        twice: float = 0,
    ) -> None:
        """Take every pair from its counts again."""
        del switched, twice  # of use to other policies
        self.sure = False
        first, second = self._priors
        self._pairs = self._gathered(
            PairTest(d + first, n - d + second, x)
            for n, d, x in zip(seen, disagreed, self._thresholds, strict=True)
        )
        self._noted = []
        self._stand_still()
        self.sure = True

    def move(self, added: Added) -> None:
        """Count one more observation of each pair that a round saw."""
        if self.still:
            self.still -= 1
            self._noted.append(added)
            return
        if self._rest:
            self._rest -= 1
            self._noted.append(added)
        elif self._noted:
            self._catch_up()
            self.move(added)
            return
        try:
            observed = self._moves[added]
        except KeyError:
            observed = self._observed(added)
        if observed:
            self.current = None  # first, lest an interrupt leaves an old one
            if count_observations(observed):
                self._look_again()

    def _observed(self, added: Added) -> Observed:
        """What a round shows of pairs that are live; remembered, as few are different."""
        if type(added) is Billed:
            added = added.added  # of those each is different
        moves, pairs, live = self._moves, self._pairs, self._live
        if len(moves) >= _MOST_MOVES:
            moves.clear()
        found = moves[added] = [(pairs[k], differs) for k, differs in added.pairs if k in live]
        return found

    def _gathered(self, pairs: Iterable[PairTest]) -> list[PairTest]:
        """The tests of all pairs as they are kept."""
        return list(pairs)

    def _stand_still(self) -> None:
        """See which pairs cannot matter for how many rounds."""
        rests = self._rests()
        live = frozenset(number for number, rest in enumerate(rests) if not rest)
        least = min((rest for rest in rests if rest), default=0 if live else MOST_STILL)
        self.current = None
        self.still, self._rest = (0, least) if live else (least, 0)
        self._live, self._moves = live, {}

    def _rests(self) -> list[int]:
        """For how many rounds each pair is settled: 0 or a power of two."""
        return [self._rest_of(pair) for pair in self._pairs]

    def _rest_of(self, pair: PairTest) -> int:
        rest, steps = 0, LEAST_STILL
        while steps <= MOST_STILL and self._settled(pair, steps):
            rest, steps = steps, 2 * steps
        return rest

    def _look_again(self) -> None:
        """See whether more pairs are settled, after some were taken from SciPy again."""
        if any(self._settled(self._pairs[number], LEAST_STILL) for number in self._live):
            self._catch_up()

    def _catch_up(self) -> None:
        """Count what was only noted."""
        pairs, live = self._pairs, self._live
        moved = set()
        for added, times in Counter(self._noted).items():
            for number, differs in added.pairs:
                if number in live:
                    continue
                pair = pairs[number]
                if differs:
                    pair.a += times
                else:
                    pair.b += times
                moved.add(number)
        self._noted.clear()
        for number in moved:
            pairs[number].anchor(pairs[number].a, pairs[number].b)
        self._stand_still()

    # ---- as a snapshot holds it --------------------------------------------------------------

    def to_form(self) -> dict[str, Any]:
        """The carried numbers, so that a restored learner goes on with the very same bits."""
        return {
            "pairs": [pair.to_form() for pair in self._pairs],
            "still": self.still,
            "noted": [[list(move) for move in added.pairs] for added in self._noted],
            "live": sorted(self._live),
            "rest": self._rest,
        }

    def restore(self, form: Any, *counts: Any) -> None:
        """Take what `to_form` gave, unless it does not belong to these counts; see `anchor`."""
        self.anchor(*counts)
        fresh = self._pairs
        try:
            pairs = self._gathered(PairTest.from_form(pair) for pair in form["pairs"])
            noted = [
                Added(0, tuple((int(k), bool(d)) for k, d in moves)) for moves in form["noted"]
            ]
            still, rest = int(form["still"]), int(form.get("rest", 0))
            live = frozenset() if still or noted else frozenset(range(len(pairs)))
            live = frozenset(map(int, form["live"])) if "live" in form else live
            self._pairs = self._gathered(PairTest.from_form(pair) for pair in form["pairs"])
            self._noted, self._live = noted[:], live
            if noted:
                self._catch_up()
            missing = max(still, rest)
            belongs = (
                len(pairs) == len(fresh)
                and 0 <= min(still, rest) <= missing <= MOST_STILL
                and not (live and still)
                and all(a.belongs_to(b) for a, b in zip(self._pairs, fresh, strict=True))
                and all(
                    number in live or not missing or self._settled(pair, missing)
                    for number, pair in enumerate(self._pairs)
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
            belongs = False
        self._pairs, self._noted, self._moves = fresh, [], {}
        self._stand_still()
        if belongs:
            self._pairs, self._noted, self._live = pairs, noted, live
            self.still, self._rest = still, rest
