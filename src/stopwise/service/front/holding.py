"""What a request holds back of budgets, from before its first call until its costs are known."""

from __future__ import annotations

from stopwise.openai.bodies import ChatRequest
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.core import Service
from stopwise.service.database.keys import Key
from stopwise.service.database.writing import COMPARISON, KEY


def may_cost(cascade: RunningCascade, chat: ChatRequest, stage: int) -> tuple[float, bool]:
    """What a call may cost, and whether it cannot cost more."""
    config = cascade.config.stages[stage]
    most = config.most(chat.size, chat.most_tokens)
    if most is not None:
        return most, True
    return config.estimate(float(cascade.learner.own_costs.per_stage[stage]), chat.size), False


class HeldBack:
    """The amounts of one request.

    Args:
        cascade, chat: what is called, and with what.
        key: whose budget pays.
    """

    def __init__(
        self, service: Service, cascade: RunningCascade, chat: ChatRequest, key: Key
    ) -> None:
        self._service, self._cascade, self._chat, self._key = service, cascade, chat, key
        self._comparison_name = f"{COMPARISON}:{cascade.name}"
        self._amounts: dict[int, float] = {}
        self._comparison = 0.0

    async def take(self, first: int, depth: int) -> None:
        """Hold back what the stages of a request may cost, or refuse it before any is called.

        Where it is known what every call can cost at most, all of that has to be left of the key's
        budget. Otherwise the request that reaches the budget is the last one.
        """
        found = {s: may_cost(self._cascade, self._chat, s) for s in range(first, depth + 1)}
        amounts = {stage: amount for stage, (amount, _) in found.items()}
        self._comparison = sum(amounts.values()) - amounts[depth]
        self._service.spending.hold(self._comparison_name, self._comparison)
        try:
            known = all(known for _, known in found.values())
            await self._service.reserve(self._key, sum(amounts.values()), whole=known)
        except BaseException:
            self._service.spending.hold(self._comparison_name, -self._comparison)
            raise
        self._amounts = amounts

    async def one_more(self, stage: int) -> bool:
        """The same of a stage in the place of another; whether it may be called.

        If nothing says what it can cost at most it is called, whatever is left.
        """
        if stage in self._amounts:
            return True
        amount, known = may_cost(self._cascade, self._chat, stage)
        if self._key.id:
            budget = self._key.budget if known else None
            name = f"{KEY}{self._key.id}"
            if not await self._service.spending.fund(name, amount, budget, whole=True):
                return False
        self._amounts[stage] = amount
        return True

    def let_go(self) -> None:
        """What was held back is not any more: what the calls did cost is counted now."""
        spending = self._service.spending
        if self._key.id:
            spending.hold(f"{KEY}{self._key.id}", -sum(self._amounts.values()))
        spending.hold(self._comparison_name, -self._comparison)
        self._amounts, self._comparison = {}, 0.0
