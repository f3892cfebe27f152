"""Interrupts by signal handlers: which calls had begun by then, and what a handler has raised.

Money is counted when it is spent: a stage that was called is paid, whether or not an interrupt came
before its result. So every call is noted the moment it begins, and whoever cleans up after an
interrupt asks for the note.

Python runs signal handlers where a function begins, where a call has returned and where a loop goes
back. So `note.begun = ...; value = function(item)` lets none run between the note and the call; the
only moment left is the begin of the function itself, which `before_first_line` tells.
"""

from __future__ import annotations

import asyncio
import dis
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import filterfalse
from operator import methodcaller
from types import CodeType, TracebackType
from typing import Any, Protocol, TypeGuard

Begun = tuple[int, int]
"""A stage, and how many calls of it have begun (more than one where it was called again)."""


class Note(Protocol):
    """Where it is noted that calls of a stage have begun."""

    begun: Begun | SharedNote | None


class Counted(Protocol):
    """What is to know that it has been counted."""

    counted: bool


class CallNote:
    """A note of calls that this thread makes.

    >>> note = CallNote()
    >>> note.begun = (2, 1)
    >>> calls_begun(note, 2), calls_begun(note, 1)
    (1, 0)
    """

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self.begun: Begun | SharedNote | None = None


UNREAD: Note = CallNote()
"""A note that nobody reads."""


class SharedNote:
    """A note of calls that another thread makes, which may stop waiting at any time.

    What has not begun when the waiting ends never begins: what the note says then stays true.

    >>> note = SharedNote()
    >>> note.leave() is None
    True
    >>> note.begun = (0, 1)
    Traceback (most recent call last):
    ...
    asyncio.exceptions.CancelledError: nobody waits for this call any more
    """

    __slots__ = ("_begun", "_left", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: Begun | SharedNote | None = None
        self._left = False

    @property
    def begun(self) -> Begun | SharedNote | None:
        """What has begun."""
        return self._begun

    @begun.setter
    def begun(self, begun: Begun | SharedNote | None) -> None:
        with self._lock:
            if self._left and begun is not None:
                raise asyncio.CancelledError("nobody waits for this call any more")
            self._begun = begun

    def leave(self) -> Begun | None:
        """Stop waiting: what has begun until now."""
        with self._lock:
            self._left = True
            begun = self._begun
        return begun.leave() if isinstance(begun, SharedNote) else begun


def calls_begun(note: object, stage: int) -> int:
    """How many calls of a stage have begun; what has not will not."""
    begun = note if isinstance(note, SharedNote) else getattr(note, "begun", None)
    if isinstance(begun, SharedNote):
        begun = begun.leave()
    return begun[1] if begun is not None and begun[0] == stage else 0


_BEGIN = dis.opmap["RESUME"]


def before_first_line(error: BaseException) -> bool:
    """Whether what this function called had not come to its first line when an interrupt came.

    To be asked where the error is caught, in the function that made the call.

    >>> def fails():
    ...     raise ValueError
    >>> try:
    ...     fails()
    ... except ValueError as error:
    ...     before_first_line(error)
    False
    """
    here = error.__traceback__
    called = None if here is None else here.tb_next
    if called is None:
        return False
    code, at = called.tb_frame.f_code.co_code, called.tb_lasti
    return code[at] == _BEGIN and code[at + 1] == 0


def from_signal(error: BaseException) -> bool:
    """Whether a signal handler raised it, as soft time limits of task queues do.

    Such an error concerns the whole task: it is not to be taken for a failure of what was just
    being done.

    >>> from_signal(ValueError())
    False
    """
    if threading.current_thread() is not threading.main_thread():
        return False  # handlers run in the main thread
    codes = [frame.f_code for frame in _frames(error.__traceback__)]
    if not codes:
        return False
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    return any(code in handlers for code in codes)


def start_thread(thread: threading.Thread) -> None:
    """Start a thread; what a signal handler raises meanwhile is raised as it is.

    Where one raises in the middle of `Thread.start`, that may fail in its own books (a thread that
    is forgotten twice, a condition whose lock is not held) and so hide what was raised.

    >>> thread = threading.Thread(target=print, args=("done",))
    >>> start_thread(thread); thread.join()
    done
    """
    try:
        thread.start()
    except (KeyError, RuntimeError) as error:
        if error.__context__ is None:
            raise  # no thread can be started
        raise error.__context__ from None


def settling(future: asyncio.Future[None]) -> Callable[[], None]:
    """What settles a future, to be called by its event loop; once settled it does nothing.

    An event loop drops what a signal handler raises in a callback, and one whose first line was not
    reached is never called again: who awaits the future would wait for ever. So it is written in
    parts that are compiled, in which no handler runs.

    >>> async def settled():
    ...     future = asyncio.get_running_loop().create_future()
    ...     settle = settling(future)
    ...     settle(); settle()
    ...     return await future
    >>> asyncio.run(settled())
    """
    unsettled = filterfalse(methodcaller("done"), (future,))
    return partial(next, map(methodcaller("set_result", None), unsettled), None)


def is_failure(error: BaseException) -> TypeGuard[Exception]:
    """Whether what a call raised is a failure of that call: not an exit, nor a time limit.

    >>> is_failure(ValueError()), is_failure(KeyboardInterrupt())
    (True, False)
    """
    return isinstance(error, Exception) and not from_signal(error)


def _frames(trace: TracebackType | None) -> Iterator[Any]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _code_of(handler: Any) -> CodeType | None:
    for name in ("func", "__func__", "__wrapped__"):
        handler = getattr(handler, name, handler)
    code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
