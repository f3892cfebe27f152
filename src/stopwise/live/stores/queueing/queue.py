"""Rounds on their way to a store: one thread writes them, in batches, each exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from stopwise.live.interrupts import start_thread
from stopwise.live.record import RoundRecord
from stopwise.live.stores.base import Changes, Store, StoreError
from stopwise.live.stores.queueing.draining import drain_at_exit, forget
from stopwise.live.stores.queueing.moments import QueuedMoments
from stopwise.live.stores.queueing.thread import UNWRITTEN, let_store_go, run_queue
from stopwise.live.stores.queueing.waiting import Result, WhenDone, closed_error, reported
from stopwise.live.watching.drift import DriftAlarm

_LOG = logging.getLogger("stopwise.live")
_BATCH = 1024
_SLOWEST_RETRY = 5.0
AWAY = 1.0
"""Seconds without an answer after which writing behind does not wait for a store."""


class RoundQueue:
    """The rounds of one learner that are not yet in its store.

    Rounds are numbered in the order in which they end. The owner appends under its own lock, and
    drops what is kept under it; the thread only reads, and never waits for that lock, because the
    owner may hold it while it waits for the thread.

    Args:
        store: written from the queue's own thread alone.
        absorb: called in that thread when rounds are kept, with what others changed and the alarms
            that were raised.
    """

    def __init__(
        self,
        store: Store,
        absorb: Callable[[Changes | None, Sequence[DriftAlarm]], None],
    ) -> None:
        self.store = store
        self.failures = 0
        self.last_error: BaseException | None = None
        self.closed = False
        self.closing = False  # no round is taken any more; set under the owner's lock
        self._absorb = absorb
        # Each with its number: a place in a deque that others change says nothing.
        self.rounds: deque[tuple[int, RoundRecord]] = deque()
        self.last = 0  # the number of the last round that was queued
        self.kept = 0  # the number of the last round that the store has
        self._closing = threading.RLock()
        self._at_end: weakref.finalize[[weakref.ref[Store]], RoundQueue] | None = None
        self._reset()

    def _reset(self) -> None:
        self._thread: threading.Thread | None = None
        # Entered by itself and not through the condition, whose __enter__ and __exit__ are Python:
        # a signal handler that raises in there would leave the lock taken for ever.
        self._lock = threading.RLock()
        self._state = threading.Condition(self._lock)
        self._work = threading.Lock()  # held while the store is used
        self._calls: deque[tuple[Callable[[], Any], Result]] = deque()
        self._waiting: list[tuple[int, WhenDone]] = []
        self.ended = False
        self._draining = False
        self._moments = QueuedMoments()
        self._idle = True  # nothing was queued when the thread last looked
        self._takes = 0.0  # seconds that a write took lately
        self._answered = time.monotonic()  # when a batch was last written
        self._in_a_row = 0
        self._retry_at = 0.0

    # ---- the learner's side ------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether a round can be queued; else `check_room` says why not."""
        full = self.last - self.kept >= self.store.writing.queue
        return not (full or self.closed or self.closing)

    def check_room(self) -> None:
        """Refuse a round where too many are waiting, or after `close`."""
        if self.closed or self.closing:
            raise StoreError("store: this learner is closed, so the round is not recorded")
        if not self.has_room:
            waiting = self.last - self.kept
            error = self.last_error
            raise StoreError(
                f"store: {waiting} rounds are waiting to be written, so this one is not"
                f" recorded" + (f" (the last try failed: {error})" if error else "")
            )

    def wake(self) -> None:
        """Wake the thread for a round that was queued and that nobody waits for."""
        last, writing = self.last, self.store.writing
        self._moments.note(last, always=self._idle)
        if self._idle or last % writing.rounds == 0 or writing.durability == "round":
            self._idle = False
            with self._lock:
                UNWRITTEN.add(self)
                self._start()
                self._state.notify_all()

    def waited(self) -> float:
        """For how many seconds the oldest round that is not kept has waited, or a few less."""
        return self._moments.waited(self.kept + 1) if self.last > self.kept else 0.0

    def since(self, number: int) -> list[RoundRecord]:
        """The rounds that were queued after this one; the owner holds its lock."""
        first = len(self.rounds) - (self.last - number)
        return [record for _, record in islice(self.rounds, first, None)]

    def drop(self, number: int) -> None:
        """Forget the rounds up to this one, which the store has; the owner holds its lock."""
        while len(self.rounds) > self.last - number:
            self.rounds.popleft()

    def wait(self, number: int, timeout: float | None = None) -> None:
        """Wait until a round is kept, or raise why it is not; it stays queued then."""
        self.when_kept(number, (result := Result()).set)
        result.get(timeout)

    async def wait_async(self, number: int) -> None:
        """The same without standing in the way of an event loop."""
        await reported(lambda report: self.when_kept(number, report))

    # ---- written behind, but not too far -----------------------------------------------------

    @property
    def _too_far(self) -> bool:
        """Whether a round waits for longer than a flush interval, or half of the queue is full.

        A store that fails, or has not answered for `AWAY` seconds, is not waited for.
        """
        waiting, writing = self.last - self.kept, self.store.writing
        if waiting <= 0 or self.last_error is not None or self.closed:
            return False
        waited = self.waited()
        if waited <= writing.seconds and 2 * waiting <= writing.queue:
            return False
        # A store that is far behind but goes on writing has answered.
        return min(waited, time.monotonic() - self._answered) <= AWAY

    def catch_up(self, number: int) -> None:
        """Wait while the store is too far behind, and has not kept this round yet.

        So all rounds that a kill can cost have ended within one interval, and none lacks room,
        however fast they come and however slow the store is. One that is kept waits for no others.
        """
        while self.kept < number and self._too_far:
            with contextlib.suppress(StoreError):
                self.wait(self.kept + 1, AWAY)

    async def catch_up_async(self, number: int) -> None:
        """The same without standing in the way of an event loop."""
        while self.kept < number and self._too_far:
            with contextlib.suppress(StoreError, TimeoutError):
                await asyncio.wait_for(self.wait_async(self.kept + 1), AWAY)

    def when_kept(self, number: int, report: WhenDone) -> None:
        """Call back with None once a round is kept, or with why the next try failed."""
        with self._lock:
            kept = self.kept >= number
            if not (kept or self.ended):
                self._waiting.append((number, report))
                self._start()
                self._state.notify_all()
                return
        report(None if kept else closed_error())

    def call(self, function: Callable[[], Any]) -> Any:
        """Run something in the thread of the store, between batches, and give what it returns."""
        if threading.current_thread() is self._thread:
            return function()
        result = Result()
        with self._lock:
            if self.ended:
                raise closed_error()
            self._calls.append((function, result))
            self._start()
            self._state.notify_all()
        return result.get()

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was queued so far is kept."""
        last = self.last
        if last > self.kept:
            self.wait(last, timeout)

    def close(self) -> None:
        """Write what is queued, then let the store go; raise if something cannot be written."""
        with self._closing:
            if not self.closed:
                self._close()

    def _close(self) -> None:
        error: BaseException | None = None
        try:
            self.flush()
        except StoreError as failure:
            error = failure
        self.call(self.store.close)
        with self._lock:
            self.ended = True
            thread = self._thread
            self._state.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._reset()
        self.closed = True
        forget(self)
        if self._at_end is not None:
            self._at_end.detach()
        if error is not None:
            raise error

    def own_store(self) -> None:
        """From now on, let the store go when the learner is dropped and all rounds are written."""
        self._at_end = weakref.finalize(self, let_store_go, weakref.ref(self.store))
        self._at_end.atexit = False  # then, rounds are still to be written

    def stop(self) -> None:
        """End the thread of a store that could not be attached."""
        with self._lock:
            self.ended = True
            self._state.notify_all()

    def refuse_rest(self) -> None:
        """Answer what came after the last step of the thread: nobody else will; locked."""
        left: list[WhenDone] = [result.set for _, result in self._calls]
        left += [report for _, report in self._waiting]
        self._calls, self._waiting = deque(), []
        for tell in left:
            with contextlib.suppress(RuntimeError):  # a loop that was closed meanwhile
                tell(closed_error())

    # ---- the thread --------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            drain_at_exit(self, on_signal=self.store.writing.durability == "behind")
            self._thread = threading.Thread(
                target=run_queue, args=(weakref.ref(self), self._state), daemon=True,
                name="stopwise store",
            )  # fmt: skip
            start_thread(self._thread)

    def written_by(self, thread: threading.Thread) -> bool:
        """Whether this is the thread that writes.

        An interrupt in `Thread.start` can leave a thread that is taken for dead and lives a moment
        later, when another has been started in its place.
        """
        return self._thread is thread

    def step(self) -> None:
        """Do what is due."""
        while self._calls:
            function, result = self._calls.popleft()
            with self._work:
                try:
                    value = function()
                except BaseException as error:  # noqa: BLE001  # raised where it was asked for
                    result.set(error)
                else:
                    result.give(value)
        if self.due() <= 0 and not self.ended:
            self._write()
        if not self.ended:
            self._keep_alive()

    def _keep_alive(self) -> None:
        """Show others that this writer lives; if that fails, the next batch says why."""
        with self._work, contextlib.suppress(Exception):
            self.store.keep_alive()

    def due(self) -> float:
        """In how many seconds there is something to do."""
        if self._calls:
            return 0.0
        self._idle = True  # said first: who queues a round after this line wakes the thread
        waiting = self.last - self.kept
        if waiting <= 0:
            return 3600.0
        self._idle = False
        now = time.monotonic()
        if self.last_error is not None:
            # Somebody who waits and does not know of the failure does not wait for the retry.
            return 0.0 if self._waiting else max(self._retry_at - now, 0.0)
        writing = self.store.writing
        if self._waiting or waiting >= writing.rounds or writing.durability == "round":
            return 0.0
        # Begun early enough to be done in time, but never more than twice as often.
        rest = max(writing.seconds - 2 * self._takes, 0.0)
        return max(rest - self.waited(), 0.0)

    def _write(self) -> None:
        """Write one batch; on failure all of it stays queued."""
        last = self.kept
        begun = time.monotonic()
        try:
            with self._work:
                batch = self._next_batch()
                if not batch:
                    return
                last = self.kept + len(batch)
                alarms = self.store.append(self.kept + 1, batch)
                self.kept = last
                changes = self.store.changes()
        except Exception as error:  # noqa: BLE001  # whatever a store raises: it is tried again
            if self.kept != last:
                self._fail(error, last)
                return
            alarms, changes = (), None
            _LOG.warning("what others wrote could not be read: %s", error)
        self._in_a_row = 0
        self.last_error = None
        self._moments.forget(last)
        self._answered = time.monotonic()
        self._takes = max(self._answered - begun, 0.9 * self._takes)
        if not self._draining:
            self._absorb(changes, alarms)
        self._report(None, last)

    def _next_batch(self) -> list[RoundRecord]:
        """The first rounds that are not kept."""
        rounds = self.rounds.copy()  # one step of the interpreter: nobody appends in its middle
        if not rounds:
            return []
        skip = max(self.kept + 1 - rounds[0][0], 0)
        return [record for _, record in islice(rounds, skip, skip + _BATCH)]

    def survive(self, error: BaseException) -> None:
        """Go on after something that nobody foresaw: it is shown, and what is queued stays so."""
        self._report(None, self.kept)
        self._fail(error, self.last)

    def _fail(self, error: BaseException, last: int) -> None:
        self.failures += 1
        self._in_a_row += 1
        rest = min(_SLOWEST_RETRY, 0.1 * 2 ** min(self._in_a_row, 10))
        self._retry_at = time.monotonic() + rest
        self.last_error = error
        if self._in_a_row & (self._in_a_row - 1) == 0:  # the 1st, 2nd, 4th, ... time
            _LOG.warning(
                "%d rounds could not be written and stay queued: %s", last - self.kept, error
            )
        reason = StoreError(f"store: not written yet, but queued and tried again: {error}")
        reason.__cause__ = error
        self._report(reason, last)

    def _report(self, error: BaseException | None, last: int) -> None:
        with self._lock:
            due = [entry for entry in self._waiting if entry[0] <= last]
            self._waiting = [entry for entry in self._waiting if entry[0] > last]
        for _, report in due:
            with contextlib.suppress(RuntimeError):  # a loop that was closed meanwhile
                report(error)

    # ---- forks and signals -------------------------------------------------------------------

    def hold(self) -> None:
        """Keep the thread from the store while the process forks; wait for it at most 1 s."""
        self._held = self._work.acquire(timeout=1.0)
        if self._held:
            self.store.before_fork()

    def let_go(self) -> None:
        """End what `hold` began."""
        if self._held:
            self._work.release()

    def forked(self) -> None:
        """In a child: the parent writes what was queued; begin with nothing."""
        self.rounds = deque()
        self.last, self.kept = 0, 0
        self.failures, self.last_error = 0, None
        self._closing = threading.RLock()
        UNWRITTEN.discard(self)
        self._reset()
        self.store.forked()

    def drain(self, seconds: float) -> None:
        """Write what is queued before the process ends; no lock of the learner is needed."""
        if self._thread is None or self.last <= self.kept:
            return
        self._draining = True
        done = threading.Event()
        with contextlib.suppress(Exception):
            self.when_kept(self.last, lambda error: done.set())
            done.wait(seconds)
