"""Decides live rounds per item; says what is to be counted of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Costs
from stopwise.live.choosing.promise_events import promise_events
from stopwise.live.comparing.reader import Reader
from stopwise.live.items.counting import copy_of
from stopwise.live.items.features import SEGMENT, check_cells, check_names, features_of
from stopwise.live.items.memory import ItemMemory
from stopwise.live.items.path import Deciding, ItemPath, stop_probability
from stopwise.live.items.promise import LiveGuard, next_price, standing
from stopwise.live.items.regressing import known_so_far
from stopwise.live.items.row import Features, ItemRow, checked_features
from stopwise.live.items.shared import ItemState
from stopwise.live.pairs import added_by, pair_list
from stopwise.live.record import RoundRecord
from stopwise.live.round import Round
from stopwise.policies.per_item.agreement_guard import AgreementGuard
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.promised import promised_rule
from stopwise.policies.per_item.rule import Rule, RuleDecision
from stopwise.policies.per_item.situation import SituationPolicy, StoppingRule
from stopwise.situations.binning import Binning
from stopwise.situations.observations import MOST_STAGES
from stopwise.situations.transitions import Transitions


class ItemDecider:
    """Asked after each stage whether to stop there. Safe to use from many threads.

    What it decides by is replaced as a whole. It comes from its own memory; or, where rounds are
    kept in a database that others may share, from there (`take`).

    Args:
        policy: makes rules from what is counted, and says how often full runs are made.
        stages: their names.
        costs: what stages and mistakes cost, asked for whenever a rule is made.
        reader: compares outputs.
        rule: one to begin with, fitted on a log; its bins are kept, its counts are added to. One of
            regressions decides as it was fitted, whatever is counted.
        promise: of agreement, where one is made.
    """

    whole = False
    """Whether only full runs are counted, as whole rows."""

    def __init__(
        self,
        policy: SituationPolicy,
        stages: tuple[str, ...],
        costs: Callable[[], Costs],
        reader: Reader,
        rule: Rule | LogisticRule | None = None,
        promise: AgreementGuard | None = None,
    ) -> None:
        if len(stages) > MOST_STAGES:
            raise fail("stages", len(stages), f"at most {MOST_STAGES} for a per-item policy")
        if reader.takes_time:
            raise StopwiseError(
                f"policy {policy.name}: got a comparator that takes its time, but need one that"
                " answers at once: it is asked after every stage"
            )
        self.policy = policy
        self.stages = stages
        self.guard = None if promise is None else LiveGuard(promise)
        self.given: Transitions | None = None
        self.fitted_on: tuple[str, ...] = ()  # features of the rule that was given
        self._regressions: LogisticRule | None = None
        self.memory = self._new_memory()
        self._reader = reader
        self._costs = costs
        self._lock = threading.Lock()
        self._by = Deciding()
        self._base = 0
        self._priced_at = 0  # rounds under the promise when the rule was priced
        self._shared: Callable[[], Transitions | None] | None = None
        if not policy.learns:
            none = ((),) * len(stages)
            self._decide_by(Transitions(Binning(edges=none, labels=none)), settled=True)
        elif rule is not None:
            if rule.stages != stages:
                raise fail("rule", list(rule.stages), f"a rule of {list(stages)}")
            self.fitted_on = features_of(rule)
            if isinstance(rule, LogisticRule):
                self._regressions = rule
                self.given = Transitions(rule.columns.binning)
            else:
                self.given = rule.counts
            self.begin_with(self.given)

    def _new_memory(self) -> ItemMemory:
        first, promised = self.policy.first_rounds, self.guard is not None
        return ItemMemory(len(self.stages), first, whole=self.whole, promised=promised)

    @property
    def base(self) -> int:
        """Rounds that a fitted rule brought."""
        return self._base

    def _decide_by(self, counts: Transitions, *, settled: bool) -> None:
        """From the next round on, decide by the rule that these counts give."""
        own, guard = self._regressions, self.guard
        rule: StoppingRule | None = None
        if own is None and guard is not None and isinstance(self.policy, PerItem):
            counters = guard.read() if self.shared else self.memory.promise_ruled
            stands = standing(guard.promise, counters)
            self._priced_at = stands.rounds
            rule = promised_rule(self.stages, counts, self._costs(), stands)
        elif own is None:
            rule = self.policy.rule(self.stages, counts, self._costs())
        self._by = Deciding.by(rule, counts.binning, settled=settled, regressions=own)

    # ---- deciding -----------------------------------------------------------------------------

    def begin(self, round: Round, uniform: float, rate: float = 0.0) -> None:
        """Say whether a round is a full run, before its first stage is called.

        Args:
            uniform: the round's random number.
            rate: share of rounds that are full runs in any case.
        """
        guard = self.guard
        if guard is not None and self.shared:
            self._price_again(guard)
        path = ItemPath(self._by)
        if guard is None:
            chance = self.policy.full_run_probability(self._base + round.number, self._costs())
        else:
            path.promised = path.by.decides and guard.may_stop()
            chance = guard.promise.look_rate if path.promised else 1.0
        round.full_chance = rate + (1 - rate) * chance
        round.full_run = uniform < round.full_chance
        round.per_item = True
        round.path = path
        if guard is not None and path.promised:
            path.looked = round.full_run
            guard.begun(path)

    def _price_again(self, guard: LiveGuard) -> None:
        """Where a database counts: price the rule again once the promise stands differently."""
        rule = self._by.rule
        if isinstance(rule, Rule) and guard.read()[0] >= next_price(self._priced_at):
            self._decide_by(rule.counts, settled=self._by.settled)

    def know(self, round: Round, features: Mapping[str, Any]) -> None:
        """Take what is known of the item, before its first stage is called."""
        known = checked_features(features)
        if self.given is None:
            check_cells(known, round.segment)
        else:
            check_names(known, self.fitted_on)
        round.features = known

    def next_stage(self, round: Round) -> int | None:
        """The stage that a round calls next; None where it stops after those it has called."""
        self._walk(round)
        return None if round.rule_depth is not None and not round.full_run else len(round.outputs)

    def conclude(self, round: Round, *, enforced: bool) -> None:
        """Settle with which probability a round went as deep as it did, before it is written."""
        self._walk(round)
        last = len(self.stages) - 1
        if not enforced:
            # Nothing was decided by its outputs: whatever they are, it runs on.
            round.full_run = len(round.outputs) == last + 1
            path = round.path
            if round.rule_depth is not None and (path is None or path.promised is not False):
                round.advised, round.advised_probability = round.rule_depth, 1 - round.full_chance
        else:
            round.probability = stop_probability(
                round.rule_depth, last, round.full_chance, full_run=round.full_run
            )
            round.full_run = round.full_run and len(round.outputs) == last + 1

    def answering(self, round: Round) -> int | None:
        """After all stages, the one whose answer is expected to lose least.

        None where the last one that answered gives the answer, as everywhere else.
        """
        path = round.path
        if (
            path is None
            or len(path.groups) < len(self.stages)
            or round.failed
            or not isinstance(path.by.rule, Rule)
        ):
            return None
        stage = path.by.rule.answering(tuple(path.groups))
        return stage if path.groups[stage] >= 0 else None

    def row_of(self, round: Round, record: RoundRecord, *, enforced: bool) -> ItemRow | None:
        """What is to be counted of a round; None if no stage was called.

        Args:
            round: which has been concluded.
            record: what it says of which outputs agree, and whose answer was given.
            enforced: whether the rule was followed.
        """
        path = round.path
        if path is None or not path.groups:
            return None
        sure = tuple(round.confidences or ())
        by = path.by
        return ItemRow(
            tuple(path.labels),
            tuple(path.groups),
            sure + (None,) * (len(path.groups) - len(sure)),
            self._features(round),
            by.epoch,
            tuple(path.keys),
            round.full_run,
            round.full_chance if enforced else 1.0,
            round.rule_depth,
            promised=promise_events(path, round.rule_depth, record, len(self.stages) - 1),
            settled=by.settled,
        )

    def _walk(self, round: Round) -> None:
        """Follow a round to its newest output; note where the rule stops first."""
        path = round.path
        assert path is not None
        by, last = path.by, len(self.stages) - 1
        rule, cell_of = by.rule, by.cell_of
        if not path.follow():
            round.rule_depth = None
        while len(path.groups) < len(round.outputs):
            stage = len(path.groups)
            sure = None
            if round.confidences is not None and stage < len(round.confidences):
                sure = round.confidences[stage]
            cell = 0 if cell_of is None else cell_of(self._features(round))
            key = path.extend(round.outputs[stage], sure, cell, self._differ(round, stage))
            if round.rule_depth is not None:
                continue
            if by.regressions is not None and stage < last:
                stops = self._decide(by.regressions, round, stage).stop
            else:
                # Before there is a rule, a round that is no full run is one that cannot pay.
                stops = stage == last or rule is None or rule.stops(stage, key)
            if stops:
                round.rule_depth = stage
        path.followed()

    def _decide(self, rule: LogisticRule, round: Round, stage: int) -> RuleDecision:
        """What regressions say of a round after a stage."""
        assert round.path is not None
        said, sure = round.path.labels[: stage + 1], round.confidences or ()
        return rule.decide(stage, known_so_far(rule, said, sure, self._features(round)))

    @staticmethod
    def _features(round: Round) -> Features:
        """What was known of the item before its first call."""
        known = round.features
        if not round.segment:
            return known or {}
        return {SEGMENT: round.segment, **known} if known else {SEGMENT: round.segment}

    def _differ(self, round: Round, stage: int) -> Any:
        """How the comparator sees the outputs so far; None where equal outputs are equal."""
        if self._reader.plain or stage == 0:
            return None
        found = self._reader.compare(round.outputs[: stage + 1])
        names = pair_list(stage + 1)
        pairs = {
            names[pair]: bool(differs)
            for pair, differs in added_by(found.answered, found.disagreed, found.undecided).pairs
        }
        return lambda i, j: pairs.get((i, j), True)

    # ---- counting -----------------------------------------------------------------------------

    def count(self, round: Round, row: ItemRow | None) -> None:
        """Take what a round showed, once, however often an interrupt makes it be asked for."""
        path = round.path
        if self.guard is not None and path is not None and path.promised:
            self.guard.ended(path)
        if row is None or not self.policy.learns or self._shared is not None:
            return
        with self._lock:
            if not round.counted:
                self.memory.add(row, round)
            if self.memory.rule_due:
                self._by_memory()

    def replay(self, row: ItemRow) -> None:
        """The same, of a log that is read again: no rule is made before `resume`."""
        if self.policy.learns:
            self.memory.add(row)

    def forget(self) -> None:
        """Empty the memory, before a log is read that holds all of it."""
        self.memory = self._new_memory()

    def resume(self) -> None:
        """Decide by what the memory holds."""
        with self._lock:
            self._by_memory()

    def _by_memory(self) -> None:
        memory = self.memory
        self._base = memory.base
        if memory.ruled is not None and self.policy.learns:
            self._decide_by(memory.ruled, settled=memory.settled)
        memory.rule_due = False

    def begin_with(self, counts: Transitions) -> None:
        """Take over bins and counts; they decide from the next round on."""
        with self._lock:
            self.memory.start_from(counts)
            self._by_memory()

    def share(self, read: Callable[[], Transitions | None]) -> None:
        """Leave all counting to a database; `read` gives what it has counted."""
        self._shared = read

    def promise_by(self, read: Callable[[], Sequence[int]]) -> None:
        """From where the counters of the promise are read, now that there are any."""
        if self.guard is not None:
            self.guard.read = read
            if self.shared and isinstance(self._by.rule, Rule):
                self._decide_by(self._by.rule.counts, settled=self._by.settled)

    def take(self, state: ItemState) -> None:
        """Decide by what a database holds. Called in the thread of the store."""
        self._base = state.base
        if state.ruled is not None and self.policy.learns:
            self._decide_by(state.ruled, settled=state.settled)

    @property
    def shared(self) -> bool:
        """Whether a database counts."""
        return self._shared is not None

    def check_merge(self, counts: Transitions) -> None:
        """Refuse counts that cannot be added here."""
        with self._lock:
            self.memory.check_merge(counts)

    def merge(self, counts: Transitions) -> None:
        """Add what another machine counted; the rule takes it in at once."""
        with self._lock:
            self.memory.merge(counts)
            self._by_memory()

    def read_again(self, counts: Transitions) -> None:
        """The same, of a log that is read again: another rule's counts take the place of all."""
        if self.memory.fits(counts):
            self.memory.merge(counts)
        else:
            self.memory.start_from(counts)

    # ---- reading and keeping ------------------------------------------------------------------

    @property
    def counts(self) -> Transitions | None:
        """What has been counted so far, as a copy; None before the first bins are cut."""
        if self._shared is not None:
            return self._shared()
        with self._lock:
            return None if self.memory.counts is None else copy_of(self.memory.counts)

    def explain(self, round: Round) -> list[RuleDecision]:
        """What the rule says of each situation that a round went through."""
        path = round.path
        if path is None:
            return []
        keys = path.keys[: len(self.stages) - 1]
        if path.by.regressions is not None:
            rule = path.by.regressions
            return [self._decide(rule, round, stage) for stage in range(len(keys))]
        if not isinstance(path.by.rule, Rule):
            return []
        return [path.by.rule.decide(stage, key) for stage, key in enumerate(keys)]

    def to_form(self) -> dict[str, Any]:
        """What a snapshot holds."""
        with self._lock:
            return self.memory.to_form()

    def restore(self, form: Mapping[str, Any] | None) -> None:
        """Go on from what `to_form` gave."""
        if form is None:
            return
        with self._lock:
            memory = self._new_memory()
            memory.restore(form)
            before = self.memory, self._base, self._by
            try:
                self.memory = memory
                self._by_memory()
            except BaseException:  # counts that no rule can be made from: all or nothing
                self.memory, self._base, self._by = before
                raise
