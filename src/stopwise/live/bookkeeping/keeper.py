"""Rounds on their way to a store and what others have added to it, as the bookkeeper sees it."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence

from stopwise.checks import fail
from stopwise.evidence import Evidence
from stopwise.live.choosing.budgets import Budgets
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Attached, Changes, Store, StoreError, Writing
from stopwise.live.stores.queueing.queue import RoundQueue
from stopwise.live.stores.queueing.status import StoreStatus
from stopwise.live.watching.drift import DriftAlarm, DriftWatch
from stopwise.situations.transitions import Transitions

_ACCEPTED = "a store, such as RoundLog(path), SqliteStore(path) or PostgresStore(address)"


class Keeper:
    """Hands rounds to the store, if there is one. The owner's lock is held unless stated.

    Args:
        store: where rounds are kept; None keeps none.
        hear: called in the store's thread with the alarms that were raised; it must not wait.

    Attributes:
        queue: the rounds on their way; None without a store.
        writer: the number of this learner among those that share the store; 0 where there is one.
        unrecorded, unrecorded_cost: rounds that could not even be queued, and what they cost.
        arrived: what the store's thread has to say: what is kept, and what others have added.
    """

    __slots__ = (
        "_hear", "_orphaned", "_parents", "arrived", "queue", "unrecorded", "unrecorded_cost",
        "writer",
    )  # fmt: skip

    def __init__(self, store: Store | None, hear: Callable[[Sequence[DriftAlarm]], None]) -> None:
        if store is not None and not isinstance(getattr(store, "writing", None), Writing):
            # Not what was given itself: an address may hold a password.
            raise fail("store", type(store), _ACCEPTED)
        self.writer = 0
        self.unrecorded = 0
        self.unrecorded_cost = 0.0
        self._hear = hear
        self.arrived: deque[tuple[int, Changes | None]] = deque()
        self._orphaned = False
        self._parents = 0  # rounds up to this sequence were begun before a fork
        self.queue = None if store is None else RoundQueue(store, self._absorb)

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        counters: SegmentCounters,
        watch: DriftWatch | None,
        budgets: Budgets,
        items: ItemDecider | None,
    ) -> None:
        """Fill the counters from the store and become one of its writers."""
        queue = self.queue
        assert queue is not None
        self._orphaned = False
        given = () if items is None else (items,)
        attached: Attached = queue.call(
            lambda: queue.store.attach(settings, seed, counters, watch, *given)
        )
        queue.own_store()
        if items is not None and hasattr(queue.store, "read_transitions"):
            weakly = weakref.ref(queue)  # the store has the items: it must not keep its queue alive
            items.share(lambda: _read_transitions(weakly))
        self.writer = attached.writer
        queue.last = queue.kept = counters.order = attached.kept
        if budgets.run_budget is not None:
            budgets.share(
                lambda *wanted: queue.call(lambda: budgets.receive(queue.store.grant(*wanted))),
                queue.store.grant_expired,
            )

    # ---- rounds ------------------------------------------------------------------------------

    def belongs_to_parent(self, sequence: int) -> bool:
        """Whether a round was begun before a fork: the parent process ends it itself."""
        return sequence <= self._parents

    def takes(self, sequence: int) -> bool:
        """Whether a round can be queued, and there is nothing to see to before."""
        queue = self.queue
        return (
            queue is not None and not self._orphaned and sequence > self._parents and queue.has_room
        )

    def refusal(self) -> StoreError | None:
        """Why a round cannot be queued; None where it can."""
        if self.queue is not None:
            try:
                self.queue.check_room()
            except StoreError as error:
                return error
        return None

    def keep_or_wake(self, place: int, wait: bool) -> None:
        """Wait until a round is kept, if that is promised; no lock is held."""
        queue = self.queue
        if queue is not None:
            if wait and queue.store.writing.durability == "round":
                queue.wait(place)
                return
            queue.wake()
            if wait:
                queue.catch_up(place)

    def wait_as_durable(self) -> None:
        """Wait for all rounds where durability is "round"; else until none of them is late."""
        queue = self.queue
        if queue is None:
            return
        if queue.store.writing.durability == "round":
            queue.flush()
        else:
            queue.catch_up(queue.last)

    async def kept(self, place: int) -> None:
        """The same without standing in the way of an event loop."""
        queue = self.queue
        if queue is not None and place:
            if queue.store.writing.durability == "round":
                await queue.wait_async(place)
            else:
                await queue.catch_up_async(place)

    # ---- what others have added --------------------------------------------------------------

    @property
    def orphaned(self) -> bool:
        """Whether this is a child process that is yet to attach again."""
        return self._orphaned

    def count_queued(self, counters: SegmentCounters, costs: Sequence[float]) -> bool:
        """Count rounds that were queued, take what others added; whether there was any of that.

        Args:
            counters: where they are counted.
            costs: of rounds that are pending there, by their last stage.
        """
        queue = self.queue
        if queue is None:
            return False
        if counters.order < queue.last and not counters.count_ordered(queue.last, costs):
            counters.count(queue.since(counters.order), order=queue.last)
        changed = False
        while self.arrived:
            kept, changes = self.arrived[0]
            if changes is not None:
                counters.take(changes.segments, queue.since(kept))
                counters.others = changes.others
                changed = True
            queue.drop(kept)
            self.arrived.popleft()
        return changed

    def _absorb(self, changes: Changes | None, alarms: Sequence[DriftAlarm]) -> None:
        """Note what is kept and what others have added, to be taken the next time it is needed.

        Called in the store's thread, which never waits for the lock.
        """
        assert self.queue is not None
        self.arrived.append((self.queue.kept, changes))
        self._hear(alarms)

    # ---- asked for by the user; no lock is held ----------------------------------------------

    def refresh(self) -> None:
        """Write what is queued and read what others have added to the store."""
        queue = self.queue
        assert queue is not None
        queue.flush()

        def read() -> None:
            changes = queue.store.refresh()
            if changes is not None:
                self._absorb(changes, ())

        queue.call(read)

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Keep evidence from elsewhere."""
        queue = self.queue
        if queue is not None:
            queue.call(lambda: queue.store.add_evidence(segment, evidence))

    def add_transitions(self, items: ItemDecider, counts: Transitions) -> None:
        """Add transitions from elsewhere, to the store first."""
        queue = self.queue
        if queue is None or not items.shared:
            items.check_merge(counts)
        if queue is not None:
            queue.call(lambda: queue.store.add_transitions(counts))
        if not items.shared:
            items.merge(counts)

    def status(self) -> StoreStatus:
        """How the store is doing."""
        queue = self.queue
        if queue is None:
            return StoreStatus(unrecorded=self.unrecorded)
        error = queue.last_error
        return StoreStatus(
            kept=queue.kept,
            queued=queue.last - queue.kept,
            failures=queue.failures,
            unrecorded=self.unrecorded,
            last_error=None if error is None else str(error),
        )

    def take_no_more(self) -> None:
        """Refuse rounds from now on: one that came later would not be written; the lock is held."""
        if self.queue is not None:
            self.queue.closing = True

    def close(self, budgets: Budgets) -> None:
        """Write what is queued, give back what was granted and not spent, let the store go."""
        queue = self.queue
        if queue is not None and not queue.closed:
            try:
                queue.flush()
                if budgets.shared:
                    # Summed up in the store's thread, after all that it was asked to grant.
                    queue.call(lambda: queue.store.give_back(budgets.unused()))
            finally:
                queue.close()

    # ---- forks -------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Hold the store still."""
        if self.queue is not None:
            self.queue.hold()

    def after_fork_in_parent(self) -> None:
        """Let go of what `before_fork` held."""
        if self.queue is not None:
            self.queue.let_go()

    def after_fork_in_child(self, begun: int, writer: int) -> None:
        """Become another writer; the parent ends the rounds that were begun until now."""
        self.arrived = deque()
        self._parents = begun
        self.writer = writer
        if self.queue is not None:
            self.queue.forked()
            self._orphaned = True


def _read_transitions(weakly: weakref.ref[RoundQueue]) -> Transitions | None:
    queue = weakly()
    if queue is None:
        return None
    queue.flush()
    read: Callable[[], Transitions | None] = getattr(queue.store, "read_transitions")  # noqa: B009
    found: Transitions | None = queue.call(read)
    return found
