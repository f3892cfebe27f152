"""Calls that may be given up: a function that does not return must not take the cascade with it.

Threads of a pool are waited for when the interpreter ends, and a call that never returns keeps its
place in it for ever. So a call with a timeout has a thread of its own, which nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any


def call_within(seconds: float, function: Callable[[Any], Any], item: Any) -> Any:
    """Call a function, or raise TimeoutError when it has not returned in time.

    >>> call_within(5, len, "abc")
    3
    """
    done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    _start(lambda: done.put(_outcome(function, item)))
    try:
        value, error = done.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no output within {seconds:g} s") from None
    if error is not None:
        raise error
    return value


async def call_in_thread(function: Callable[[Any], Any], item: Any) -> Any:
    """Await a plain function that runs in a thread of its own; cancelling leaves the thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():  # given up meanwhile
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value, error = _outcome(function, item)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    _start(run)
    return await future


def _outcome(function: Callable[[Any], Any], item: Any) -> tuple[Any, BaseException | None]:
    try:
        return function(item), None
    except BaseException as error:  # noqa: BLE001  # raised again where the call was made
        return None, error


def _start(run: Callable[[], None]) -> None:
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="stopwise", daemon=True).start()
