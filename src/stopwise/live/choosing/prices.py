"""What stages cost, as rules, budgets and bills see it: as given, or running means of calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from stopwise.costs import Costs
from stopwise.live.counters.tally import Tally
from stopwise.live.pairs import pair_list
from stopwise.live.settings import LearnerSettings


class Prices:
    """The costs of stages at this moment.

    Attributes:
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

    __slots__ = ("_costs", "_goes_on", "_own", "_settings", "cumulative", "per_stage", "reach",
                 "stopping", "thresholds")  # fmt: skip

    def __init__(self, settings: LearnerSettings, known: Costs) -> None:
        self._settings = settings
        self._goes_on = settings.abstentions == "go on"
        self._costs: Costs | None = None if settings.alone else known
        self._own: Costs | None = known
        self.per_stage = list(settings.costs)
        self.cumulative = list(known.cumulative)
        self.reach = self._reach(self.per_stage, self.cumulative)
        self.stopping = self.reach
        self.thresholds = self._thresholds(self.reach)

    def _reach(self, per_stage: list[float], cumulative: list[float]) -> list[float]:
        """What each stage's answer costs.

        Called alone, a stage that has become cheaper than one before it counts as that one: a rule
        that asks whether a deeper stage is worth more never turns back.
        """
        return list(accumulate(per_stage, max)) if self._settings.alone else cumulative

    @property
    def costs(self) -> Costs:
        """What rules go by, as `Costs`, made when asked for."""
        found = self._costs
        if found is None:
            found = self._costs = Costs.from_cumulative(self.stopping, self._settings.mistake_cost)
        return found

    @property
    def own(self) -> Costs:
        """Each stage's own cost, as `Costs`, made when asked for; one object while they hold."""
        found = self._own
        if found is None:
            found = self._own = Costs.from_stages(self.per_stage, self._settings.mistake_cost)
        return found

    def _thresholds(self, cumulative: Sequence[float]) -> list[float]:
        worth = self._settings.mistake_cost
        total = [cost / worth for cost in cumulative]
        return [min(max(total[j] - total[i], 0.0), 1.0) for i, j in pair_list(len(total))]

    def renew(self, pool: Tally) -> None:
        """Take the means of what calls have cost so far; what was given counts as one call."""
        at = pool.layout
        goes_on = self._goes_on and any(pool.of_pairs(at.beyond))
        if not self._settings.measured and not goes_on:
            return
        sums, numbers = pool.of_stages(at.cost_sums), pool.of_stages(at.cost_counts)
        means = list(self._settings.costs)
        if self._settings.measured:
            means = [
                (given + total) / (1 + calls)
                for given, total, calls in zip(means, sums, numbers, strict=True)
            ]
        cumulative = list(accumulate(means))
        reach = self._reach(means, cumulative)
        stopping = _stopping(pool, means, cumulative) if goes_on else reach
        thresholds = self._thresholds(stopping)
        # All after the last call: an interrupt leaves the old ones or the new ones.
        self._costs, self._own, self.per_stage, self.cumulative = None, None, means, cumulative
        self.reach, self.stopping, self.thresholds = reach, stopping, thresholds

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
