"""Waiting for the thread of a store: for what it gives, in a thread or in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from stopwise.live.interrupts import settling
from stopwise.live.stores.base import StoreError

WhenDone = Callable[[BaseException | None], None]
"""Called with None once something is done, or with why it is not."""


class Result:
    """A value or an error that another thread gives.

    >>> result = Result()
    >>> result.give(3)
    >>> result.get()
    3
    """

    __slots__ = ("_done", "_error", "_value")

    def __init__(self) -> None:
        # A lock that is released once: much lighter than an Event.
        self._done = threading.Lock()
        self._done.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def set(self, error: BaseException | None) -> None:
        """Say that it is done, or why it is not."""
        self._error = error
        self._done.release()

    def give(self, value: Any) -> None:
        """Say that it is done, and what came of it."""
        self._value = value
        self._done.release()

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the value, at most some seconds; raise what was set."""
        if not self._done.acquire(timeout=-1 if timeout is None else timeout):
            raise StoreError(f"store: not written within {timeout} s; it stays queued")
        if self._error is not None:
            raise self._error
        return self._value


def closed_error() -> StoreError:
    """The error for whoever asks for something after the thread has ended.

    >>> closed_error()
    StoreError('store: this learner is closed')
    """
    return StoreError("store: this learner is closed")


async def reported(ask: Callable[[WhenDone], None]) -> None:
    """Await a report that may come from any thread, and raise the error that it tells of.

    Args:
        ask: called with what is to be called with the report.

    >>> asyncio.run(reported(lambda report: report(None)))
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    settle = settling(future)
    errors: list[BaseException] = []

    def report(error: BaseException | None) -> None:
        if error is not None:
            errors.append(error)
        loop.call_soon_threadsafe(settle)

    ask(report)
    await future
    for error in errors:
        raise error
