"""The ledger of a learner: what has been counted, at which prices, for whom; under one lock."""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress

from stopwise.checks import StopwiseError, whole_number
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live.bookkeeping.keeper import Keeper
from stopwise.live.bookkeeping.listeners import Listeners
from stopwise.live.choosing.budgets import Budgets
from stopwise.live.choosing.chooser import Chooser
from stopwise.live.choosing.from_counts import FromCounts
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.choosing.prices import Prices
from stopwise.live.counters.distributions.carried import Limits
from stopwise.live.counters.distributions.carrying import carrier
from stopwise.live.counters.distributions.pair_test import warm_up
from stopwise.live.counters.distributions.recounted import CountRule
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.forking import watch_forks
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.pairs import Added
from stopwise.live.round import dropped_rounds
from stopwise.live.settings import LearnerSettings
from stopwise.live.watching.drift import DriftWatch
from stopwise.policies.base import Policy

_FEW = 8  # segments, whose bets are asked when they are to be looked at


class Ledger:
    """What beginning and ending rounds share.

    Args:
        settings: what decides and what counters mean.
        prices: what stages cost; at first, as it was given.
        policy: from evidence to a distribution of depths.
        seed: of the depths that are drawn.
        options: all further settings of a learner; see there.
        items: what decides per item, if the policy does.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        prices: Prices,
        policy: Policy,
        seed: int,
        options: LearnerKeywords,
        items: ItemDecider | None,
    ) -> None:
        known = prices.costs
        drift = options.get("drift")
        self.settings = settings
        self.seed = seed
        self.lock = threading.RLock()
        self.prices = prices
        self._items = items
        self.budgets = Budgets(options.get("item_budget"), options.get("run_budget"))
        self.listeners = Listeners(options.get("on_round"), options.get("on_drift"))
        self.watch = None if drift is None else DriftWatch(known.stage_count, drift)
        self.chooser = Chooser(policy, settings, seed)
        most = whole_number("max_segments", options.get("max_segments", 10_000), least=1)
        # Called alone, full runs are no deep rounds: they are drawn apart.
        rate = 0.0 if settings.alone else settings.full_run_rate
        limits: Limits | None = Limits(rate, self.budgets.item_limit(known.cumulative))
        if limits == Limits():
            limits = None
        # Where rounds go on after an abstention, what stopping at a stage costs is learned too.
        fixed = not settings.measured and settings.abstentions != "go on"
        fast = carrier(policy, known, limits) if fixed else None
        # Measured prices are renewed as rounds end, others only as rounds are added up; and what
        # the budget of an item pays for moves with prices. Both are seen to with care.
        renewed = settings.abstentions != "go on" and self.budgets.item_budget is None
        rule = FromCounts.of(policy, known.stage_count) if fixed or renewed else None
        # SciPy takes its time to load: now, not under the lock of the first round.
        if fast is not None or rule is not None:
            warm_up()
        else:
            _ask_once(policy, known)
        self.counters = SegmentCounters(
            known.stage_count,
            discount=settings.discount,
            strength=settings.segment_strength,
            recorder=policy if type(policy).record is not Policy.record else None,
            fast=fast,
            from_counts=None
            if rule is None
            else CountRule(rule, lambda: prices.now.thresholds, limits, fixed),
            most=most,
            abstentions=settings.abstentions,
        )
        self.direct = True  # whether rounds may begin the short ways; see `Opener`
        self.dropped, self.round_class = dropped_rounds()
        self.keeper = Keeper(options.get("store"), self.listeners.hear)
        if self.keeper.queue is not None:
            try:
                self._attach()
            except BaseException:
                self.keeper.queue.stop()
                raise
        watch_forks(self)
        self.prices.renew(self.counters.pool)

    def _attach(self) -> None:
        self.keeper.attach(
            self.settings, self.seed, self.counters, self.watch, self.budgets, self._items
        )
        self.chooser.reseed(self.seed, self.keeper.writer)

    def replace(self, counters: SegmentCounters, watch: DriftWatch | None, seed: int) -> None:
        """Go on from other counters, all at once."""
        chooser = Chooser(self.chooser.policy, self.settings, seed)
        self.counters, self.watch, self.seed, self.chooser = counters, watch, seed, chooser
        self.prices.renew(counters.pool)

    @property
    def spent(self) -> float:
        """The cost of all rounds that have ended, also of those that could not be recorded."""
        return self.counters.pool.spent + self.keeper.unrecorded_cost + self.counters.pending_cost

    def promise_counters(self) -> Sequence[int]:
        """How a promise of agreement stands, by all who share the store."""
        pool = self.counters.pool
        return pool.values[pool.layout.promise : pool.layout.beyond]

    # ---- counting; the lock is held ----------------------------------------------------------

    def add_up(self) -> None:
        """Count all rounds that have ended, after an interrupt too."""
        counters, watch = self.counters, self.watch
        if self.keeper.orphaned:
            self._attach()
        counters.settle()
        if self.keeper.queue is not None:
            if self.keeper.count_queued(counters, self.prices.cumulative):
                self.prices.renew(counters.pool)
        elif counters.has_pending:
            self.show_watch()
            records = counters.count_pending(self.prices.cumulative)
            if watch is not None:
                for record in records:
                    self.listeners.note(watch.observe(record.segment, counters.adds(record).pairs))
            self.prices.renew(counters.pool)
        counters.renew_lent()

    def show_watch(self) -> None:
        """Show the watch for drift, if there is one, the rounds that have ended."""
        watch, counters = self.watch, self.counters
        if watch is None:
            return
        pending, seen = counters.pending, counters.watched
        # First taken, then counted: an interrupt may lose some, and never counts any twice.
        counters.watched = len(pending)
        new = pending[seen : counters.watched]
        segments = counters.tallies
        if len(segments) == 1:
            (segment,) = segments
            self.listeners.note(
                watch.observe_added(segment, [added for _, added, _ in new if added.pairs])
            )
            room = watch.room(segment)
        else:
            rounds: defaultdict[str, list[Added]] = defaultdict(list)
            for tally, added, _ in new:
                if added.pairs:
                    rounds[tally.segment].append(added)
            for segment, ended in rounds.items():
                self.listeners.note(watch.observe_added(segment, ended))
            room = min(map(watch.room, segments)) if len(segments) <= _FEW else 1
        counters.unwatched = counters.watched + room

    # ---- asked for by the user ---------------------------------------------------------------

    def refresh(self) -> None:
        """Write what is queued and read what others have added to the store."""
        if self.keeper.queue is not None:
            self.keeper.refresh()
            with self.lock:
                self.add_up()

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere, to the store first."""
        with self.lock:
            self.add_up()
            segment = self.counters.place(segment)
            self.counters.check_evidence(evidence)
        self.keeper.add_evidence(segment, evidence)
        with self.lock:
            self.counters.add_evidence(segment, evidence)

    # ---- forks -------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Hold lock and store still, so that the child is not left with a half-made change."""
        self._held = self.lock.acquire(timeout=1.0)
        try:
            if self._held and not self.keeper.orphaned:
                self.add_up()  # rounds on their way into the counters are this process's
        finally:
            self.keeper.before_fork()

    def after_fork_in_parent(self) -> None:
        """Let go of what `before_fork` held."""
        try:
            self.keeper.after_fork_in_parent()
        finally:
            if self._held:
                self.lock.release()

    def after_fork_in_child(self) -> None:
        """Become another writer with a random stream of its own, and new locks."""
        self.lock = threading.RLock()
        self.listeners.news = deque()
        # Rounds that were begun until now are the parent's: it counts and pays them.
        self.dropped.clear()
        self.budgets.after_fork_in_child(self.counters.begun)
        writer = 1 + secrets.randbelow(2**31)
        self.keeper.after_fork_in_child(self.counters.begun, writer)
        self.chooser.reseed(self.seed, writer)
        if self.keeper.queue is not None:
            self.counters.order = 0
            self.direct = False  # so that the next round meets `add_up`, which attaches again


def _ask_once(policy: Policy, known: Costs) -> None:
    """Let a policy load what it needs: some need it only once there is evidence."""
    evidence = Evidence(known.stage_count)
    with suppress(StopwiseError):
        policy.probabilities(evidence, 1, known)
        for prefix in ([0] * known.stage_count, list(range(known.stage_count))):
            evidence.add(prefix)
        policy.probabilities(evidence, 3, known)
