"""Rounds on their way to a store: one thread writes them, in batches, each exactly once."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from stopwise.live.record import RoundRecord
from stopwise.live.stores.base import Changes, Store, StoreError
from stopwise.live.watching.drift import DriftAlarm

_LOG = logging.getLogger("stopwise.live")
_BATCH = 1024
_SLOWEST_RETRY = 5.0


@dataclass(frozen=True)
class StoreStatus:
    """How a store is doing.

    Attributes:
        kept: rounds of this learner that the store has.
        queued: rounds that wait to be written.
        failures: how often a batch could not be written; it stays queued and is tried again.
        unrecorded: rounds that could not even be queued; their cost is counted, nothing else.
        last_error: why a batch could not be written the last time; None since the last success.

    >>> import tempfile
    >>> from stopwise.live import Learner, RoundLog
    >>> folder = tempfile.TemporaryDirectory()
    >>> learner = Learner([0, 1], "fixed", store=RoundLog(folder.name + "/rounds.jsonl"))
    >>> with learner.begin() as round: round.observe(1); round.observe(2)
    >>> learner.store_status
    StoreStatus(kept=1, queued=0, failures=0, unrecorded=0, last_error=None)
    >>> learner.close(); folder.cleanup()
    """

    kept: int = 0
    queued: int = 0
    failures: int = 0
    unrecorded: int = 0
    last_error: str | None = None


class RoundQueue:
    """The rounds of one learner that are not yet in its store.

    Rounds are numbered in the order in which they end. The owner appends under its own lock, and
    drops what is kept under it; the thread only reads.

    Args:
        store: written from the queue's own thread alone.
        absorb: told, in that thread, that rounds are kept, what others changed, and which alarms
            were raised.
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
        self._absorb = absorb
        self.rounds: deque[RoundRecord] = deque()
        self.last = 0  # the number of the last round that was queued
        self.kept = 0  # the number of the last round that the store has
        self._reset()

    def _reset(self) -> None:
        self._thread: threading.Thread | None = None
        # Entered by itself and not through the condition, whose __enter__ and __exit__ are Python:
        # a signal handler that raises in there would leave the lock taken for ever.
        self._lock = threading.RLock()
        self._state = threading.Condition(self._lock)
        self._work = threading.Lock()  # held while the store is used
        self._calls: deque[tuple[Callable[[], Any], _Result]] = deque()
        self._waiting: list[tuple[int, Callable[[BaseException | None], None]]] = []
        self.ended = False
        self._draining = False
        self._oldest = 0.0  # when the first round not yet kept was queued
        self._in_a_row = 0
        self._retry_at = 0.0

    # ---- the learner's side ------------------------------------------------------------------

    def check_room(self) -> None:
        """Refuse a round where too many are waiting, or after `close`."""
        if self.closed:
            raise StoreError("store: this learner is closed, so the round is not recorded")
        waiting = self.last - self.kept
        if waiting >= self.store.writing.queue:
            error = self.last_error
            raise StoreError(
                f"store: {waiting} rounds are waiting to be written, so this one is not"
                f" recorded" + (f" (the last try failed: {error})" if error else "")
            )

    def put(self, record: RoundRecord) -> None:
        """Queue a round; the owner holds its lock. Both steps come before any signal handler."""
        self.last += 1
        self.rounds.append(record)

    def wake(self) -> None:
        """Tell the thread that a round was queued that nobody waits for."""
        waiting = self.last - self.kept
        if waiting == 1:
            self._oldest = time.monotonic()
        writing = self.store.writing
        if waiting == 1 or waiting % writing.rounds == 0 or writing.durability == "round":
            with self._lock:
                self._start()
                self._state.notify_all()

    def since(self, number: int) -> list[RoundRecord]:
        """The rounds that were queued after this one; the owner holds its lock."""
        return list(islice(self.rounds, len(self.rounds) - (self.last - number), None))

    def drop(self, number: int) -> None:
        """Forget the rounds up to this one, which the store has; the owner holds its lock."""
        while len(self.rounds) > self.last - number:
            self.rounds.popleft()

    def wait(self, number: int, timeout: float | None = None) -> None:
        """Wait until a round is kept, or raise why it is not; it stays queued then."""
        result = _Result()
        self.when_kept(number, result.set)
        result.get(timeout)

    async def wait_async(self, number: int) -> None:
        """The same without standing in the way of an event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def tell(error: BaseException | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

        self.when_kept(number, lambda error: _tell_loop(loop, tell, error))
        await future

    def when_kept(self, number: int, tell: Callable[[BaseException | None], None]) -> None:
        """Call back with None once a round is kept, or with why the next try failed."""
        with self._lock:
            if self.kept < number:
                self._waiting.append((number, tell))
                self._start()
                self._state.notify_all()
                return
        tell(None)

    def call(self, function: Callable[[], Any]) -> Any:
        """Run something in the thread of the store, between batches, and give what it returns."""
        if threading.current_thread() is self._thread:
            return function()
        result = _Result()
        with self._lock:
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
        if self.closed:
            return
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
        _QUEUES.discard(self)
        if error is not None:
            raise error

    def stop(self) -> None:
        """End the thread of a store that could not be attached."""
        with self._lock:
            self.ended = True
            self._state.notify_all()

    # ---- the thread --------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None:
            _register(self)
            self._thread = threading.Thread(
                target=_run, args=(weakref.ref(self), self._state), daemon=True,
                name="stopwise store",
            )  # fmt: skip
            self._thread.start()

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

    def due(self) -> float:
        """In how many seconds there is something to do."""
        waiting = self.last - self.kept
        if self._calls:
            return 0.0
        if waiting <= 0:
            return 3600.0
        now = time.monotonic()
        if self.last_error is not None:
            # Somebody who waits and has not been told of the failure does not wait for the retry.
            return 0.0 if self._waiting else max(self._retry_at - now, 0.0)
        writing = self.store.writing
        if self._waiting or waiting >= writing.rounds or writing.durability == "round":
            return 0.0
        return max(self._oldest + writing.seconds - now, 0.0)

    def _write(self) -> None:
        """Write one batch; on failure all of it stays queued."""
        skip = len(self.rounds) - (self.last - self.kept)
        batch = list(islice(self.rounds, max(skip, 0), max(skip, 0) + _BATCH))
        if not batch:
            return
        last = self.kept + len(batch)
        try:
            with self._work:
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
        self._oldest = time.monotonic()
        if not self._draining:
            self._absorb(changes, alarms)
        self._tell(None, last)

    def _fail(self, error: Exception, last: int) -> None:
        self.failures += 1
        self._in_a_row += 1
        rest = min(_SLOWEST_RETRY, 0.1 * 2 ** min(self._in_a_row, 10))
        self._retry_at = time.monotonic() + rest
        self.last_error = error
        if self._in_a_row & (self._in_a_row - 1) == 0:  # the 1st, 2nd, 4th, ... time
            _LOG.warning(
                "%d rounds could not be written and stay queued: %s", last - self.kept, error
            )
        told = StoreError(f"store: not written yet, but queued and tried again: {error}")
        told.__cause__ = error
        self._tell(told, last)

    def _tell(self, error: BaseException | None, last: int) -> None:
        with self._lock:
            due = [entry for entry in self._waiting if entry[0] <= last]
            self._waiting = [entry for entry in self._waiting if entry[0] > last]
        for _, tell in due:
            with contextlib.suppress(RuntimeError):  # a loop that was closed meanwhile
                tell(error)

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


def _tell_loop(
    loop: asyncio.AbstractEventLoop,
    tell: Callable[[BaseException | None], None],
    error: BaseException | None,
) -> None:
    loop.call_soon_threadsafe(tell, error)


class _Result:
    """A value or an error that another thread gives."""

    __slots__ = ("_done", "_error", "_value")

    def __init__(self) -> None:
        # A lock that is released once: much lighter than an Event.
        self._done = threading.Lock()
        self._done.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def set(self, error: BaseException | None) -> None:
        self._error = error
        self._done.release()

    def give(self, value: Any) -> None:
        self._value = value
        self._done.release()

    def get(self, timeout: float | None = None) -> Any:
        if not self._done.acquire(timeout=-1 if timeout is None else timeout):
            raise StoreError(f"store: not written within {timeout} s; it stays queued")
        if self._error is not None:
            raise self._error
        return self._value


def _run(queue: weakref.ref[RoundQueue], state: threading.Condition) -> None:
    """The thread: it does not keep its queue alive."""
    while True:
        found = queue()
        if found is None:
            return
        found.step()
        with state:
            # Looked at under the condition: what came meanwhile must not be slept over.
            if found.ended:
                return
            rest = found.due()
            if found.last <= found.kept:
                del found
            if rest > 0:
                state.wait(min(rest, 1.0))


_QUEUES: weakref.WeakSet[RoundQueue] = weakref.WeakSet()
_PREPARED = False


def _register(queue: RoundQueue) -> None:
    """Let the queue be drained when the process ends, also by SIGTERM if nobody else handles it."""
    global _PREPARED  # noqa: PLW0603  # once for each process
    _QUEUES.add(queue)
    if not _PREPARED:
        _PREPARED = True
        atexit.register(_drain_all)
    if (
        queue.store.writing.durability == "behind"
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, _terminated)


def _drain_all(seconds: float = 10.0) -> None:
    for queue in list(_QUEUES):
        queue.drain(seconds)


def _terminated(number: int, frame: Any) -> None:
    _drain_all()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
