"""One event loop for all sync use of async stages, in a thread of its own.

A client that is shared by calls (of HTTP, of a database) belongs to the loop that it was first used
in. A new loop for each call would leave it behind with a closed one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable
from typing import TypeVar

from stopwise.checks import StopwiseError
from stopwise.live.interrupts import start_thread

_T = TypeVar("_T")


def run(awaitable: Awaitable[_T], fix: str = "await it instead") -> _T:
    """Await something in the background loop, from code that is not async.

    Args:
        awaitable: what to await.
        fix: what to do instead where the calling thread runs an event loop itself: waiting here
            would stop that loop.

    >>> import asyncio
    >>> run(asyncio.sleep(0, "done"))
    'done'
    """
    try:
        refuse_in_loop(fix)
    except StopwiseError:
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise
    # A lock that is released once, and not the condition of a future: a signal handler that raises
    # while a condition is entered or left hides its own error, or leaves the lock taken.
    done = threading.Lock()
    done.acquire()
    loop = _background.loop()
    future = asyncio.run_coroutine_threadsafe(_finished(awaitable, done), loop)
    try:
        done.acquire()
    except BaseException:
        loop.call_soon_threadsafe(future.cancel)  # an interrupt must not leave the call running
        raise
    return future.result()


def refuse_in_loop(fix: str) -> None:
    """Raise where an event loop runs in this thread.

    >>> refuse_in_loop("await answer_async instead")
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise StopwiseError(f"an event loop is running here, and this call would stop it: {fix}")


async def _finished(awaitable: Awaitable[_T], done: threading.Lock) -> _T:
    task = asyncio.current_task()
    if task is not None:
        # Called by the loop after the future has its result: the callback of the future came first.
        task.add_done_callback(lambda _: done.release())
    return await awaitable


class _Background:
    """The loop, made when first used, and again in a child process: threads do not fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=loop.run_forever, name="stopwise-loop", daemon=True
                )
                try:
                    start_thread(thread)
                except BaseException:  # an interrupt: one that nobody runs would be waited for
                    if not loop.is_running():
                        loop.close()
                    raise
                self._loop = loop
            return self._loop

    def forget(self) -> None:
        self.__init__()  # type: ignore[misc]


_background = _Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.forget)
