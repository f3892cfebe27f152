"""Budgets of a day: what is known here, and parts taken where replicas share a store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from stopwise.service.cascades.spending import Spending
from stopwise.service.database.connection import StoreUnavailableError


class FakeShares:
    """One budget that another replica takes from too."""

    def __init__(self) -> None:
        self.holder = "a"
        self.left, self.asked, self.lapsed = 10.0, 0, False
        self.away = False
        self.returned: list[Mapping[str, float | None]] = []

    def take(self, name: str, day: int, least: float, budget: float, *, whole: bool) -> float:
        self._reach()
        self.asked += 1
        if self.left <= 0 or (whole and self.left < least):
            return 0.0
        part = max(least, self.left / 2)
        self.left -= part
        return part

    def give_back(self, day: int, parts: Mapping[str, float | None]) -> None:
        self._reach()
        self.returned.append(parts)

    def begin_again(self) -> None:
        self.holder += "'"
        self.lapsed = False

    def _reach(self) -> None:
        if self.away:
            raise StoreUnavailableError("away")


def funded(spending: Spending, amount: float, whole: bool = True) -> bool:
    return asyncio.run(spending.fund("key:a", amount, 10.0, whole=whole))


def test_parts_are_taken_used_up_and_given_back() -> None:
    shares = FakeShares()
    spending = Spending(shares)
    assert [funded(spending, 1.0) for _ in range(4)] == 4 * [True]
    assert (shares.asked, shares.left) == (1, 5.0)
    spending.settle()
    assert shares.returned == [{"key:a": 1.0}]
    spending.hold("key:a", -3.0)
    spending.written({"key:a": 1.0})  # one cost what it might have, three nothing
    assert spending.spent("key:a") == 1.0
    spending.settle()
    assert shares.returned[1:] == [{"key:a": None}]
    shares.left = 0.5  # another replica has the rest
    assert not funded(spending, 1.0)
    assert funded(spending, 1.0, whole=False)  # the request that reaches the budget
    asked = shares.asked
    assert not funded(spending, 9.0)  # what is known here is enough to refuse it
    assert shares.asked == asked


def test_a_store_that_is_away_leaves_what_is_known_here() -> None:
    shares = FakeShares()
    spending = Spending(shares)
    assert funded(spending, 1.0)
    shares.away = True
    assert funded(spending, 6.0)
    # Nobody knows whether a part was given: it is held under a name that runs out.
    assert shares.holder == "a'"
    assert not funded(spending, 6.0)
    shares.away, shares.left = False, 10.0
    assert funded(spending, 1.0)
    assert shares.left == 2.0  # eight, for what was begun meanwhile too
    shares.lapsed = True
    spending.settle()
    assert (shares.holder, shares.returned) == ("a''", [])
