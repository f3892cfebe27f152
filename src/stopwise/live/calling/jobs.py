"""One call of a plain function: what came of it, and the thread that does it."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from stopwise.live.calling.errors import StageBusyError
from stopwise.live.calling.locks import ForkSafeLock
from stopwise.live.interrupts import UNREAD, Begun, Note, before_first_line, is_failure

INSIDE_A_STAGE: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "inside_a_stage", default=False
)
"""Whether the caller is itself called by a stage that works in one of our threads."""


class Attempt(NamedTuple):
    """What came of calling a function: its value or its error, and the seconds it worked."""

    value: Any
    error: BaseException | None
    seconds: float


def attempt(
    function: Callable[[Any], Any], item: Any, note: Note = UNREAD, begun: Begun = (0, 1)
) -> Attempt:
    """Call a function here and now. Interrupts are raised, all else is the function's failure.

    >>> attempt(len, "abc").value
    3
    """
    start = time.perf_counter()
    try:
        note.begun = begun
        value = function(item)
    except BaseException as error:  # noqa: BLE001  # raised again where it is no failure
        return failed_attempt(error, start, note, begun)
    return Attempt(value, None, time.perf_counter() - start)


def failed_attempt(error: BaseException, start: float, note: Note, begun: Begun) -> Attempt:
    """What came of a call that raised: its failure. An interrupt is raised again.

    To be called where the error is caught, in the function that made the call.

    Args:
        error: what it raised.
        start: when it began, by `time.perf_counter`.
        note: where it was noted that the call had begun, which is taken back if it had not.
        begun: what was noted.
    """
    if before_first_line(error):
        note.begun = (begun[0], begun[1] - 1) if begun[1] > 1 else None
        raise error
    if not is_failure(error):
        raise error
    return Attempt(None, error, time.perf_counter() - start)


def _attempt_inside(function: Callable[[Any], Any], item: Any) -> Attempt:
    INSIDE_A_STAGE.set(True)
    return attempt(function, item)


class LeftRunning:
    """How many calls of one stage ran out of time and have not returned.

    Args:
        stage: the name of the stage.
        most: beyond how many it is not called. Those that run when that many have been left may be
            left too.

    >>> LeftRunning("slow", 2).refusal() is None
    True
    """

    def __init__(self, stage: str, most: int) -> None:
        self._stage = stage
        self._most = most
        self.number = 0
        self._lock = ForkSafeLock()

    def refusal(self) -> StageBusyError | None:
        """Why the stage is not to be called now, if so."""
        number = self.number
        if not number or number < self._most:
            return None
        return StageBusyError(
            f"stage {self._stage}: {number} calls that ran out of time are still running; it is not"
            " called until one of them returns"
        )

    def add(self, change: int) -> None:
        """One more, or one less."""
        with self._lock.lock:
            self.number += change


_QUEUED, RUNNING, _DONE, _LEFT = range(4)


class Job:
    """One call that a thread does."""

    __slots__ = (
        "context", "done", "function", "item", "left", "lock", "on_done", "on_start", "result",
        "state",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[[Any], Any],
        item: Any,
        left: LeftRunning | None = None,
        on_done: Callable[[], None] | None = None,
        on_start: Callable[[], None] | None = None,
    ) -> None:
        self.function, self.item, self.left = function, item, left
        self.context = contextvars.copy_context()
        self.lock = threading.Lock()
        self.state = _QUEUED
        # Released once when it is done. An Event is written in Python: an interrupt inside of it
        # could leave its lock taken, and the thread that does the job would wait for ever.
        self.done = threading.Lock()
        self.done.acquire()
        self.on_done, self.on_start = on_done, on_start
        self.result: Attempt | None = None

    def claim(self) -> bool:
        """Take the job, if nobody has; who takes it must run it, or nobody will."""
        with self.lock:
            mine = self.state == _QUEUED
            if mine:
                self.state = RUNNING
            return mine

    def leave(self) -> int | None:
        """Stop waiting for it: whether it was queued or running; None if it has just been done."""
        with self.lock:
            if self.state == _DONE:
                return None
            before, self.state = self.state, _LEFT
            if before == RUNNING and self.left is not None:
                self.left.add(1)
            return before

    def wait(self, limit: float | None = None) -> bool:
        """Wait until it is done, at most some seconds; whether it is."""
        return self.state == _DONE or self.done.acquire(timeout=-1 if limit is None else limit)

    def run(self) -> bool:
        """Do the job and tell who waits. False if nobody does any more."""
        refused = None if self.left is None else self.left.refusal()
        if refused is not None:
            return self._finish(Attempt(None, refused, 0.0))
        if self.on_start is not None:
            self.on_start()
        start = time.perf_counter()
        try:
            result = self.context.run(_attempt_inside, self.function, self.item)
        except BaseException as error:  # noqa: BLE001  # an exit is raised where the call was made
            result = Attempt(None, error, time.perf_counter() - start)
        return self._finish(result)

    def _finish(self, result: Attempt) -> bool:
        with self.lock:
            if self.state == _LEFT:
                if self.left is not None:
                    self.left.add(-1)
                return False
            self.state = _DONE
            self.result = result
        self.done.release()
        if self.on_done is not None:
            self.on_done()
        return True
