"""How long an async stage works, as far as that can be seen from inside an event loop.

An event loop runs one thing at a time. What a stage awaits may be there long before its turn comes,
because others are having theirs. That is no work of the stage, and with hundreds of calls open it
is most of the time that passes.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Literal

Clock = Literal["work", "elapsed"]
"""What a call costs where seconds are costs: those it works, or those until its result is there."""


_BREATH = 0.001  # a loop that did nothing for this long was waiting for something to be ready


class Turns:
    """The turns of a loop: what becomes ready during one of them is run in the next.

    >>> now = iter([1.0, 4.0])
    >>> turns = Turns(clock=lambda: next(now))
    >>> turns.last = 0.5  # the loop did nothing for half a second
    >>> turns.ready_at(0.0, lambda end: None)  # so it was ready when the turn began
    1.0
    """

    __slots__ = ("_before", "_begun", "_clock", "_running", "last")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._running = False
        self._begun = self._before = 0.0
        self.last = 0.0  # when a call was last at work

    def ready_at(self, stopped: float, call_soon: Callable[[Callable[[], None]], object]) -> float:
        """When that was ready, most likely, for which a call has waited since it stopped.

        If the loop was waiting: when this turn began. If it was busy: at some moment of the turn
        before, of which the middle is taken.

        Args:
            stopped: when the call stopped.
            call_soon: runs a function in the next turn.
        """
        if not self._running:
            now = self._clock()
            self._before = self._begun if now - self.last < _BREATH else now
            self._running, self._begun = True, now
            call_soon(self._end)
        earliest = max(stopped, self._before)
        return earliest + max(0.0, self._begun - earliest) / 2

    def _end(self) -> None:
        self._running = False


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = weakref.WeakKeyDictionary()


class Working:
    """Awaits something and counts the seconds that it works: its own steps, and its waits.

    A wait is not counted while other calls have their turn before it. When exactly it was over
    while the loop was busy with them cannot be seen from inside; the middle is taken, so that a
    wait is measured wrongly by at most half of the turn in which it ended.

    Args:
        awaitable: what to await.

    >>> async def measure():
    ...     working = Working(asyncio.sleep(0.01, "done"))
    ...     return await working, working.seconds > 0.009
    >>> asyncio.run(measure())
    ('done', True)
    """

    __slots__ = ("_awaitable", "seconds")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._awaitable = awaitable
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, Any]:
        loop = asyncio.get_running_loop()
        turns = _TURNS.setdefault(loop, Turns())
        steps = self._awaitable.__await__()
        send = getattr(steps, "send", lambda _: next(steps))
        error: BaseException | None = None
        while True:
            begun = time.perf_counter()
            try:
                waits_for = send(None) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value
            finally:
                stopped = turns.last = time.perf_counter()
                self.seconds += stopped - begun
            error = None
            try:
                yield waits_for
            except BaseException as raised:  # noqa: BLE001  # cancelled: passed on
                error = raised
            self.seconds += turns.ready_at(stopped, loop.call_soon) - stopped
