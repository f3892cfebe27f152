"""Plain functions in threads: at most a number of them, and one that does not return is left.

A call that runs out of time cannot be stopped. Its thread is left to finish and nobody waits for
it, not even when the interpreter ends. How many may be left running is limited for each stage.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from stopwise.live.calling.jobs import INSIDE_A_STAGE, RUNNING, Attempt, Job, LeftRunning
from stopwise.live.calling.locks import ForkSafeLock
from stopwise.live.interrupts import settling, start_thread

IDLE_SECONDS = 2.0
"""A thread that has had nothing to do for so long ends."""


class _Place:
    """Of a thread that is being started: whether it was given up before it began."""

    given_up = False


class Threads:
    """Threads that are started when needed, used again, and never waited for.

    Args:
        most: how many work at the same time for async callers; more calls wait in a queue. A caller
            that waits in its own thread, or that is a stage itself, is never queued, so that stages
            may call cascades.

    >>> Threads(2).call(len, "abc", LeftRunning("len", 1), 5.0).value
    3
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begin()

    def _begin(self) -> None:
        """Begin without threads, as a child process must: they do not fork."""
        self._process = os.getpid()
        self._lock = ForkSafeLock()
        self._queue: deque[Job] = deque()
        self._idle: list[queue.SimpleQueue[Job | None]] = []
        self._working = 0

    def call(
        self, function: Callable[[Any], Any], item: Any, left: LeftRunning, limit: float
    ) -> Attempt | None:
        """Call a function in a thread; None if it has not returned after `limit` seconds."""
        job = Job(function, item, left)
        self.start(job, at_once=True)
        try:
            if job.wait(limit) or not self.leave(job):
                return job.result
        except BaseException:  # an interrupt
            self.leave(job)
            raise
        return None

    async def call_async(
        self,
        function: Callable[[Any], Any],
        item: Any,
        left: LeftRunning,
        timeout: float | None = None,
        limit: float | None = None,
    ) -> Attempt | None:
        """The same, awaited; None if it ran out of time.

        Args:
            function: the function to call, with `item`.
            left: counts the calls that are left running.
            timeout: seconds of work; waiting for a thread does not count.
            limit: seconds from now; waiting for a thread does.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        settle = settling(future)  # by the job, or by the end of its time
        timers: list[asyncio.TimerHandle] = []

        def tell(call: Callable[[], None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(call)

        def begin_timeout() -> None:
            timers.append(loop.call_later(timeout or 0.0, settle))

        on_start = None if timeout is None else lambda: tell(begin_timeout)
        job = Job(function, item, left, lambda: tell(settle), on_start)
        if limit is not None:
            timers.append(loop.call_later(limit, settle))
        self.start(job)
        try:
            await future
        except BaseException:  # cancelled
            self.leave(job)
            raise
        finally:
            for timer in timers:
                timer.cancel()
        return None if self.leave(job) else job.result

    def start(self, job: Job, *, at_once: bool = False) -> None:
        """Give a job to a thread; `at_once`, to one that is free or new.

        What a stage asks for that works in a thread itself is never queued either: it could wait
        for the very thread that waits for it.
        """
        at_once = at_once or INSIDE_A_STAGE.get()
        if self._process != os.getpid():
            self._begin()
        with self._lock.lock:
            if self._idle:
                # No function is called before the job is handed over, so that no signal handler
                # runs here: one that raises would lose the thread.
                mailbox = self._idle[-1]
                del self._idle[-1]
                self._working += 1
                mailbox.put(job)
            elif at_once or self._working < self._most:
                self._start_thread(job)
            else:
                self._queue.append(job)

    def leave(self, job: Job) -> bool:
        """Stop waiting for a job; its place is free for others. False if it has just been done."""
        left = job.leave()
        if left == RUNNING:
            with self._lock.lock:
                self._working -= 1
                if self._queue and self._working < self._most:
                    # Taken from the queue afterwards: after an interrupt in between it stands there
                    # once more, and whoever comes second finds it done.
                    self._start_thread(self._queue[0])
                    self._queue.popleft()
        return left is not None

    def close(self) -> None:
        """Let threads that have nothing to do end now."""
        with self._lock.lock:
            for mailbox in self._idle:
                mailbox.put(None)
            self._idle.clear()

    def _start_thread(self, job: Job) -> None:
        """Start a thread; the lock is held. After an interrupt it is counted if it works."""
        place = _Place()
        thread = threading.Thread(
            target=self._work, args=(job, place), name="stopwise", daemon=True
        )
        self._working += 1
        try:
            start_thread(thread)
        except BaseException:
            place.given_up = True  # the thread, if there is one, waits for the lock
            self._working -= 1
            raise

    def _work(self, job: Job | None, place: _Place) -> None:
        with self._lock.lock:
            if place.given_up:
                return
        mailbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        while job is not None:
            if job.claim() and not job.run():
                return  # left: its place was given to others
            job = self._next(mailbox)

    def _next(self, mailbox: queue.SimpleQueue[Job | None]) -> Job | None:
        """The next job of a thread; None when it is to end."""
        with self._lock.lock:
            if self._queue and self._working <= self._most:
                return self._queue.popleft()
            self._working -= 1
            if len(self._idle) >= self._most:
                return None
            self._idle.append(mailbox)
        try:
            return mailbox.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            with self._lock.lock:
                if mailbox in self._idle:
                    self._idle.remove(mailbox)
                    return None
        return mailbox.get()
