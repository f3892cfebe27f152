"""Writing behind: requests are compared, counted and written in batches, off the event loop."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from stopwise.service.cascades.counting import ComparedAnswers, row_form, sums_of
from stopwise.service.cascades.forms import Finished
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.spending import Spending, today
from stopwise.service.config.forms import Keep
from stopwise.service.database.rounds import Entry, Rounds

LOG = logging.getLogger("stopwise.service")


class Recorder:
    """A queue, and one thread that empties it every `seconds` or `size` requests.

    What a batch could not write stays and is tried again under the same name. A full queue drops
    what comes next, and counts it: the service answers all the same.

    Args:
        cascades: by name.
        keep: of which rounds the texts are kept.
        size, seconds: of a batch.
        room: how many requests may wait.
    """

    def __init__(
        self,
        rounds: Rounds,
        cascades: Mapping[str, RunningCascade],
        spending: Spending,
        *,
        keep: Keep = "disagreements",
        size: int = 64,
        seconds: float = 0.1,
        room: int = 100_000,
    ) -> None:
        self._rounds = rounds
        self._cascades = cascades
        self._spending = spending
        self._keep = keep
        self._size, self._seconds, self._room = size, seconds, room
        self._queue: deque[tuple[Finished, Future[None] | None]] = deque()
        self._wake = threading.Event()
        self._idle = threading.Condition()
        self._busy = 0
        self._stopping = False
        self.dropped = 0
        self.errors = 0
        self.written = 0
        self.on_tick: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._work, name="stopwise-recorder", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many requests are not written yet."""
        return len(self._queue) + self._busy

    def put(self, finished: Finished) -> None:
        """Hand over a finished request; never blocks."""
        if len(self._queue) >= self._room:
            self.dropped += 1
            return
        self._put(finished, None)
        if len(self._queue) >= self._size:
            self._wake.set()

    def put_and_tell(self, finished: Finished) -> Future[None]:
        """The same at once, for who waits until it is written."""
        written: Future[None] = Future()
        self._put(finished, written)
        self._wake.set()
        return written

    def _put(self, finished: Finished, written: Future[None] | None) -> None:
        for name, amount in _amounts(finished).items():
            self._spending.hold(name, amount)
        self._queue.append((finished, written))

    def drain(self, timeout: float = 10.0) -> bool:
        """Wait until everything so far is written; False if that took too long."""
        self._wake.set()
        end = time.monotonic() + timeout
        with self._idle:
            while self.waiting:
                if not self._idle.wait(timeout=min(0.02, max(0.0, end - time.monotonic()))):
                    self._wake.set()
                if time.monotonic() >= end:
                    return not self.waiting
        return True

    def stop(self, timeout: float = 10.0) -> None:
        """Write what is left, then end the thread."""
        self.drain(timeout)
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self.waiting:
            LOG.error("requests not written", extra={"count": self.waiting})

    def _work(self) -> None:
        pending: tuple[str, list[Entry], list[tuple[Finished, Future[None] | None]]] | None = None
        tick = 0.0
        while True:
            if pending is None:
                self._wake.wait(self._seconds)
                self._wake.clear()
                batch = [
                    self._queue.popleft() for _ in range(min(self._size * 4, len(self._queue)))
                ]
                self._busy = len(batch)
                if batch:
                    entries = [self._entry(finished) for finished, _ in batch]
                    pending = (uuid.uuid4().hex, entries, batch)
            if pending is not None:
                try:
                    self._rounds.write(pending[0], pending[1])
                except Exception as error:  # noqa: BLE001  # whatever a database raises
                    self.errors += 1
                    LOG.error("batch not written", extra={"error": type(error).__name__})
                    if self._stopping:
                        return
                    time.sleep(min(2.0, 0.2 * self.errors))
                    continue
                self.errors = 0
                self.written += len(pending[1])
                for finished, told in pending[2]:
                    self._spending.written(_amounts(finished))
                    if told is not None:
                        told.set_result(None)
                pending = None
                self._busy = 0
            with self._idle:
                self._idle.notify_all()
            if time.monotonic() - tick > 1.0:
                tick = time.monotonic()
                self._look_around()
            if self._stopping and not self._queue:
                return

    def _look_around(self) -> None:
        """Once a second: what other replicas spent, and what the service asked to be done."""
        try:
            self._spending.known(self._rounds.spent_today(today()))
            self.on_tick()
        except Exception as error:  # noqa: BLE001  # tried again in a second
            LOG.warning("store not readable", extra={"error": type(error).__name__})

    def _entry(self, finished: Finished) -> Entry:
        cascade = self._cascades[finished.decision.cascade]
        compared: ComparedAnswers | None = None
        try:
            compared = cascade.compare(finished)
            if compared is not None:
                cascade.count(finished, compared)
        except Exception as error:  # noqa: BLE001  # a comparator or a store; the rest is kept
            self.dropped += 1
            LOG.error("round not counted", extra={"error": f"{type(error).__name__}: {error}"})
        decision = finished.decision
        count = len(cascade.config.stages)
        complete = compared is not None and len([c for c in compared.codes if c >= 0]) == count
        differ = compared is not None and compared.differ
        kept = compared is not None and (
            self._keep == "all" or (self._keep == "disagreements" and differ)
        )
        return Entry(
            id=decision.id,
            cascade=decision.cascade,
            epoch=cascade.epoch,
            segment=decision.segment,
            at=decision.at,
            sums=sums_of(finished, compared, cascade.config.run_to),
            counted=compared is not None,
            differ=differ,
            complete=complete,
            form=row_form(finished, compared),
            item=(finished.request, [call.shown for call in finished.calls]) if kept else None,
        )


def _amounts(finished: Finished) -> dict[str, float]:
    """What a request adds to the day's spending."""
    amounts = {f"comparison:{finished.decision.cascade}": finished.comparison_cost}
    if finished.who:
        amounts[f"key:{finished.who}"] = finished.cost
    return amounts
