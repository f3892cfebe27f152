"""Asking a store for more of a shared budget, while no lock is held and no event loop waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from stopwise.live.bookkeeping.ledger import Ledger
from stopwise.live.choosing.budgets import NeedsGrantError

_T = TypeVar("_T")


def funded(ledger: Ledger, work: Callable[[], _T]) -> _T:
    """Do something that may need more of a shared budget, again after each grant.

    Args:
        ledger: whose budget it is; its lock is not held.
        work: raises `NeedsGrantError` before it changes anything.
    """
    ledger.budgets.refused = float("inf")
    while True:
        try:
            return work()
        except NeedsGrantError as need:
            got = ledger.budgets.ask(need)
            with ledger.lock:
                ledger.budgets.heed(need, got)


async def funded_async(ledger: Ledger, work: Callable[[], _T]) -> _T:
    """The same without standing in the way of an event loop."""
    ledger.budgets.refused = float("inf")
    while True:
        try:
            return work()
        except NeedsGrantError as need:
            got = await asyncio.to_thread(ledger.budgets.ask, need)
            with ledger.lock:
                ledger.budgets.heed(need, got)
