"""Writing behind: requests are compared, counted and written in batches, off the event loop."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from stopwise.service.cascades.counting import ComparedAnswers, row_form, sums_of
from stopwise.service.cascades.forms import Finished
from stopwise.service.cascades.holding import HeldAnswers
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.spending import Spending, today
from stopwise.service.config.forms import Keep, StoreAway
from stopwise.service.database.connection import StoreUnavailableError
from stopwise.service.database.rounds import Rounds
from stopwise.service.database.writing import COMPARISON, KEY, Entry

LOG = logging.getLogger("stopwise.service")
Waiting = tuple[Finished | Entry, Future[None] | None, float]
"""A request, what waits until it is written, and since when it waits."""


@dataclass
class _Batch:
    """Requests that are written together, under one name for all tries."""

    taken: list[Waiting]
    uncounted: list[Entry] = field(default_factory=list)
    cascades: set[RunningCascade] = field(default_factory=set)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)


class Recorder:
    """A queue, and a thread that empties it every `seconds` or `size` requests.

    What a batch could not write stays and is tried again under the same name. A full queue drops
    what comes next, and counts it: the service answers all the same.

    Args:
        cascades: by name.
        keep: of which rounds the texts are kept.
        size: of a batch.
        seconds: the flush interval. A batch begins after half of it, so that the other half is left
            for writing; an answer is held back while a round waits longer than all of it.
        away: whether answers leave while the store is away.
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
        away: StoreAway = "answer",
        room: int = 100_000,
    ) -> None:
        self._rounds = rounds
        self._cascades = cascades
        self._spending = spending
        self._keep = keep
        self._size, self._seconds, self._room = size, seconds, room
        self._queue: deque[Waiting] = deque()
        self._wake = threading.Event()
        self._idle = threading.Condition()
        self._busy = 0
        self._stopping = False
        self.dropped = 0
        self.errors = 0
        self.written = 0
        self.on_tick: Callable[[], None] = lambda: None
        self._oldest: float | None = None  # since when the batch waits that is being written
        self._answered = time.monotonic()  # when a batch was last written
        self.held = HeldAnswers(
            seconds, lambda: self.behind, lambda: self.silent, lambda: self.errors > 0, away
        )
        self._ended = threading.Event()
        # Two threads: a database that is slow to be read must not hold up what is to be written.
        self._thread = threading.Thread(target=self._work, name="stopwise-recorder", daemon=True)
        self._looking = threading.Thread(target=self._look, name="stopwise-looking", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()
        self._looking.start()

    @property
    def waiting(self) -> int:
        """How many requests are not written yet."""
        return len(self._queue) + self._busy

    @property
    def behind(self) -> float:
        """For how many seconds the oldest request waits to be written; 0 if none does."""
        oldest = self._oldest
        if oldest is None:
            try:
                oldest = self._queue[0][2]
            except IndexError:
                return 0.0
        return time.monotonic() - oldest

    @property
    def silent(self) -> float:
        """For how many of these seconds nothing was written."""
        return min(self.behind, time.monotonic() - self._answered)

    def put(self, finished: Finished) -> None:
        """Hand over a finished request; never blocks."""
        if len(self._queue) >= self._room:
            self.dropped += 1
            return
        self._put(finished, None)
        if len(self._queue) >= self._size:
            self._wake.set()

    def put_and_wait(self, finished: Finished) -> Future[None]:
        """The same at once; the future is done when it is written."""
        written: Future[None] = Future()
        self._put(finished, written)
        self._wake.set()
        return written

    def put_spent(self, name: str, who: str, cost: float) -> None:
        """Hand over what a request cost that no cascade answered; never blocks.

        Args:
            name: of what answered it.
            who: the id of the key.
        """
        sums = {"requests": 1.0, "spent": cost}
        if who:
            sums[f"{KEY}{who}"] = cost
        entry = Entry(
            uuid.uuid4().hex, name, "", "", time.time(), sums, counted=False,
            holder=self._spending.holder,
        )  # fmt: skip
        if len(self._queue) >= self._room:
            self.dropped += 1
            return
        self._put(entry, None)

    def _put(self, finished: Finished | Entry, written: Future[None] | None) -> None:
        for name, amount in _amounts(finished).items():
            self._spending.hold(name, amount)
        self._queue.append((finished, written, time.monotonic()))

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
        self._ended.set()
        for thread in (self._thread, self._looking):
            if thread.is_alive():
                thread.join(timeout)
        if self.waiting:
            LOG.error("requests not written", extra={"count": self.waiting})

    def _work(self) -> None:
        pending: _Batch | None = None
        cut = 0.0
        while True:
            if pending is None:
                # The time that the last batch took is part of the interval.
                self._wake.wait(max(0.0, cut + self._seconds / 2 - time.monotonic()))
                self._wake.clear()
                cut = time.monotonic()
                taken = [
                    self._queue.popleft() for _ in range(min(self._size * 4, len(self._queue)))
                ]
                self._busy = len(taken)
                if taken:
                    self._oldest = taken[0][2]
                    pending = self._count(taken)
            if pending is not None:
                try:
                    self._write(pending)
                except Exception as error:  # noqa: BLE001  # whatever a database raises
                    self.errors += 1
                    LOG.error("batch not written", extra={"error": type(error).__name__})
                    if self._stopping:
                        return
                    time.sleep(min(2.0, 0.2 * self.errors))
                    continue
                self.errors = 0
                self.written += len(pending.taken)
                for finished, written, _ in pending.taken:
                    self._spending.written(_amounts(finished), today(_began(finished)))
                    if written is not None and not written.done():
                        written.set_result(None)
                pending = None
                self._busy = 0
                self._oldest = None
                self._answered = time.monotonic()
                self.held.release()
            with self._idle:
                self._idle.notify_all()
            if self._stopping and not self._queue:
                return

    def _look(self) -> None:
        """Once a second: what other replicas spent, and what the service asked to be done."""
        while not self._ended.wait(1.0):
            try:
                self._spending.renew(lambda: self._rounds.spent_today(today()))
                self._spending.settle()
                self.on_tick()
            except Exception as error:  # noqa: BLE001  # tried again in a second
                LOG.warning("store not readable", extra={"error": type(error).__name__})

    def _count(self, taken: list[Waiting]) -> _Batch:
        """Compare and count requests; what is not a round is only to be written."""
        batch = _Batch(taken)
        for request, written, _ in taken:
            if isinstance(request, Entry):
                batch.uncounted.append(request)
                continue
            finished, cascade = request, self._cascades[request.decision.cascade]
            try:
                compared = cascade.compare(finished)
                if compared is not None:
                    finished = cascade.concluded(finished)
            except Exception as error:  # noqa: BLE001  # a user's comparator; the rest is kept
                self._drop(error)
                compared = None
            entry = self._entry(finished, compared)
            if compared is None:
                batch.uncounted.append(entry)
                continue
            try:
                cascade.count(finished, compared, entry)
                batch.cascades.add(cascade)
            except Exception as error:  # noqa: BLE001  # the queue of the evidence is full
                self._drop(error)
                if written is not None:
                    written.set_exception(StoreUnavailableError("the round cannot be counted now"))
        return batch

    def _write(self, batch: _Batch) -> None:
        """Each cascade's rounds in a transaction of their own, with the evidence they add to."""
        if batch.uncounted:
            self._rounds.write(batch.name, batch.uncounted)
        for cascade in batch.cascades:
            cascade.flush()

    def _drop(self, error: Exception) -> None:
        self.dropped += 1
        LOG.error("round not counted", extra={"error": f"{type(error).__name__}: {error}"})

    def _entry(self, finished: Finished, compared: ComparedAnswers | None) -> Entry:
        cascade = self._cascades[finished.decision.cascade]
        decision = finished.decision
        stage_count = len(cascade.config.stages)
        abstentions = cascade.config.abstentions
        complete = (
            compared is not None and len([c for c in compared.codes if c >= 0]) == stage_count
        )
        differ = compared is not None and any(
            differs for _, _, differs in compared.pairs(decision.depth, stage_count, abstentions)
        )
        kept = compared is not None and (
            self._keep == "all" or (self._keep == "disagreements" and differ)
        )
        return Entry(
            id=decision.id,
            cascade=decision.cascade,
            epoch=cascade.epoch,
            segment=decision.segment,
            at=decision.at,
            sums=sums_of(finished, compared, cascade.config.run_to, stage_count, abstentions),
            counted=compared is not None,
            differ=differ,
            complete=complete,
            form=row_form(finished, compared, stage_count),
            item=(finished.request, [call.shown for call in finished.calls]) if kept else None,
            ending=finished.ending,
            holder=self._spending.holder,
        )


def _amounts(finished: Finished | Entry) -> dict[str, float]:
    """What a request adds to the day's spending."""
    if isinstance(finished, Entry):
        return {name: value for name, value in finished.sums.items() if name.startswith(KEY)}
    amounts = {f"{COMPARISON}:{finished.decision.cascade}": finished.comparison_cost}
    if finished.who:
        amounts[f"{KEY}{finished.who}"] = finished.cost
    return amounts


def _began(finished: Finished | Entry) -> float:
    """The time of which a request is a row."""
    return finished.at if isinstance(finished, Entry) else finished.decision.at
