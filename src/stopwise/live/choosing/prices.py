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
        thresholds: how much disagreement would pay the way from one stage to another, by pair.

    >>> from stopwise.live.settings import stage_names_and_costs
    >>> names, given, costs = stage_names_and_costs({"rule": 1, "model": 2}, 10)
    >>> prices = Prices(LearnerSettings(names, given, 10.0, "uss-ts"), costs)
    >>> prices.cumulative, prices.of_calls([None, 2.5], 2)
    ([1.0, 3.0], 3.5)
    """

    __slots__ = ("_costs", "_settings", "cumulative", "per_stage", "thresholds")

    def __init__(self, settings: LearnerSettings, known: Costs) -> None:
        self._settings = settings
        self._costs: Costs | None = known
        self.per_stage = list(settings.costs)
        self.cumulative = list(known.cumulative)
        self.thresholds = self._thresholds(self.cumulative)

    @property
    def costs(self) -> Costs:
        """The same as `Costs`, made when asked for."""
        found = self._costs
        if found is None:
            found = self._costs = Costs.from_stages(self.per_stage, self._settings.mistake_cost)
        return found

    def _thresholds(self, cumulative: Sequence[float]) -> list[float]:
        worth = self._settings.mistake_cost
        total = [cost / worth for cost in cumulative]
        return [min(max(total[j] - total[i], 0.0), 1.0) for i, j in pair_list(len(total))]

    def renew(self, pool: Tally) -> None:
        """Take the means of what calls have cost so far; what was given counts as one call."""
        if not self._settings.measured:
            return
        at = pool.layout
        sums, numbers = pool.of_stages(at.cost_sums), pool.of_stages(at.cost_counts)
        means = [
            (given + total) / (1 + calls)
            for given, total, calls in zip(self._settings.costs, sums, numbers, strict=True)
        ]
        cumulative = list(accumulate(means))
        thresholds = self._thresholds(cumulative)
        # All after the last call: an interrupt leaves the old ones or the new ones.
        self._costs, self.per_stage, self.cumulative = None, means, cumulative
        self.thresholds = thresholds

    def of_calls(self, reported: Sequence[float | None] | None, called: int) -> float:
        """What the first `called` stages cost, by what calls reported where they did."""
        if reported is None:
            return self.cumulative[called - 1] if called else 0.0
        costs = [*reported[:called], *[None] * (called - len(reported))]
        return sum(
            known if actual is None else actual
            for known, actual in zip(self.per_stage, costs, strict=False)
        )
