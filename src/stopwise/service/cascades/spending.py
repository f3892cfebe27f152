"""What was spent today, by key and on comparisons: known sums and what is still under way."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from stopwise.service.database.connection import StoreUnavailableError

DAY = 86400


def today(now: float | None = None) -> int:
    """The number of the day, in UTC."""
    return int((time.time() if now is None else now) // DAY)


class Shares(Protocol):
    """Where several replicas take their parts of a budget: `stopwise.service.database.grants`."""

    holder: str

    def take(self, name: str, day: int, least: float, budget: float, *, whole: bool) -> float:
        """Take a part: `least` or more; 0 if there is none."""

    def give_back(self, day: int, parts: dict[str, float | None]) -> None:
        """Return parts that are not needed (None: all of it), and hold the rest for longer."""

    @property
    def lapsed(self) -> bool:
        """Whether what was taken may be another's by now."""

    def begin_again(self) -> None:
        """Hold nothing."""


class Spending:
    """Amounts by name ("key:ID", "comparison:CASCADE") over one day.

    What is under way counts at its expected cost until it is known, so that many requests at once
    do not pass a budget together. Replicas that share a store take parts of a budget there before
    they spend (`fund`): what one has under way is then known to all.

    Args:
        shares: where parts are taken; None where this process is the only one.

    >>> spending = Spending()
    >>> spending.reserve("key:a", 2.0, budget=1.0)     # a request begins: what it may cost
    True
    >>> spending.reserve("key:a", 2.0, budget=1.0)     # nothing is left while it runs
    False
    >>> spending.hold("key:a", 0.5); spending.hold("key:a", -2.0)      # it ended
    >>> spending.spent("key:a")
    0.5
    >>> spending.reserve("key:a", 0.6, budget=1.0, whole=True)     # this much is not left
    False
    """

    def __init__(self, shares: Shares | None = None) -> None:
        self._lock = threading.Lock()
        self._day = today()
        self._known: dict[str, float] = {}
        self._pending: defaultdict[str, float] = defaultdict(float)
        self._meanwhile: defaultdict[str, float] = defaultdict(float)
        self._shares = shares
        # What was taken and is not yet written as spent; asking and giving back take turns.
        self._granted: defaultdict[str, float] = defaultdict(float)
        self._turns = threading.Lock()

    @property
    def holder(self) -> str:
        """Under which name this process holds parts of budgets; empty if it needs none."""
        return "" if self._shares is None else self._shares.holder

    def spent(self, name: str) -> float:
        """What was spent today, and what is held back."""
        with self._lock:
            self._turn()
            return self._known.get(name, 0.0) + self._pending[name]

    def reserve(
        self, name: str, amount: float, budget: float | None, *, whole: bool = False
    ) -> bool:
        """Hold what a request may cost back, if anything is left of the budget, as known here.

        Args:
            amount: that it may cost.
            budget: of the day; None for no limit.
            whole: whether `amount` is the most it can cost, and has to be left. Otherwise the
                request that reaches a budget is the last one: it is passed by no more than that.
        """
        with self._lock:
            self._turn()
            if budget is not None and not self._left(name, amount, budget, whole):
                return False
            self._pending[name] += amount
            return True

    async def fund(
        self, name: str, amount: float, budget: float | None, *, whole: bool = False
    ) -> bool:
        """The same over all replicas: where this one has not taken enough, it takes more.

        While the store is away, what is known here decides.
        """
        if budget is None or self._shares is None or amount <= 0:
            return self.reserve(name, amount, budget, whole=whole)
        while True:
            with self._lock:
                self._turn()
                if not self._left(name, amount, budget, whole):
                    return False  # it is spent: no need to ask
                if self._pending[name] + amount <= self._granted[name]:
                    self._pending[name] += amount
                    return True
            try:
                if not await asyncio.to_thread(self._take, name, amount, budget, whole):
                    return False
            except StoreUnavailableError:
                return self.reserve(name, amount, budget, whole=whole)

    def _left(self, name: str, amount: float, budget: float, whole: bool) -> bool:
        spent = self._known.get(name, 0.0) + self._pending[name]
        return spent + amount <= budget * (1 + 1e-9) if whole else spent < budget

    def _take(self, name: str, amount: float, budget: float, whole: bool) -> bool:
        """Take a part in the store (this blocks); whether there was one."""
        assert self._shares is not None
        with self._turns:
            with self._lock:
                self._begin_again_if_lapsed()
                short = self._pending[name] + amount - self._granted[name]
                day = self._day
            if short <= 0:
                return True  # another request has taken enough for this one too
            try:
                part = self._shares.take(name, day, short, budget, whole=whole)
            except Exception:
                self._begin_again()
                raise
            with self._lock:
                if day == self._day:
                    self._granted[name] += part
            return part > 0

    def settle(self) -> None:
        """Give back what was taken and is not needed, and keep the rest (this blocks)."""
        if self._shares is None:
            return
        with self._turns:
            with self._lock:
                self._turn()
                self._begin_again_if_lapsed()
                parts: dict[str, float | None] = {}
                for name, granted in list(self._granted.items()):
                    if self._pending[name] <= 1e-12:
                        parts[name] = None
                        del self._granted[name]
                    elif granted > self._pending[name]:
                        parts[name] = granted - self._pending[name]
                        self._granted[name] = self._pending[name]
                day, kept = self._day, bool(self._granted)
            if parts or kept:
                try:
                    self._shares.give_back(day, parts)
                except Exception:
                    self._begin_again()
                    raise

    def _begin_again_if_lapsed(self) -> None:
        if self._shares is not None and self._shares.lapsed:
            self._shares.begin_again()
            self._granted.clear()

    def _begin_again(self) -> None:
        """Nobody knows whether it was committed: what is held then runs out by itself."""
        assert self._shares is not None
        with self._lock:
            self._shares.begin_again()
            self._granted.clear()

    def hold(self, name: str, amount: float) -> None:
        """Count a cost that is expected, or known and not written yet; a negative one frees it."""
        with self._lock:
            self._turn()
            self._pending[name] += amount

    def written(self, amounts: dict[str, float], day: int | None = None) -> None:
        """These actual costs are now in the table that `renew` reads, as of a day."""
        with self._lock:
            for name, amount in amounts.items():
                self._pending[name] -= amount
                self._known[name] = self._known.get(name, 0.0) + amount
                self._meanwhile[name] += amount
                if name in self._granted and day in (None, self._day):
                    self._granted[name] -= amount

    def renew(self, read: Callable[[], dict[str, float]]) -> None:
        """Read from the table what all replicas together have spent today.

        What is written while it is being read may be in it or not: it counts, twice at worst, until
        the next time.
        """
        with self._lock:
            self._meanwhile.clear()
        amounts = read()
        with self._lock:
            self._turn()
            self._known = dict(amounts)
            for name, amount in self._meanwhile.items():
                self._known[name] = self._known.get(name, 0.0) + amount

    def _turn(self) -> None:
        if today() != self._day:
            self._day = today()
            self._known.clear()
            self._granted.clear()  # parts of another day's budget
            # What is under way belongs to the day in which it ends.
