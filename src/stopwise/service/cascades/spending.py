"""What was spent today, by key and on comparisons: known sums and what is still under way."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable

DAY = 86400


def today(now: float | None = None) -> int:
    """The number of the day, in UTC."""
    return int((time.time() if now is None else now) // DAY)


class Spending:
    """Amounts by name ("key:ID", "comparison:CASCADE") over one day.

    What is under way counts at its expected cost until it is known, so that many requests at once
    do not pass a budget together.

    >>> spending = Spending()
    >>> spending.reserve("key:a", 2.0, budget=1.0)     # a request begins: what it may cost
    True
    >>> spending.reserve("key:a", 2.0, budget=1.0)     # nothing is left while it runs
    False
    >>> spending.hold("key:a", 0.5); spending.hold("key:a", -2.0)      # it ended
    >>> spending.spent("key:a")
    0.5
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._day = today()
        self._known: dict[str, float] = {}
        self._pending: defaultdict[str, float] = defaultdict(float)
        self._meanwhile: defaultdict[str, float] = defaultdict(float)

    def spent(self, name: str) -> float:
        """What was spent today, and what is held back."""
        with self._lock:
            self._turn()
            return self._known.get(name, 0.0) + self._pending[name]

    def reserve(self, name: str, amount: float, budget: float | None) -> bool:
        """Hold what a request may cost back, if anything is left of the budget.

        The request that reaches a budget is the last one: the budget is passed by no more than it.
        """
        with self._lock:
            self._turn()
            if budget is not None and self._known.get(name, 0.0) + self._pending[name] >= budget:
                return False
            self._pending[name] += amount
            return True

    def hold(self, name: str, amount: float) -> None:
        """Count a cost that is expected, or known and not written yet; a negative one frees it."""
        with self._lock:
            self._turn()
            self._pending[name] += amount

    def written(self, amounts: dict[str, float]) -> None:
        """These actual costs are now in the table that `renew` reads."""
        with self._lock:
            for name, amount in amounts.items():
                self._pending[name] -= amount
                self._known[name] = self._known.get(name, 0.0) + amount
                self._meanwhile[name] += amount

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
            # What is under way belongs to the day in which it ends.
