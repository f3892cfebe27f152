"""The bookkeeper of a learner: opens rounds, ends them, has them counted."""

from __future__ import annotations

import sys

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Costs
from stopwise.evidence import ABSTAINED
from stopwise.live.bookkeeping.deciders import check_abstentions, item_decider
from stopwise.live.bookkeeping.funding import funded
from stopwise.live.bookkeeping.ledger import Ledger
from stopwise.live.bookkeeping.opener import Opener
from stopwise.live.bookkeeping.recording import RoundReader
from stopwise.live.calling.errors import describe, warn
from stopwise.live.choosing.prices import Prices
from stopwise.live.comparing.reader import NOT_COMPARED, Reader
from stopwise.live.counters.prefixes import Prefixes
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.interrupts import from_signal
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.pairs import Added, Billed
from stopwise.live.record import RoundOutcome, RoundRecord
from stopwise.live.round import BILLED, Round
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import StoreError
from stopwise.live.stores.queueing.queue import RoundQueue
from stopwise.policies.base import Policy
from stopwise.policies.per_item.any_rule import AnyRule
from stopwise.situations.transitions import Transitions

_LISTENING = 5.0
"""Seconds that closing waits for calls of `on_drift`."""
_ONE_THREAD_AT_A_TIME = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether other threads run only where signal handlers do: not in builds of Python without GIL."""


class Bookkeeper:
    """Opens and ends rounds. What a user reads, saves and loads is the learner's work.

    Args:
        settings: what decides and what counters mean.
        known: the costs as they were given.
        policy: from evidence to a distribution of depths.
        reader: compares outputs.
        seed: of the depths that are drawn.
        options: all further settings of a learner; see there.
        rule: a per-item rule to begin with.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        known: Costs,
        policy: Policy,
        reader: Reader,
        seed: int,
        options: LearnerKeywords,
        rule: AnyRule | None = None,
    ) -> None:
        self.settings = settings
        self.reader = reader
        self.stage_count = known.stage_count
        prices = Prices(settings, known)
        check_abstentions(settings, policy, reader)
        self.items = item_decider(
            policy, settings, prices, reader, rule, options.get("item_budget")
        )
        self.ledger = ledger = Ledger(settings, prices, policy, seed, options, self.items)
        if self.items is not None:
            self.items.promise_by(ledger.promise_counters)
        self.opener = Opener(self, ledger, self.items, self.settle)
        self._goes_on = (abstentions := settings.abstentions) == "go on"
        self.prefixes = Prefixes(known.cumulative, abstentions)
        self._recorder = RoundReader(reader, prices, self.items, settings.mode, abstentions)
        # A regular round has nothing to tell of but its outputs and costs. Where its cost is known
        # and it goes to no store it may end the short way, without the lock, if no watch is to see
        # its pairs now. It is sole where nothing but counters moves when it ends.
        kept = ledger.keeper.queue is not None
        self._limited = ledger.budgets.run_budget is not None
        self._regular = (
            self.items is None
            and reader.plain
            and ledger.counters.recorder is None
            and (abstentions == "leave out" or (settings.mode == "enforce" and not kept))
            and not settings.alone
            and not (kept and self._limited)
        )
        # Where costs are measured, or reported, each round has its own.
        self._measured = settings.measured
        self._bills = not kept and settings.mode == "enforce" and abstentions == "leave out"
        self._regular = self._regular and (self._bills or not self._measured)
        alone = self._regular and not (kept or self._measured)
        self.sole = alone and not self._limited
        self.watched = ledger.watch is not None
        self.short = alone and _ONE_THREAD_AT_A_TIME
        self.heard = ledger.listeners.on_round is not None

    @property
    def counters(self) -> SegmentCounters:
        """What has been counted."""
        return self.ledger.counters

    @property
    def queue(self) -> RoundQueue | None:
        """The rounds on their way to the store, if there is one."""
        return self.ledger.keeper.queue

    @property
    def writer(self) -> int:
        """The number of this learner among those that share the store."""
        return self.ledger.keeper.writer

    # ---- on the way --------------------------------------------------------------------------

    def stops(self, round: Round) -> bool:
        """Whether a round that is decided per item stops after the stages it has called."""
        if self.items is None:
            return False
        stage = self.items.next_stage(round)
        if stage is None or (stage > len(round.outputs) and not self._can_jump(round, stage)):
            round.depth = len(round.outputs) - 1
            return True
        round.skip_to(stage)
        return False

    def _can_jump(self, round: Round, stage: int) -> bool:
        """Whether a round whose stages are called alone may go on to a stage and can pay it."""
        prices = self.ledger.prices
        paid = prices.of_calls(round.costs, len(round.outputs), round.skipped)
        return stage <= round.depth and self.ledger.budgets.allows(paid, prices.per_stage[stage])

    def go_deeper(self, round: Round) -> bool:
        """Let a round call one stage more than was drawn, if there is one and it can be paid."""
        return funded(self.ledger, lambda: self._go_deeper(round))

    def _go_deeper(self, round: Round) -> bool:
        ledger = self.ledger
        with ledger.lock:
            self.settle()
            deeper = round.depth + 1
            if deeper >= self.stage_count or not self.can_pay(round):
                return False
            cost = ledger.prices.per_stage[deeper]
            if not ledger.budgets.has(cost, ledger.spent):
                return False
            ledger.budgets.reserve(round, cost)
            round.go_on()
            return True

    def goes_on(self, round: Round) -> bool:
        """Let a round at its depth call one stage more, if its last stage gave no answer.

        Only where that is what an abstention means, there is another stage, and it can be paid.
        """
        outputs = round.outputs
        if not self._goes_on or len(outputs) != round.depth + 1:
            return False
        silent = round.silent if round.silent is not None else self.reader.is_silent(outputs)
        round.silent = None
        return silent and self.go_deeper(round)

    def can_pay(self, round: Round) -> bool:
        """Whether the budget of the item has room for the next stage, at what it cost so far."""
        at, budgets, prices = len(round.outputs), self.ledger.budgets, self.ledger.prices
        if budgets.item_budget is None or at >= self.stage_count:
            return True
        paid = prices.of_calls(round.costs, at, round.skipped)
        return budgets.allows(paid, prices.per_stage[at])

    # ---- ending ------------------------------------------------------------------------------

    def finish(self, round: Round, abandoned: bool, wait: bool = True) -> RoundOutcome:
        """Count a round and give its answer; with a store, wait until it is kept if so wanted."""
        unusual = round.unusual
        if (
            self._regular
            and (not unusual or (unusual == BILLED and self._bills))
            and not (abandoned or round.outputs[-1] is ABSTAINED)
        ):
            queue = self.ledger.keeper.queue
            if queue is None:
                return self._finish_regular(round)
            if (queued := self._finish_queued(round, queue, wait)) is not None:
                return queued
        if round.ended:
            _refuse_twice(round)
        if self.items is not None:
            enforced = self.settings.mode == "enforce" and round.advised is None
            self.items.conclude(round, enforced=enforced)
        record, answer = self._recorder.read(round, self.ledger.keeper.writer, abandoned)
        outcome = RoundOutcome(answer, record.stage, record.cost)
        self._enter(round, record, outcome)
        self.ledger.listeners.tell_alarms()
        self.ledger.listeners.tell_round(record)
        self.ledger.keeper.keep_or_wake(round.place, wait)
        return outcome

    def _finish_regular(self, round: Round) -> RoundOutcome:
        """The same for a round of which there is nothing to say but its outputs and costs."""
        added, outcome = self.prefixes.read(round.outputs)
        ledger, renewed, release = self.ledger, None, 0.0
        with ledger.lock:
            counters, budgets, prices = ledger.counters, ledger.budgets, ledger.prices
            tally = counters.tallies.get(round.segment) or self._tally(round.segment)
            if self._measured or round.unusual:
                cost = prices.of_calls(round.costs, len(round.outputs))
                added = Billed(added, round.costs or (), cost)
                # What RoundOutcome(...) does, without the call of a function.
                outcome = tuple.__new__(RoundOutcome, (outcome[0], outcome[1], cost))
                renewed = prices.after(added.costs)
            # Where older rounds lose weight, or prices move, their order counts.
            ordered = added.pairs or counters.ordered or renewed is not None
            waiting = counters.pending if ordered else counters.quiet
            if self._limited:
                release = budgets.held_for(round)
            # Signal handlers, and threads that end rounds without this lock, run after calls: from
            # here to `append`, all of it is done, or none.
            if round.ended:
                _refuse_twice(round)
            if self._limited:
                held = budgets.held - release
                budgets.held = held if held > 0.0 else 0.0
                round.reserved = 0.0
                counters.pending_cost += outcome[2]
            if renewed is not None:
                prices.now = renewed
            round.ended_with = outcome
            round.__class__ = Round
            waiting.append((tally, added, round.advised))
            if self.watched and len(counters.pending) >= counters.unwatched:
                ledger.show_watch()
        if ledger.listeners.news:
            ledger.listeners.tell_alarms()
        if self.heard:
            self.tell(round, added, outcome)
        return outcome

    def tell(self, round: Round, added: Added, outcome: RoundOutcome) -> None:
        """Tell who listens that a regular round has ended; no lock is held."""
        record = self._recorder.read_regular(round, added, outcome.cost)
        self.ledger.listeners.tell_round(record)

    def _finish_queued(self, round: Round, queue: RoundQueue, wait: bool) -> RoundOutcome | None:
        """The same where it goes to a store, too; None where that needs more care."""
        added, outcome = self.prefixes.read(round.outputs)
        ledger = self.ledger
        record = self._recorder.read_regular(round, added, outcome.cost)
        with ledger.lock:
            if round.ended:
                _refuse_twice(round)
            if not ledger.keeper.takes(round.sequence):
                return None
            counters = ledger.counters
            tally = counters.tallies.get(round.segment) or self._tally(round.segment)
            ordered = added.pairs or counters.discount != 1.0
            waiting = counters.pending if ordered else counters.quiet
            record.writer = ledger.keeper.writer
            # Signal handlers run after calls: from here to the first `append`, all of it is done,
            # or none. Where one raises before the second, the numbers say that one is missing.
            round.record, round.ended_with = record, outcome
            round.__class__ = Round
            round.place = queue.last = queue.last + 1
            queue.rounds.append((round.place, record))
            waiting.append((tally, added, round.advised))
            if ledger.keeper.arrived:
                ledger.add_up()
        ledger.listeners.tell_alarms()
        ledger.listeners.tell_round(record)
        ledger.keeper.keep_or_wake(round.place, wait)
        return outcome

    def _enter(self, round: Round, record: RoundRecord, outcome: RoundOutcome) -> None:
        """Count a round and queue it for the store."""
        ledger = self.ledger
        budgets, keeper = ledger.budgets, ledger.keeper
        queue = keeper.queue
        with ledger.lock:
            if round.ended:
                _refuse_twice(round)
            if queue is not None or ledger.counters.has_pending:
                ledger.add_up()
            of_parent = queue is not None and keeper.belongs_to_parent(round.sequence)
            refusal = None if of_parent else keeper.refusal()
            if not of_parent and refusal is None:
                self._count_item(round, record)
            release = budgets.held_for(round)
            record.writer = keeper.writer
            # Signal handlers, and threads that end rounds without this lock, run after calls: from
            # here to `append`, all of it is done, or none.
            if round.ended:
                _refuse_twice(round)
            held = budgets.held - release
            budgets.held = held if held > 0.0 else 0.0
            round.reserved = 0.0
            round.record = record
            round.ended_with = outcome
            round.__class__ = Round
            if of_parent:
                return
            budgets.used += record.cost
            if refusal is not None:
                keeper.unrecorded += 1
                keeper.unrecorded_cost += record.cost
                raise refusal
            if queue is None:
                ledger.counters.records.append(record)
            else:
                round.place = queue.last = queue.last + 1
                queue.rounds.append((round.place, record))
            ledger.add_up()
            if queue is not None and (record.costs is not None or self._goes_on):
                ledger.prices.renew(ledger.counters.pool)

    def _count_item(self, round: Round, record: RoundRecord) -> None:
        """Count the situations of a round; before it is queued, for it may cut new bins."""
        if self.items is not None:
            self.items.count(round, record.item)

    async def kept(self, round: Round) -> None:
        """Wait, without standing in the way of an event loop, until a round is in the store."""
        await self.ledger.keeper.kept(round.place)

    def _tally(self, segment: str) -> Tally:
        """A segment that has no counters, as after `load` while a round was open."""
        self.settle()
        return self.ledger.counters.tally(segment)

    def add_transitions(self, counts: Transitions) -> None:
        """Add transitions from elsewhere."""
        if self.items is None:
            policy = self.ledger.chooser.policy.label()
            raise fail("policy", policy, "one that decides per item, where transitions are added")
        self.ledger.keeper.add_transitions(self.items, counts)

    def advised_cost(self, round: Round) -> float:
        """What a round would have cost if the advice had been followed."""
        return self._recorder.advised_cost(round)

    def advised_stage(self, round: Round) -> int:
        """The stage that would have answered if the advice had been followed."""
        assert round.advised is not None
        return self._recorder.reached(round.outputs, round.advised)

    # ---- rounds that nobody ends -------------------------------------------------------------

    def settle(self) -> None:
        """Add up what is pending and count what was dropped; the lock is held."""
        self.ledger.add_up()
        dropped, keeper = self.ledger.dropped, self.ledger.keeper
        if dropped:
            for round in list(dropped):
                # One stays there until it is counted: it comes there only once.
                if self._has_begun(round) and not keeper.belongs_to_parent(round.sequence):
                    self._finish_dropped(round)
                dropped.pop(round, None)

    def _has_begun(self, round: Round) -> bool:
        """Whether a round is to be ended: not where an interrupt came before `begin` returned."""
        made = round.was_made and (self.items is None or round.path is not None)
        return made and not round.ended

    def _finish_dropped(self, round: Round) -> None:
        """Count a round that nobody will end; nothing that goes wrong may fall on another."""
        try:
            try:
                self.finish(round, True, wait=False)
            except StoreError:
                raise
            except Exception as error:  # comparing failed: it has been paid all the same
                if from_signal(error):
                    raise
                round.compared = NOT_COMPARED
                round.unusual |= 1
                self.finish(round, True, wait=False)
        except Exception as error:
            if from_signal(error):
                raise  # it concerns the whole task; the round is counted the next time
            warn(f"a round that was forgotten could not be counted: {describe(error)}")
            round.__class__ = Round

    def close(self) -> None:
        """Count rounds that were dropped, write what is queued, let the store go."""
        ledger = self.ledger
        with ledger.lock:
            self.settle()
            ledger.keeper.take_no_more()
        try:
            ledger.keeper.close(ledger.budgets)
        finally:
            ledger.listeners.wait(_LISTENING)


def _refuse_twice(round: Round) -> None:
    raise StopwiseError(f"round {round.number} has ended already")
