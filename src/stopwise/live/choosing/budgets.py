"""Hard budgets: of one item, and of all items together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stopwise.checks import StopwiseError, fail, finite_number
from stopwise.live.limits import enough_for_sums
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


class NeedsGrantError(Exception):
    """More of a shared budget must be asked for first, while no lock is held.

    Args:
        least, most: how much is wanted.
    """

    def __init__(self, least: float, most: float) -> None:
        super().__init__(least, most)
        self.least, self.most = least, most


class Budgets:
    """What may still be spent. Open rounds hold back what they may yet cost.

    >>> Budgets(5.0, None).deepest([1.0, 3.0, 9.0], spent=100.0)
    1
    """

    __slots__ = (
        "_ask", "_expired", "_received", "held", "item_budget", "limited", "parents", "refused",
        "run_budget", "used",
    )  # fmt: skip

    def __init__(self, item_budget: float | None, run_budget: float | None) -> None:
        accepted = "a cost above 0, or None for no limit"
        for field, value in (("item_budget", item_budget), ("run_budget", run_budget)):
            if value is not None and finite_number(field, value, accepted) <= 0:
                raise fail(field, value, accepted)
        self.item_budget = item_budget
        self.run_budget = run_budget
        self.limited = item_budget is not None or run_budget is not None
        self.held = 0.0
        self.parents = 0  # rounds up to this sequence were begun before a fork
        self._ask: Ask | None = None
        self._expired: Callable[[], bool] = lambda: False
        self._received = 0.0  # all that was ever granted; written by the store's thread alone
        self.used = 0.0  # of that
        self.refused = float("inf")  # as much as this was asked for and not granted

    def share(self, ask: Ask, expired: Callable[[], bool]) -> None:
        """Spend only what a store grants, because others spend from the same budget.

        Args:
            ask: with the least and the most that is wanted and the budget: gives what may be spent,
                0 where the least is not left, None where the store is not shared.
            expired: whether what was granted may be another's by now.
        """
        self._ask = ask
        self._expired = expired
        self._received = self.used = 0.0

    @property
    def granted(self) -> float:
        """What was granted and not spent."""
        return self._received - self.used

    @property
    def shared(self) -> bool:
        """Whether others spend from the same budget."""
        return self._ask is not None

    def ask(self, need: NeedsGrantError) -> float | None:
        """Ask the store for more; it may take its time, so no lock is held."""
        if self._ask is None or self.run_budget is None:
            return None
        return self._ask(need.least, need.most, self.run_budget)

    def receive(self, got: float | None) -> float | None:
        """Take what the store grants, in its thread: who asked may have been interrupted."""
        self._received += got or 0.0
        return got

    def heed(self, need: NeedsGrantError, got: float | None) -> None:
        """Ask no more where the store is not shared, or grants nothing; the lock is held."""
        if got is None:
            self._ask = None
        elif got <= 0:
            self.refused = min(self.refused, need.least)

    def unused(self) -> float:
        """What was granted and not spent."""
        return max(self.granted, 0.0) if self._ask is not None else 0.0

    def left(self, spent: float, wanted: float) -> float:
        """What the budget of the run has left; raises where more of it is to be asked for."""
        if self.run_budget is None:
            return float("inf")
        if self._ask is None:
            return self.run_budget - spent - self.held
        received = self._received  # read first: what is granted from here on has not expired
        if received > self.used and self._expired():
            self.used = received
        free = self.granted - self.held
        least = wanted - free
        if wanted > enough_for_sums(free) and least < self.refused:
            part = (self.run_budget - spent) / _PARTS
            raise NeedsGrantError(least, max(part, least))
        return free

    def deepest(self, cumulative: Sequence[float], spent: float) -> int:
        """The deepest stage that can be paid, at the costs known now."""
        last = len(cumulative) - 1
        if not self.limited:
            return last
        item = float("inf") if self.item_budget is None else enough_for_sums(self.item_budget)
        left = self.item_budget or 0.0
        for stage in range(last, -1, -1):
            # From the deepest on, since a shared budget grants no more than is asked for.
            if cumulative[stage] <= item:
                left = min(item, self.left(spent, cumulative[stage]))
                if cumulative[stage] <= enough_for_sums(left):
                    return stage
        raise BudgetError(
            f"budget: {max(left, 0.0):.6g} is left, but the first stage costs {cumulative[0]:.6g}"
        )

    def item_limit(self, cumulative: Sequence[float]) -> int | None:
        """The deepest stage that the budget of an item allows; None without one, -1: not even one.

        >>> Budgets(5.0, 100.0).item_limit([1.0, 3.0, 9.0])
        1
        """
        if self.item_budget is None:
            return None
        most = enough_for_sums(self.item_budget)
        return sum(1 for cost in cumulative if cost <= most) - 1

    def has(self, cost: float, spent: float) -> bool:
        """Whether the budget of the run has room for one more call."""
        return cost <= enough_for_sums(self.left(spent, cost))

    def reserve(self, round: Round, cost: float) -> None:
        """Hold back what a round may cost."""
        if self.run_budget is not None:
            round.reserved += cost
            self.held += cost

    def held_for(self, round: Round) -> float:
        """What of `held` is for a round: to be taken off when it ends, as one step."""
        return 0.0 if round.sequence <= self.parents else round.reserved

    def after_fork_in_child(self, begun: int) -> None:
        """Hold nothing back for the rounds that were begun until now: the parent ends them."""
        self.held = 0.0
        self.parents = begun

    def allows(self, cost_so_far: float, next_cost: float) -> bool:
        """Whether the item's budget pays for a stage of this cost after what was spent so far."""
        return self.item_budget is None or cost_so_far + next_cost <= self.item_budget * (1 + 1e-9)
