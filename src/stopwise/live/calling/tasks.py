"""Several awaitables at once, none of which outlives the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def await_all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all of them at once; an error of one, or one raised here, ends all.

    A signal handler may raise between the start of two of them, or before any is awaited. What has
    not begun by then never begins: nobody would count what it calls.

    Args:
        works: coroutines that nothing has awaited yet.

    >>> import asyncio
    >>> async def say(word):
    ...     print(word)
    >>> asyncio.run(await_all(say(word) for word in ("one", "two")))
    one
    two
    """
    over = False
    kept: list[Coroutine[Any, Any, None]] = []
    tasks: list[asyncio.Task[None]] = []

    async def begin(work: Coroutine[Any, Any, None]) -> None:
        if not over:  # it is, where a handler raised before the task was kept
            await work

    try:
        for work in works:
            kept.append(work)
            tasks.append(asyncio.ensure_future(begin(work)))
        await asyncio.gather(*tasks)
    except BaseException:
        over = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for work in kept:
            work.close()  # those that never began
        raise
