"""Hard budgets: of one item, and of all items together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stopwise.checks import StopwiseError, fail, finite_number

if TYPE_CHECKING:
    from stopwise.live.round import Round


class BudgetError(StopwiseError):
    """Not even the first stage can be paid any more; nothing was called."""


class Budgets:
    """What may still be spent. Open rounds hold back what they may yet cost.

    >>> Budgets(5.0, None).deepest([1.0, 3.0, 9.0], spent=100.0)
    1
    """

    __slots__ = ("held", "item_budget", "limited", "run_budget")

    def __init__(self, item_budget: float | None, run_budget: float | None) -> None:
        accepted = "a cost above 0, or None for no limit"
        for field, value in (("item_budget", item_budget), ("run_budget", run_budget)):
            if value is not None and finite_number(field, value, accepted) <= 0:
                raise fail(field, value, accepted)
        self.item_budget = item_budget
        self.run_budget = run_budget
        self.limited = item_budget is not None or run_budget is not None
        self.held = 0.0

    def deepest(self, cumulative: Sequence[float], spent: float) -> int:
        """The deepest stage that can be paid, at the costs known now."""
        if not self.limited:
            return len(cumulative) - 1
        left = float("inf") if self.item_budget is None else self.item_budget
        if self.run_budget is not None:
            left = min(left, self.run_budget - spent - self.held)
        # Sums of prices carry rounding; a budget of exactly ten calls must buy ten.
        left += 1e-9 * max(1.0, abs(left)) if left != float("inf") else 0.0
        for stage in range(len(cumulative) - 1, -1, -1):
            if cumulative[stage] <= left:
                return stage
        raise BudgetError(
            f"budget: {max(left, 0.0):.6g} is left, but the first stage costs {cumulative[0]:.6g}"
        )

    def has(self, cost: float, spent: float) -> bool:
        """Whether the budget of the run has room for one more call."""
        if self.run_budget is None:
            return True
        return cost <= (self.run_budget - spent - self.held) + 1e-9 * self.run_budget

    def reserve(self, round: Round, cost: float) -> None:
        """Hold back what a round may cost."""
        if self.run_budget is not None:
            round.unusual = True
            round.reserved += cost
            self.held += cost

    def release(self, round: Round) -> None:
        """Free what was held back; what the round did cost is counted elsewhere."""
        if round.reserved:
            self.held = max(0.0, self.held - round.reserved)
            round.reserved = 0.0

    def allows(self, cost_so_far: float, next_cost: float) -> bool:
        """Whether an item that has cost so much may call a stage that costs so much more."""
        return self.item_budget is None or cost_so_far + next_cost <= self.item_budget * (1 + 1e-9)
