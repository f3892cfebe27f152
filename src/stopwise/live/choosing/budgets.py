"""Hard budgets: of one item, and of all items together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stopwise.checks import StopwiseError, fail, finite_number

if TYPE_CHECKING:
    from stopwise.live.round import Round

Ask = Callable[[float, float, float], "float | None"]
_PARTS = 32  # of what is left of a shared budget, a learner takes one part at a time


class BudgetError(StopwiseError):
    """Not even the first stage can be paid any more; nothing was called.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("rule", str.islower, 2), Stage("model", str.isalpha, 5)]
    >>> cascade = Cascade(stages, "fixed:stage=0", mistake_cost=20, run_budget=3)
    >>> cascade.answer("a").answer
    True
    >>> cascade.answer("a")
    Traceback (most recent call last):
    ...
    stopwise.live.choosing.budgets.BudgetError: budget: 1 is left, but the first stage costs 2
    """


class Budgets:
    """What may still be spent. Open rounds hold back what they may yet cost.

    >>> Budgets(5.0, None).deepest([1.0, 3.0, 9.0], spent=100.0)
    1
    """

    __slots__ = ("_ask", "granted", "held", "item_budget", "limited", "run_budget")

    def __init__(self, item_budget: float | None, run_budget: float | None) -> None:
        accepted = "a cost above 0, or None for no limit"
        for field, value in (("item_budget", item_budget), ("run_budget", run_budget)):
            if value is not None and finite_number(field, value, accepted) <= 0:
                raise fail(field, value, accepted)
        self.item_budget = item_budget
        self.run_budget = run_budget
        self.limited = item_budget is not None or run_budget is not None
        self.held = 0.0
        self._ask: Ask | None = None
        self.granted = 0.0

    def share(self, ask: Ask) -> None:
        """Spend only what a store grants, because others spend from the same budget.

        Args:
            ask: with the least and the most that is wanted and the budget: gives what may be spent,
                0 where the least is not left, None where the store is not shared.
        """
        self._ask = ask
        self.granted = 0.0

    def paid(self, cost: float) -> None:
        """Note what a round did cost, against what was granted."""
        self.granted -= cost

    def unused(self) -> float:
        """What was granted and not spent."""
        return max(self.granted, 0.0) if self._ask is not None else 0.0

    def left(self, spent: float, wanted: float) -> float:
        """What the budget of the run has left, if need be by asking for more of it."""
        if self.run_budget is None:
            return float("inf")
        if self._ask is None:
            return self.run_budget - spent - self.held
        free = self.granted - self.held
        if free < wanted - 1e-9 * self.run_budget:
            part = (self.run_budget - spent) / _PARTS
            got = self._ask(wanted - free, max(part, wanted - free), self.run_budget)
            if got is None:
                self._ask = None
                return self.run_budget - spent - self.held
            self.granted += got
        return self.granted - self.held

    def deepest(self, cumulative: Sequence[float], spent: float) -> int:
        """The deepest stage that can be paid, at the costs known now."""
        last = len(cumulative) - 1
        if not self.limited:
            return last
        item = float("inf") if self.item_budget is None else _rounded(self.item_budget)
        left = item
        for stage in range(last, -1, -1):
            # From the deepest on, since a shared budget grants no more than is asked for.
            if cumulative[stage] <= item:
                left = min(item, _rounded(self.left(spent, cumulative[stage])))
                if cumulative[stage] <= left:
                    return stage
        raise BudgetError(
            f"budget: {max(left, 0.0):.6g} is left, but the first stage costs {cumulative[0]:.6g}"
        )

    def has(self, cost: float, spent: float) -> bool:
        """Whether the budget of the run has room for one more call."""
        return cost <= _rounded(self.left(spent, cost))

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
        """Whether the item's budget pays for a stage of this cost after what was spent so far."""
        return self.item_budget is None or cost_so_far + next_cost <= self.item_budget * (1 + 1e-9)


def _rounded(left: float) -> float:
    """Sums of prices carry rounding; a budget of exactly ten calls must buy ten."""
    return left + 1e-9 * max(1.0, abs(left)) if left != float("inf") else left
