"""How long an async stage works, as far as that can be seen from inside an event loop.

An event loop runs one thing at a time. What a stage awaits may be there long before its turn comes,
because others are having theirs. That is no work of the stage, and with hundreds of calls open it
is most of the time that passes.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Literal

Clock = Literal["work", "elapsed"]
"""What a call costs where seconds are costs: those it works, or those until its result is there."""


_BREATH = 0.001  # a loop that did next to nothing for this long waited for something to be ready


class Turns:
    """The turns of a loop: what becomes ready during one of them is run in the next, or after it.

    A timer, or data that has come, is seen when a turn begins; the callback that runs then makes
    the call ready, whose turn is the one after.

    >>> now = iter([1.0, 4.0])
    >>> turns = Turns(clock=lambda: next(now), busy=lambda: 0.25)
    >>> turns.worked(0.5)  # and then the loop did nothing for half a second
    >>> turns.ready_within(0.0, lambda end: None)  # so it was ready when the turn began
    (1.0, 1.0)
    """

    __slots__ = (
        "_before", "_begun", "_busy", "_clock", "_last", "_last_busy", "_running", "_two_before",
    )  # fmt: skip

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        busy: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._busy = busy
        self._running = False
        self._begun = self._before = self._two_before = 0.0
        self._last = self._last_busy = 0.0

    def worked(self, stopped: float) -> None:
        """Note that a call was at work until now."""
        self._last, self._last_busy = stopped, self._busy()

    def _was_waiting(self, now: float) -> bool:
        """Whether the loop had nothing to do since a call was last at work."""
        worked = self._busy() - self._last_busy
        return now - self._last >= _BREATH and worked < _BREATH / 2

    def ready_within(
        self, stopped: float, call_soon: Callable[[Callable[[], None]], object]
    ) -> tuple[float, float]:
        """When that was ready, at the earliest and at the latest, that a call has waited for.

        If the loop was waiting: when this turn began. If it was busy: after the turn before the
        last began, for else it would have been seen then.

        Args:
            stopped: when the call stopped.
            call_soon: runs a function in the next turn.
        """
        if not self._running:
            now = self._clock()
            if self._was_waiting(now):
                self._two_before = self._before = now
            else:
                self._two_before, self._before = self._before, self._begun
            self._running, self._begun = True, now
            call_soon(self._end)
        earliest = max(stopped, self._two_before)
        return earliest, max(earliest, self._begun)

    def _end(self) -> None:
        self._running = False


class Waits:
    """How long calls of a stage wait, as far as that was seen; the last few count most.

    >>> waits = Waits()
    >>> waits.between(0.0, 0.025)            # none was seen: between 1 and 25 ms, in proportion
    0.005
    >>> waits.between(2.0, 2.0), waits.between(0.25, 4.0), waits.between(0.25, 1.0)
    (2.0, 2.0, 1.0)
    """

    __slots__ = ("_mean", "_seen")

    def __init__(self) -> None:
        self._mean: float | None = None
        self._seen = 0

    def between(self, least: float, most: float) -> float:
        """How long a wait was, most likely, of which these bounds are known."""
        mean = self._mean
        if most - least <= _BREATH:
            self._seen = min(self._seen + 1, _REMEMBERED)
            self._mean = most if mean is None else mean + (most - mean) / self._seen
            return most
        if mean is None:
            # As wrong as a guess can be, too long or too short, it is by no more than this factor.
            mean = math.sqrt(max(least, _BREATH) * most)
        return min(max(mean, least), most)


_REMEMBERED = 64


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = weakref.WeakKeyDictionary()


class Working:
    """Awaits something and counts the seconds that it works: its own steps, and its waits.

    A wait is not counted while other calls have their turn before it. When exactly it was over
    while the loop was busy with them cannot be seen from inside, only between which moments. It is
    then taken to be as long as waits of this stage are when they can be seen, within these bounds.
    Where none was ever seen it is guessed, between a millisecond and the most that it can have
    been. Giving way to others (`asyncio.sleep(0)`) is no wait.

    Args:
        awaitable: what to await.
        waits: how long such calls wait.

    >>> async def measure():
    ...     working = Working(asyncio.sleep(0.01, "done"))
    ...     return await working, working.seconds > 0.009
    >>> asyncio.run(measure())
    ('done', True)
    """

    __slots__ = ("_awaitable", "_waits", "seconds")

    def __init__(self, awaitable: Awaitable[Any], waits: Waits | None = None) -> None:
        self._awaitable = awaitable
        self._waits = Waits() if waits is None else waits
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
                stopped = time.perf_counter()
                turns.worked(stopped)
                self.seconds += stopped - begun
            error = None
            try:
                yield waits_for
            except BaseException as raised:  # noqa: BLE001  # cancelled: passed on
                error = raised
            first, last = turns.ready_within(stopped, loop.call_soon)
            if waits_for is not None:
                self.seconds += self._waits.between(first - stopped, last - stopped)
