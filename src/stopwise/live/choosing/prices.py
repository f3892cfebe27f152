"""What stages cost, as rules, budgets and bills see it: as given, or running means of calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from stopwise.costs import Costs
from stopwise.live.counters.tally import Tally
from stopwise.live.pairs import pair_list
from stopwise.live.settings import LearnerSettings


class PriceList(NamedTuple):
    """All that follows from what calls have cost so far; replaced, and never changed.

    Attributes:
        per_stage, cumulative, reach, stopping, thresholds: see `Prices`.
        sums, numbers: what calls of each stage have reported, and how many did.
    """

    per_stage: list[float]
    cumulative: list[float]
    reach: list[float]
    stopping: list[float]
    thresholds: list[float]
    sums: list[float]
    numbers: list[int]


class Prices:
    """The costs of stages at this moment.

    Attributes:
        now: what they follow from.
        per_stage: of each stage.
        cumulative: of all stages up to each.
        reach: of going to each stage: `cumulative`, or its own where stages are called alone.
        stopping: of stopping at each stage: `reach`, and more where rounds go on after an
            abstention, for sometimes the next stage is called too.
        thresholds: how much disagreement would pay the way from one stage to another, by pair.

    >>> from stopwise.live.settings import stage_names_and_costs
    >>> names, given, costs = stage_names_and_costs({"rule": 1, "model": 2}, 10)
    >>> prices = Prices(LearnerSettings(names, given, 10.0, "uss-ts"), costs)
    >>> prices.cumulative, prices.of_calls([None, 2.5], 2)
    ([1.0, 3.0], 3.5)
    """

    __slots__ = ("_costs", "_goes_on", "_own", "_pairs", "_settings", "now")

    def __init__(self, settings: LearnerSettings, known: Costs) -> None:
        self._settings = settings
        self._goes_on = settings.abstentions == "go on"
        self._pairs = pair_list(known.stage_count)
        per_stage, cumulative = list(settings.costs), list(known.cumulative)
        reach = self._reach(per_stage, cumulative)
        thresholds = self._thresholds(reach)
        nothing = [0] * len(per_stage)
        sums = [0.0] * len(per_stage)
        self.now = PriceList(per_stage, cumulative, reach, reach, thresholds, sums, nothing)
        self._costs: tuple[PriceList, Costs] | None = None if settings.alone else (self.now, known)
        self._own: tuple[PriceList, Costs] | None = (self.now, known)

    @property
    def per_stage(self) -> list[float]:
        """Of each stage."""
        return self.now.per_stage

    @property
    def cumulative(self) -> list[float]:
        """Of all stages up to each."""
        return self.now.cumulative

    @property
    def reach(self) -> list[float]:
        """Of going to each stage."""
        return self.now.reach

    @property
    def stopping(self) -> list[float]:
        """Of stopping at each stage."""
        return self.now.stopping

    @property
    def thresholds(self) -> list[float]:
        """By pair, in mistakes."""
        return self.now.thresholds

    def _reach(self, per_stage: list[float], cumulative: list[float]) -> list[float]:
        """What each stage's answer costs.

        Called alone, a stage that has become cheaper than one before it counts as that one: a rule
        that asks whether a deeper stage is worth more never turns back.
        """
        return list(accumulate(per_stage, max)) if self._settings.alone else cumulative

    @property
    def costs(self) -> Costs:
        """What rules go by, as `Costs`, made when asked for."""
        now, found = self.now, self._costs
        if found is None or found[0] is not now:
            made = Costs.from_cumulative(now.stopping, self._settings.mistake_cost)
            found = self._costs = (now, made)
        return found[1]

    @property
    def own(self) -> Costs:
        """Each stage's own cost, as `Costs`, made when asked for; one object while they hold."""
        now, found = self.now, self._own
        if found is None or found[0] is not now:
            made = Costs.from_stages(now.per_stage, self._settings.mistake_cost)
            found = self._own = (now, made)
        return found[1]

    def _thresholds(self, cumulative: Sequence[float]) -> list[float]:
        worth = self._settings.mistake_cost
        total = [cost / worth for cost in cumulative]
        return [
            0.0 if (gap := total[j] - total[i]) < 0.0 else 1.0 if gap > 1.0 else gap
            for i, j in self._pairs
        ]

    def after(self, reported: Sequence[float | None]) -> PriceList | None:
        """The prices after one more round, to be put in `now`; None where they do not move.

        The very steps of counting that round and of `renew`, so that the prices are the same.
        """
        if not self._settings.measured:
            return None
        sums, numbers = self.now.sums[:], self.now.numbers[:]
        for stage, cost in enumerate(reported):
            if cost is not None:
                sums[stage] += cost
                numbers[stage] += 1
        return self._measured(sums, numbers, None)

    def renew(self, pool: Tally) -> None:
        """Take the means of what calls have cost so far; what was given counts as one call."""
        at = pool.layout
        goes_on = self._goes_on and any(pool.of_pairs(at.beyond))
        if self._settings.measured or goes_on:
            sums, numbers = pool.of_stages(at.cost_sums), pool.of_stages(at.cost_counts)
            self.now = self._measured(sums, numbers, pool if goes_on else None)

    def _measured(self, sums: list[float], numbers: list[int], goes_on: Tally | None) -> PriceList:
        given = self._settings.costs
        means = (
            [(first + sums[at]) / (1 + numbers[at]) for at, first in enumerate(given)]
            if self._settings.measured
            else list(given)
        )
        cumulative = list(accumulate(means))
        reach = self._reach(means, cumulative)
        stopping = reach if goes_on is None else _stopping(goes_on, means, cumulative)
        thresholds = self._thresholds(stopping)
        # What PriceList(...) does, without the call of a function.
        prices = (means, cumulative, reach, stopping, thresholds, sums, numbers)
        return tuple.__new__(PriceList, prices)

    def of_calls(
        self, reported: Sequence[float | None] | None, called: int, skipped: int = 0
    ) -> float:
        """What the first `called` stages cost, by what calls reported where they did.

        Args:
            skipped: bits of the stages among them that were not called.
        """
        if reported is None and not skipped:
            return self.cumulative[called - 1] if called else 0.0
        given = reported or ()
        if not skipped and len(given) == called and None not in given:
            return sum(given)  # type: ignore[arg-type]  # as most report all, or nothing
        costs = [*given[:called], *[None] * (called - len(given))]
        return sum(
            known if actual is None else actual
            for at, (known, actual) in enumerate(zip(self.per_stage, costs, strict=False))
            if not skipped >> at & 1
        )


def _stopping(pool: Tally, own: Sequence[float], cumulative: Sequence[float]) -> list[float]:
    """What stopping at each stage costs where rounds go on: `stopwise.abstentions.calling_rates`.

    Of the calls of a stage, those count that were drawn to go there; what came of the others says
    only what happens where an earlier stage abstains.
    """
    at, stage_count = pool.layout, pool.stage_count
    beyond, uncounted = pool.of_pairs(at.beyond), pool.of_stages(at.uncounted)
    calls = list(accumulate(reversed(pool.of_stages(at.lengths))))[::-1]
    found = list(cumulative)
    for number, (i, k) in enumerate(pair_list(stage_count)):
        counted = calls[i] - uncounted[i]
        if counted > 0:
            found[i] += own[k] * beyond[number] / counted
    return list(accumulate(found, max))
