"""Answers held back while what was answered before them is not written in time.

An answer leaves only while the oldest round that is not written yet is younger than the flush
interval. So whenever a process is killed, all answers whose rounds are lost were given within one
interval, however slow the database was. A store that is far behind but goes on writing is waited
for too, up to `PATIENCE` seconds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from stopwise.service.config.forms import StoreAway
from stopwise.service.database.connection import StoreUnavailableError

LATE = 1.0
"""Seconds without anything written, while something waits, after which the store is away."""
PATIENCE = 5.0
"""Seconds for which an answer waits where it may not leave without the store, or while the store
goes on writing: otherwise requests that come faster than it writes would never be answered."""


class HeldAnswers:
    """Holds answers back, and lets them go.

    Args:
        seconds: the flush interval.
        behind: for how long the oldest round waits to be written.
        silent: for how many of these seconds nothing was written.
        failing: whether the last try to write failed.
        away: what is done while the store is away: "answer" lets answers go, "refuse" does not.
    """

    def __init__(
        self,
        seconds: float,
        behind: Callable[[], float],
        silent: Callable[[], float],
        failing: Callable[[], bool],
        away: StoreAway = "answer",
    ) -> None:
        self._seconds, self._behind = seconds, behind
        self._silent, self._failing = silent, failing
        self._refuses = away == "refuse"
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    async def wait(self) -> None:
        """Returns when an answer may leave; raises where it may not without the store."""
        if self._behind() <= self._seconds:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while self._behind() > self._seconds:
            if not self._refuses and (self._failing() or self._silent() > LATE):
                return
            if loop.time() >= end:
                if self._refuses:
                    raise StoreUnavailableError("the answer cannot be counted now; try again")
                return
            future: asyncio.Future[None] = loop.create_future()
            with self._lock:
                self._waiting.append((loop, future))
            # Looked at again after a while: a write that fails releases nobody.
            await asyncio.wait({future}, timeout=0.05)

    def release(self) -> None:
        """Look again: something was written. Called by the thread that writes."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            loop.call_soon_threadsafe(_let_go, future)


def _let_go(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
