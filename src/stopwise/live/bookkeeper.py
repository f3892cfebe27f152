"""The bookkeeper of a learner: opens rounds, ends them, counts them, under one lock."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import ABSTAINED
from stopwise.live.choosing.budgets import Budgets
from stopwise.live.choosing.chooser import Chooser
from stopwise.live.choosing.draws import BITS, LOW_BITS
from stopwise.live.comparing.reader import Comparison, Reader
from stopwise.live.counters.carried import FastTs, can_carry, warm_up
from stopwise.live.counters.many import count_columns
from stopwise.live.counters.pairs import Added, added_by, compare_answers
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.items.decider import ItemDecider
from stopwise.live.record import RoundRecord, agreed
from stopwise.live.round import Round, RoundOutcome
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Store
from stopwise.live.watching.drift import Drift, DriftAlarm, DriftWatch
from stopwise.policies.base import Policy
from stopwise.policies.per_item.rule import Rule
from stopwise.policies.situation import SituationPolicy
from stopwise.problem import IntArray

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
        store: Store | None,
        rule: Rule | None = None,
    ) -> None:
        self.settings = settings
        self.reader = reader
        self.seed = seed
        self.stage_count = known.stage_count
        self.alarms: list[DriftAlarm] = []
        self.lock = threading.RLock()
        self.forgotten: deque[Round] = deque()
        self.budgets = budgets
        self.store = store
        self.writer = 0
        self._known = known
        self._on_drift = on_drift
        self.watch = None if drift is None else DriftWatch(known.stage_count, drift)
        self._prefixes: dict[tuple[Any, ...], Added] = {}
        carries = can_carry(policy) and not settings.measured
        thresholds = known.thresholds.tolist()
        if carries:
            warm_up()
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
        # Whether rounds may begin and end the short way: see there.
        self._direct = (
            settings.mode == "enforce" and not settings.full_run_rate and not budgets.limited
        )
        self._short = (
            reader.plain
            and store is None
            and drift is None
            and settings.half_life is None
            and not settings.measured
            and self.counters.recorder is None
        )
        self.items: ItemDecider | None = None
        if isinstance(policy, SituationPolicy):
            self.items = ItemDecider(policy, settings.stages, known, reader, rule)
            self._direct = self._short = False
        elif rule is not None:
            raise fail("policy", policy.label(), "one that decides per item, where a rule is given")
        if store is not None:
            self._attach(store)
        self.renew_costs()

    def _attach(self, store: Store) -> None:
        self.writer = store.attach(self.settings, self.seed, self.counters, self.watch)
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

    def _begin_with_care(self, segment: str, sequence: int) -> Round:
        """The same, with budgets, modes, full runs, lent evidence or another policy."""
        self.settle()
        counters, settings = self.counters, self.settings
        number = counters.others + sequence
        tally = counters.tally(segment)
        if tally.fast is not None and not tally.fast.sure:
            tally.renew_fast()
        deepest = self.budgets.deepest(self.cumulative, counters.pool.spent)
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

    def stops(self, round: Round) -> bool:
        """Whether a round that is decided per item stops after the stages it has called."""
        if self.items is None or not self.items.stops(round):
            return False
        round.depth = len(round.outputs) - 1
        return True

    # ---- ending ------------------------------------------------------------------------------

    def finish(self, round: Round, abandoned: bool) -> RoundOutcome:
        """Count a round and give its answer."""
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
                    self.counters.count_pending(self.cumulative)
                return tuple.__new__(RoundOutcome, (outputs[-1], stage, cost))
        if round.ended:
            self._refuse_twice(round)
        if self.items is not None:
            self.items.conclude(round, enforced=self.settings.mode == "enforce")
        record, answer = self._read(round, abandoned)
        with self.lock:
            if round.ended:
                self._refuse_twice(round)
            round.ended = True
            if self.items is not None:
                self.items.count(round)
            self.budgets.release(round)
            self._add_up()
            round.record, round.stage, round.cost = record, record.stage, record.cost
            if self.store is None:
                self._count(record)
            else:
                self._keep([record])
            if record.costs is not None and self.settings.measured:
                self.renew_costs()
        return RoundOutcome(answer, record.stage, record.cost)

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
        outputs, reader = round.outputs, self.reader
        stage: int | None
        called = len(outputs)
        if round.costs is None:
            cost = self.cumulative[called - 1] if called else 0.0
        else:
            cost = self._actual_cost(round, called)
        usable = called if round.answer_from is None else round.answer_from
        if usable and reader.plain and outputs[usable - 1] is not ABSTAINED:
            answer, stage = outputs[usable - 1], usable - 1
        else:
            answer, stage = reader.after(outputs, usable - 1)
        compared = round.compared
        if compared is None:
            compared = reader.compare(outputs) if called > 1 else Comparison(int(stage == 0), 0)
            round.compared = compared
        cost += compared.cost
        if round.path is not None and not round.full_run:
            # It went on because of its outputs: counted as a pair, they would bias the counters.
            compared = compared._replace(
                answered=0 if stage is None else 1 << stage, disagreed=0, undecided=0
            )
        record = RoundRecord(
            number=round.number,
            writer=self.writer,
            sequence=round.sequence,
            segment=round.segment,
            depth=round.depth if round.drawn_depth is None else round.drawn_depth,
            probability=round.probability,
            stage=stage,
            called=called,
            answered=compared.answered,
            disagreed=compared.disagreed,
            undecided=compared.undecided,
            failed=round.failed,
            costs=round.costs,
            cost=cost,
            abandoned=abandoned,
            outputs=outputs,
            confidences=round.confidences,
        )
        if round.advised is not None:
            self._note_advice(record, round.advised)
        return record, answer

    def _actual_cost(self, round: Round, called: int) -> float:
        costs = list(round.costs or ())
        costs += [None] * (called - len(costs))
        return sum(
            known if actual is None else actual
            for known, actual in zip(self._stage_costs, costs, strict=False)
        )

    def _note_advice(self, record: RoundRecord, advised: int) -> None:
        costs = record.costs or []
        record.advised = advised
        record.advised_cost = sum(
            costs[at] if at < len(costs) and costs[at] is not None else self._stage_costs[at]  # type: ignore[misc]
            for at in range(advised + 1)
        )
        spoke = [at for at, one in enumerate(record.outputs or ()) if one is not ABSTAINED]
        early = max((at for at in spoke if at <= advised), default=None)
        if record.stage is not None and early is not None and record.called > advised:
            record.advised_same = agreed(record, early, record.stage)

    def _count(self, record: RoundRecord) -> None:
        self.counters.apply(record)
        self._observe(record)

    def _keep(self, records: Sequence[RoundRecord]) -> None:
        """Write rounds to the store, then count them: what is counted is always written."""
        assert self.store is not None
        if self.store.append(records):
            self.store.load_into(self.counters)
            for record in records:
                # The counters came with the rest; the drift alarm watches this writer's own rounds.
                self._observe(record)
        else:
            for record in records:
                self._count(record)

    def settle(self) -> None:
        """Add up what is pending; everything but the short ways of begin and end does so first."""
        self._add_up()
        while self.forgotten:
            round = self.forgotten[0]
            if not round.ended:
                try:
                    self.finish(round, True)
                except Exception as error:  # noqa: BLE001  # must not fall on another round
                    message = f"a round that was forgotten could not be counted: {error!r}"
                    warnings.warn(message, RuntimeWarning, stacklevel=3)
                    round.ended = True
            self.forgotten.popleft()

    def _add_up(self) -> None:
        self.counters.settle()
        if self.counters.pending:
            self.counters.count_pending(self.cumulative)

    # ---- going deeper ------------------------------------------------------------------------

    def go_deeper(self, round: Round) -> bool:
        """Let a round call one stage more than was drawn, if there is one and it can be paid."""
        with self.lock:
            self.settle()
            at = len(round.outputs)
            if at >= self.stage_count or not self.can_pay(round):
                return False
            cost = self._stage_costs[at]
            if not self.budgets.has(cost, self.counters.pool.spent):
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
            tally = counters.tally(segment)
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
            self.counters.add(segment, delta)
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
            pairs = added_by(record.answered, record.disagreed, record.undecided).pairs
            for alarm in self.watch.observe(record.segment, pairs):
                self._report_drift(alarm)

    def _report_drift(self, alarm: DriftAlarm) -> None:
        self.alarms.append(alarm)
        if self._on_drift is not None:
            try:
                self._on_drift(alarm)
            except Exception as error:  # noqa: BLE001  # a listener must not cost an answer
                warnings.warn(f"on_drift raised {error!r}", RuntimeWarning, stacklevel=2)
