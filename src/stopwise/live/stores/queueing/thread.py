"""The thread that writes a queue, which it does not keep alive once all is written."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Protocol

from stopwise.live.stores.base import Store


class WrittenQueue(Protocol):
    """What the thread needs of a queue."""

    last: int
    kept: int

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do, for good."""

    def written_by(self, thread: threading.Thread) -> bool:
        """Whether this is the thread that writes."""

    def step(self) -> None:
        """Write what is due."""

    def due(self) -> float:
        """Seconds until there is something to do."""

    def refuse_rest(self) -> None:
        """Answer those who still wait: there is nothing left to do."""

    def survive(self, error: BaseException) -> None:
        """Go on after an error that nobody expected."""


UNWRITTEN: set[WrittenQueue] = set()
"""Queues that are kept alive, because a learner may be dropped before its rounds are written."""


def let_store_go(store: weakref.ref[Store]) -> None:
    """Close the store of a queue that nobody holds any more."""
    found = store()
    if found is not None:
        with contextlib.suppress(Exception):
            found.close()


def run_queue(queue: weakref.ref[WrittenQueue], state: threading.Condition) -> None:
    """The thread: it does not keep its queue alive."""
    while True:
        found = queue()
        if found is None or not found.written_by(threading.current_thread()):
            return
        try:
            found.step()
        except BaseException as error:  # noqa: BLE001  # without this thread nothing is written
            found.survive(error)
        with state:
            # Looked at under the condition: what came meanwhile must not be slept over.
            if found.ended:
                UNWRITTEN.discard(found)
                found.refuse_rest()
                return
            rest = found.due()
            if found.last <= found.kept:
                UNWRITTEN.discard(found)
                del found
            if rest > 0:
                state.wait(min(rest, 1.0))
