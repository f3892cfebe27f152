"""The bookkeeper of a learner: opens rounds, ends them, counts them, under one lock."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import ABSTAINED, Evidence
from stopwise.live.calling.errors import describe, warn
from stopwise.live.choosing.budgets import Budgets
from stopwise.live.choosing.chooser import Chooser
from stopwise.live.choosing.draws import BITS, LOW_BITS
from stopwise.live.comparing.reader import NOT_COMPARED, Comparison, Reader
from stopwise.live.counters.carried import FastTs, can_carry, warm_up
from stopwise.live.counters.many import count_columns
from stopwise.live.counters.pairs import Added, added_by, compare_answers
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.forking import watch_forks
from stopwise.live.items.decider import ItemDecider
from stopwise.live.items.rules import AnyRule
from stopwise.live.record import RoundRecord, added_of, agreed
from stopwise.live.round import Round, RoundOutcome
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Attached, Changes, Store, StoreError
from stopwise.live.stores.queue import RoundQueue, StoreStatus
from stopwise.live.watching.drift import Drift, DriftAlarm, DriftWatch
from stopwise.policies.base import Policy
from stopwise.policies.per_item.situation import RowPolicy, SituationPolicy
from stopwise.problem import IntArray
from stopwise.situations.transitions import Transitions

LOG = logging.getLogger("stopwise.live")
OTHER = "other"
"""Where rounds are counted once there are `max_segments` segments."""

_PENDING = 256
_PREFIXES = 512
_SHORT_TEXT = 64


class Bookkeeper:
    """Opens and ends rounds. What a user reads, saves and loads is the learner's work."""

    def __init__(
        self,
        settings: LearnerSettings,
        known: Costs,
        policy: Policy,
        reader: Reader,
        *,
        seed: int,
        budgets: Budgets,
        drift: Drift | None,
        on_drift: Callable[[DriftAlarm], None] | None,
        on_round: Callable[[RoundRecord], None] | None,
        max_segments: int,
        store: Store | None,
        rule: AnyRule | None = None,
    ) -> None:
        self.settings = settings
        self.reader = reader
        self.seed = seed
        self.stage_count = known.stage_count
        self.alarms: list[DriftAlarm] = []
        self.lock = threading.RLock()
        self.forgotten: deque[Round] = deque()
        self.budgets = budgets
        self.writer = 0
        self.unrecorded = 0
        self.unrecorded_cost = 0.0
        self._max_segments = max_segments
        self._full = False
        self._known = known
        self._on_drift = on_drift
        self.watch = None if drift is None else DriftWatch(known.stage_count, drift)
        self._prefixes: dict[tuple[Any, ...], Added] = {}
        carries = can_carry(policy) and not settings.measured
        thresholds = known.thresholds.tolist()
        if carries:
            warm_up()
        else:
            # SciPy takes its time to load: now, not under the lock of the first round.
            with suppress(StopwiseError):
                policy.probabilities(Evidence(self.stage_count), 1, known)
        self.counters = SegmentCounters(
            self.stage_count,
            discount=settings.discount,
            strength=settings.segment_strength,
            recorder=policy if type(policy).record is not Policy.record else None,
            fast=(lambda: FastTs(policy, thresholds)) if carries else None,  # type: ignore[arg-type]
        )
        self.chooser = Chooser(policy, settings, seed)
        self._stage_costs = list(settings.costs)
        self.cumulative = list(known.cumulative)
        self._on_round = on_round
        self._news: deque[DriftAlarm] = deque()  # alarms that nobody was told of yet
        self._arrived: deque[tuple[int, Changes | None]] = deque()
        self._orphaned = False
        self._parents = 0  # rounds up to this sequence were begun before a fork
        self.queue: RoundQueue | None = None
        # Whether rounds may begin and end the short way: see there.
        self._direct = (
            settings.mode == "enforce" and not settings.full_run_rate and not budgets.limited
        )
        self._short = (
            reader.plain
            and store is None
            and drift is None
            and on_round is None
            and settings.half_life is None
            and not settings.measured
            and self.counters.recorder is None
        )
        self.items: ItemDecider | None = None
        if isinstance(policy, SituationPolicy):
            if settings.half_life is not None:
                raise fail(
                    "half_life", settings.half_life,
                    "None: transitions of a policy that decides per item do not lose weight",
                )  # fmt: skip
            self.costs = known
            self.items = ItemDecider(policy, settings.stages, lambda: self.costs, reader, rule)
            self._direct = self._short = False
        elif isinstance(policy, RowPolicy):
            raise fail(
                "policy", policy.label(),
                "another one: this one learns from whole rounds, in a log (stopwise replay, fit);"
                " live, per-item does the same",
            )  # fmt: skip
        elif rule is not None:
            raise fail("policy", policy.label(), "one that decides per item, where a rule is given")
        if store is not None:
            self.queue = RoundQueue(store, self._absorb)
            try:
                self._attach()
            except BaseException:
                self.queue.stop()
                raise
        watch_forks(self)
        self.renew_costs()

    def _attach(self) -> None:
        """Fill the counters from the store and become one of its writers."""
        queue, counters = self.queue, self.counters
        assert queue is not None
        items = () if self.items is None else (self.items,)
        attached: Attached = queue.call(
            lambda: queue.store.attach(self.settings, self.seed, counters, self.watch, *items)
        )
        read = getattr(queue.store, "read_transitions", None)
        if self.items is not None and read is not None:
            self.items.share(lambda: self._read_transitions(queue, read))
        self.writer = attached.writer
        queue.last = queue.kept = counters.order = attached.kept
        if self.budgets.run_budget is not None:
            self.budgets.share(
                lambda least, most, all_: queue.call(lambda: queue.store.grant(least, most, all_))
            )
        self.chooser.reseed(self.seed, self.writer)

    def replace(self, counters: SegmentCounters, watch: DriftWatch | None, seed: int) -> None:
        """Go on from other counters, all at once."""
        chooser = Chooser(self.chooser.policy, self.settings, seed)
        self.counters, self.watch, self.seed, self.chooser = counters, watch, seed, chooser
        self.renew_costs()

    # ---- beginning ---------------------------------------------------------------------------

    def begin(self, segment: str = "") -> Round:
        """Open a round: its depth is drawn now, from all rounds that have ended so far."""
        with self.lock:
            if self.forgotten:
                self.settle()
            counters = self.counters
            tally = counters.tallies.get(segment)
            if tally is None:
                self.settle()
                segment = self._place(segment)
                tally = counters.tally(segment)
            fast = tally.fast
            sequence = counters.begun + 1
            if fast is None or not fast.sure or not self._direct:
                return self._begin_with_care(segment, sequence)
            counters.begun = sequence
            # The short way: nothing stands between the carried distribution and the draw, and no
            # function is called for what two lines do.
            p, sums = fast.current or fast.renew()
            draws = self.chooser.draws
            if sequence >> BITS != draws.at:
                draws.turn_to(sequence)
            u = draws.block[sequence & LOW_BITS] * sums[-1]
            depth = 0
            for total in sums:
                if u < total:
                    break
                depth += 1
            else:
                depth = self.stage_count - 1
            return Round(self, sequence, counters.others + sequence, segment, depth, p[depth])

    @property
    def spent(self) -> float:
        """The cost of all rounds, also of those that could not be recorded."""
        return self.counters.pool.spent + self.unrecorded_cost

    def _place(self, segment: str) -> str:
        """The segment itself, or "other" where there are too many."""
        tallies = self.counters.tallies
        if segment in tallies or len(tallies) < self._max_segments:
            return segment
        if not self._full:
            self._full = True
            LOG.warning(
                "there are %d segments (max_segments): new ones are counted together, as %r",
                len(tallies), OTHER,
            )  # fmt: skip
        return OTHER

    def _begin_with_care(self, segment: str, sequence: int) -> Round:
        """The same, with budgets, modes, full runs, lent evidence or another policy."""
        self.settle()
        counters, settings = self.counters, self.settings
        number = counters.others + sequence
        tally = counters.tally(segment)
        if tally.fast is not None and not tally.fast.sure:
            tally.renew_fast()
        deepest = self.budgets.deepest(self.cumulative, self.spent)
        if self.items is not None:
            return self._begin_looking(self.items, segment, sequence, deepest)
        depth, probability = self.chooser.draw(
            counters, tally, number, sequence, self.costs, deepest
        )
        counters.begun = sequence
        if settings.mode == "enforce":
            round = Round(self, sequence, number, segment, depth, probability)
        else:
            run_to = min(settings.run_to, deepest)
            round = Round(self, sequence, number, segment, run_to, 1.0)
            round.advised, round.advised_probability = depth, probability
            round.unusual = True
        if self.budgets.limited:
            self.budgets.reserve(round, self.cumulative[round.depth])
        return round

    def _begin_looking(
        self, items: ItemDecider, segment: str, sequence: int, deepest: int
    ) -> Round:
        """A round that is decided after each stage: it may go as deep as can be paid."""
        counters, settings = self.counters, self.settings
        counters.begun = sequence
        run_to = deepest if settings.mode == "enforce" else min(settings.run_to, deepest)
        round = Round(self, sequence, counters.others + sequence, segment, run_to, 1.0)
        round.unusual = True
        items.begin(round, self.chooser.draws.uniform(sequence), settings.full_run_rate)
        if settings.mode != "enforce":
            round.looks = False
            round.advised, round.advised_probability = run_to, 1.0
        if self.budgets.limited:
            self.budgets.reserve(round, self.cumulative[round.depth])
        return round

    def begin_knowing(self, segment: str, features: Mapping[str, Any]) -> Round:
        """Open a round on an item of which something is known beforehand."""
        if self.items is None:
            policy = self.chooser.policy.label()
            raise fail("policy", policy, "one that decides per item, where features are given")
        round = self.begin(segment)
        try:
            self.items.know(round, features)
        except BaseException:
            round.abandon()
            raise
        return round

    def stops(self, round: Round) -> bool:
        """Whether a round that is decided per item stops after the stages it has called."""
        if self.items is None or not self.items.stops(round):
            return False
        round.depth = len(round.outputs) - 1
        return True

    # ---- ending ------------------------------------------------------------------------------

    def finish(self, round: Round, abandoned: bool, wait: bool = True) -> RoundOutcome:
        """Count a round and give its answer; with a store, wait until it is kept if so wanted."""
        outputs = round.outputs
        if self._short and not (abandoned or round.unusual or outputs[-1] is ABSTAINED):
            # The short way for most rounds, with the same result (a test compares them).
            with self.lock:
                if round.ended:
                    self._refuse_twice(round)
                tally = self.counters.tallies.get(round.segment) or self._tally(round.segment)
                try:
                    added = self._prefixes[tuple(outputs)]
                except (KeyError, TypeError):
                    added = self._new_prefix(outputs)
                stage = round.stage = added.last
                cost = round.cost = self.cumulative[stage]
                pending, fast = self.counters.pending, tally.fast
                if fast is not None and added.pairs:
                    fast.sure = False
                    round.ended = True
                    pending.append((tally, added))
                    fast.move(added.pairs)
                    fast.sure = True
                else:
                    round.ended = True
                    pending.append((tally, added))
                if len(pending) >= _PENDING:
                    self._add_up()
                return tuple.__new__(RoundOutcome, (outputs[-1], stage, cost))
        if round.ended:
            self._refuse_twice(round)
        if self.items is not None:
            self.items.conclude(round, enforced=self.settings.mode == "enforce")
        record, answer = self._read(round, abandoned)
        self._enter(round, record, wait)
        return RoundOutcome(answer, record.stage, record.cost)

    def _enter(self, round: Round, record: RoundRecord, wait: bool) -> None:
        """Count a round and hand it to the store; wait outside the lock until it is kept."""
        queue = self.queue
        with self.lock:
            if round.ended:
                self._refuse_twice(round)
            self._add_up()
            self.budgets.release(round)
            self.budgets.paid(record.cost)
            round.record, round.stage, round.cost = record, record.stage, record.cost
            if queue is None:
                # Signal handlers run after calls: a round that has ended is pending.
                round.ended = True
                self.counters.pending.append(record)
                self._count_item(round, record)
            elif round.sequence <= self._parents:
                round.ended = True  # it belongs to the parent process, which ends it itself
                return
            else:
                record.writer = self.writer
                try:
                    queue.check_room()
                except StoreError:
                    round.ended = True
                    self.unrecorded += 1
                    self.unrecorded_cost += record.cost
                    raise
                self._count_item(round, record)
                round.ended = True
                queue.last += 1
                queue.rounds.append(record)
                round.place = queue.last
            self._add_up()
            if record.costs is not None and self.settings.measured:
                self.renew_costs()
        self.tell_news()
        if self._on_round is not None:
            self._call_listener("on_round", self._on_round, record)
        if queue is not None:
            if wait and queue.store.writing.durability == "round":
                queue.wait(round.place)
            else:
                queue.wake()

    def _count_item(self, round: Round, record: RoundRecord) -> None:
        """Count the situations of a round, once; before it is queued, for it may cut new bins."""
        if self.items is not None and not round.counted:
            round.counted = True
            self.items.count(record.item)

    async def kept(self, round: Round) -> None:
        """Wait, without standing in the way of an event loop, until a round is in the store."""
        queue = self.queue
        if queue is not None and round.place and queue.store.writing.durability == "round":
            await queue.wait_async(round.place)

    @staticmethod
    def _refuse_twice(round: Round) -> None:
        raise StopwiseError(f"round {round.number} has ended already")

    def _tally(self, segment: str) -> Tally:
        """A segment that has no counters, as after `load` while a round was open."""
        self.settle()
        return self.counters.tally(segment)

    def _new_prefix(self, outputs: list[Any]) -> Added:
        """What a prefix adds. Few different short ones come again and again, so they are kept."""
        added = added_by(*compare_answers(outputs, None))
        if all(
            output is None
            or type(output) in (bool, int, float)
            or (type(output) is str and len(output) <= _SHORT_TEXT)
            for output in outputs
        ):
            if len(self._prefixes) >= _PREFIXES:
                self._prefixes.clear()
            self._prefixes[tuple(outputs)] = added
        return added

    def _read(self, round: Round, abandoned: bool) -> tuple[RoundRecord, Any]:
        """What happened in a round, and its answer. Comparing may take long: no lock is held."""
        record = self._record(round, abandoned)
        outputs, reader, stage = round.outputs, self.reader, record.stage
        answer: Any = None
        if stage is not None:
            answer = outputs[stage] if reader.plain else reader.after(outputs, stage)[0]
        compared = round.compared
        if compared is None:
            compared = (
                reader.compare(outputs) if record.called > 1 else Comparison(int(stage == 0), 0)
            )
            round.compared = compared
        record.cost += compared.cost
        record.answered, record.disagreed = compared.answered, compared.disagreed
        record.undecided = compared.undecided
        if round.path is not None and not round.full_run:
            # It went on because of its outputs: counted as pairs, they would bias the counters.
            record.answered = 0 if stage is None else 1 << stage
            record.disagreed = record.undecided = 0
        if self.items is not None:
            record.item = self.items.row_of(round, enforced=self.settings.mode == "enforce")
        if round.advised is not None:
            self._note_advice(record)
        return record, answer

    def _record(self, round: Round, abandoned: bool) -> RoundRecord:
        """What happened in a round, but for what its answers say of each other."""
        outputs, called = round.outputs, len(round.outputs)
        if round.costs is None:
            cost = self.cumulative[called - 1] if called else 0.0
        else:
            cost = self._actual_cost(round, called)
        usable = called if round.answer_from is None else round.answer_from
        said = (at for at in range(usable - 1, -1, -1) if outputs[at] is not ABSTAINED)
        return RoundRecord(
            number=round.number,
            writer=self.writer,
            sequence=round.sequence,
            segment=round.segment,
            depth=round.depth if round.drawn_depth is None else round.drawn_depth,
            probability=round.probability,
            stage=next(said, None),
            called=called,
            answered=0,
            disagreed=0,
            failed=round.failed,
            costs=round.costs,
            cost=cost,
            abandoned=abandoned,
            advised=round.advised,
            outputs=outputs,
            confidences=round.confidences,
        )

    def _actual_cost(self, round: Round, called: int) -> float:
        costs = list(round.costs or ())
        costs += [None] * (called - len(costs))
        return sum(
            known if actual is None else actual
            for known, actual in zip(self._stage_costs, costs, strict=False)
        )

    def _note_advice(self, record: RoundRecord) -> None:
        costs, advised = record.costs or [], record.advised
        assert advised is not None
        record.advised_cost = sum(
            costs[at] if at < len(costs) and costs[at] is not None else self._stage_costs[at]  # type: ignore[misc]
            for at in range(advised + 1)
        )
        spoke = [at for at, one in enumerate(record.outputs or ()) if one is not ABSTAINED]
        early = max((at for at in spoke if at <= advised), default=None)
        if record.stage is not None and early is not None and record.called > advised:
            record.advised_same = agreed(record, early, record.stage)

    def settle(self) -> None:
        """Add up what is pending; everything but the short ways of begin and end does so first."""
        self._add_up()
        while self.forgotten:
            round = self.forgotten[0]
            if not round.ended:
                self._finish_forgotten(round)
            self.forgotten.popleft()

    def _finish_forgotten(self, round: Round) -> None:
        """Count a round that nobody will end; nothing that goes wrong may fall on another."""
        try:
            try:
                self.finish(round, True, wait=False)  # the lock is held
            except StoreError:
                raise
            except Exception:  # noqa: BLE001  # comparing failed: it has been paid all the same
                round.compared = NOT_COMPARED
                round.unusual = True
                self.finish(round, True, wait=False)
        except Exception as error:  # noqa: BLE001
            warn(f"a round that was forgotten could not be counted: {describe(error)}")
            round.ended = True

    def _add_up(self) -> None:
        """Count all rounds that have ended, after an interrupt too."""
        counters, queue = self.counters, self.queue
        if self._orphaned:
            self._orphaned = False
            self._attach()
        counters.settle()
        if counters.pending:
            for record in counters.count_pending(self.cumulative):
                self._observe(record)
        elif queue is not None:
            if counters.order < queue.last:
                counters.count(queue.since(counters.order), order=queue.last)
            while self._arrived:
                kept, changes = self._arrived[0]
                if changes is not None:
                    counters.take(changes.segments, queue.since(kept))
                    counters.others = changes.others
                    self.renew_costs()
                queue.drop(kept)
                self._arrived.popleft()

    # ---- the store ---------------------------------------------------------------------------

    def _absorb(self, changes: Changes | None, alarms: Sequence[DriftAlarm]) -> None:
        """Note what is kept and what others have added, to be taken the next time it is needed.

        Called in the store's thread, which never waits for the lock.
        """
        assert self.queue is not None
        self._arrived.append((self.queue.kept, changes))
        self._news.extend(alarms)
        self.tell_news()

    def refresh(self) -> None:
        """Write what is queued and read what others have added to the store."""
        queue = self.queue
        if queue is None:
            return
        queue.flush()

        def read() -> None:
            changes = queue.store.refresh()
            if changes is not None:
                self._absorb(changes, ())

        queue.call(read)
        with self.lock:
            self._add_up()

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere, to the store first."""
        with self.lock:
            self.settle()
            segment = self._place(segment)
            self.counters.check_evidence(evidence)
        queue = self.queue
        if queue is not None:
            queue.call(lambda: queue.store.add_evidence(segment, evidence))
        with self.lock:
            self.counters.add_evidence(segment, evidence)

    def add_transitions(self, counts: Transitions) -> None:
        """Add transitions from elsewhere, to the store first."""
        items, queue = self.items, self.queue
        if items is None:
            policy = self.chooser.policy.label()
            raise fail("policy", policy, "one that decides per item, where transitions are added")
        if queue is None or not items.shared:
            items.check_merge(counts)
        if queue is not None:
            queue.call(lambda: queue.store.add_transitions(counts))
        if not items.shared:
            items.merge(counts)

    @staticmethod
    def _read_transitions(
        queue: RoundQueue, read: Callable[[], Transitions | None]
    ) -> Transitions | None:
        queue.flush()
        found: Transitions | None = queue.call(read)
        return found

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

    def close(self) -> None:
        """Count rounds that were forgotten, write what is queued, let the store go."""
        with self.lock:
            self.settle()
        queue = self.queue
        if queue is not None and not queue.closed:
            try:
                queue.flush()
                left = self.budgets.unused()
                if left > 0:
                    queue.call(lambda: queue.store.give_back(left))
            finally:
                queue.close()

    # ---- forks -------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Hold lock and store still, so that the child is not left with a half-made change."""
        self._held = self.lock.acquire(timeout=1.0)
        if self.queue is not None:
            self.queue.hold()

    def after_fork_in_parent(self) -> None:
        """Let go of what `before_fork` held."""
        if self.queue is not None:
            self.queue.let_go()
        if self._held:
            self.lock.release()

    def after_fork_in_child(self) -> None:
        """Become another writer with a random stream of its own, and new locks."""
        self.lock = threading.RLock()
        self.forgotten = deque()
        self._news = deque()
        self._arrived = deque()
        self._parents = self.counters.begun
        self.writer = 1 + secrets.randbelow(2**31)
        self.chooser.reseed(self.seed, self.writer)
        if self.queue is not None:
            self.queue.forked()
            self.counters.order = 0
            self._orphaned = True
            self._direct = False  # so that the next round meets `_add_up`, which attaches again

    # ---- going deeper ------------------------------------------------------------------------

    def go_deeper(self, round: Round) -> bool:
        """Let a round call one stage more than was drawn, if there is one and it can be paid."""
        with self.lock:
            self.settle()
            at = len(round.outputs)
            if at >= self.stage_count or not self.can_pay(round):
                return False
            cost = self._stage_costs[at]
            if not self.budgets.has(cost, self.spent):
                return False
            self.budgets.reserve(round, cost)
            round.go_on()
            return True

    def can_pay(self, round: Round) -> bool:
        """Whether the budget of the item has room for the next stage, at what it cost so far."""
        at = len(round.outputs)
        if self.budgets.item_budget is None or at >= self.stage_count:
            return True
        so_far = self.cumulative[at - 1] if at else 0.0
        if round.costs is not None:
            so_far = self._actual_cost(round, at)
        return self.budgets.allows(so_far, self._stage_costs[at])

    # ---- many rounds at once, as columns -----------------------------------------------------

    @property
    def in_columns(self) -> bool:
        """Whether many rounds can be counted at once: nothing about them but outputs and depth."""
        return self._short and self._direct

    def begin_many(self, size: int, segment: str) -> tuple[int, int, IntArray, list[float]]:
        """Begin rounds together: first sequence and number, their depths, their distribution."""
        with self.lock:
            self.settle()
            counters = self.counters
            tally = counters.tally(self._place(segment))
            if tally.fast is not None and not tally.fast.sure:
                tally.renew_fast()
            first = counters.begun + 1
            number = counters.others + first
            depths, p = self.chooser.draw_many(
                counters, tally, number, first, self.costs, self.stage_count - 1, size
            )
            counters.begun += size
            return first, number, depths, p

    def end_many(self, segment: str, depths: IntArray, codes: IntArray) -> FloatArray:
        """Count rounds that all went to their depths; return what each cost.

        Args:
            segment: whose evidence they add to.
            depths: of every round.
            codes: their outputs, coded; see `count_columns`.
        """
        delta = count_columns(self.stage_count, depths, codes)
        costs = np.asarray(self.cumulative)[depths]
        delta.values[delta.layout.spent] = float(costs.sum())
        with self.lock:
            self.settle()
            self.counters.add(self._place(segment), delta)
        return costs

    # ---- costs and alarms --------------------------------------------------------------------

    def renew_costs(self) -> None:
        """Take the costs that the rule uses from what calls have cost so far."""
        if not self.settings.measured:
            self.costs = self._known
            return
        pool, at = self.counters.pool, self.counters.pool.layout
        sums, numbers = pool.of_stages(at.cost_sums), pool.of_stages(at.cost_counts)
        means = [
            (given + total) / (1 + calls)
            for given, total, calls in zip(self.settings.costs, sums, numbers, strict=True)
        ]
        self.costs = Costs.from_stages(means, self.settings.mistake_cost)
        self._stage_costs = means
        self.cumulative = list(self.costs.cumulative)

    def _observe(self, record: RoundRecord) -> None:
        if self.watch is not None:
            self._news.extend(self.watch.observe(record.segment, added_of(record).pairs))

    def tell_news(self) -> None:
        """Tell the listener of alarms, outside the lock."""
        while self._news:
            alarm = self._news.popleft()
            self.alarms.append(alarm)
            LOG.info("drift: %s", alarm)
            if self._on_drift is not None:
                self._call_listener("on_drift", self._on_drift, alarm)

    @staticmethod
    def _call_listener(name: str, listener: Callable[[Any], None], news: object) -> None:
        try:
            listener(news)
        except Exception as error:  # noqa: BLE001  # a listener must not cost an answer
            warn(f"{name} raised {describe(error)}")
