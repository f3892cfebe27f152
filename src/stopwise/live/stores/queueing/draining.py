"""What is queued for stores is written before the process ends, also by SIGTERM."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import weakref
from typing import Any, Protocol


class Drained(Protocol):
    """Something with a queue."""

    def drain(self, seconds: float) -> None:
        """Write what is queued, within some seconds."""


_QUEUES: weakref.WeakSet[Drained] = weakref.WeakSet()
_PREPARED = False


def drain_at_exit(queue: Drained, *, on_signal: bool) -> None:
    """Let a queue be drained when the process ends.

    Args:
        queue: is not kept alive.
        on_signal: also when SIGTERM ends it, if nobody else handles that.
    """
    global _PREPARED  # noqa: PLW0603  # once for each process
    _QUEUES.add(queue)
    if not _PREPARED:
        _PREPARED = True
        atexit.register(_drain_all)
    if (
        on_signal
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, _terminated)


def forget(queue: Drained) -> None:
    """A queue that is closed has nothing left to write."""
    _QUEUES.discard(queue)


def _drain_all(seconds: float = 10.0) -> None:
    for queue in list(_QUEUES):
        queue.drain(seconds)


def _terminated(number: int, frame: Any) -> None:
    _drain_all()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
