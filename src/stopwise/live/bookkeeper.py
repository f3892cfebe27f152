"""Where rounds are opened and ended: the inner half of a learner, one lock around it all."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import ABSTAINED
from stopwise.live.budgets import Purse
from stopwise.live.choosing import Chooser
from stopwise.live.comparing.reader import Reader
from stopwise.live.counters.carried import FastTs
from stopwise.live.counters.many import count_columns
from stopwise.live.counters.pairs import NOTHING, compare_answers, moves_of
from stopwise.live.counters.state import State
from stopwise.live.counters.tally import Pattern, Tally
from stopwise.live.draws import BITS, LOW_BITS
from stopwise.live.drift import Drift, DriftAlarm
from stopwise.live.round import Outcome, Round
from stopwise.live.settings import Settings
from stopwise.live.stores.base import Store
from stopwise.live.stores.records import RoundRecord
from stopwise.policies.base import Policy
from stopwise.policies.uss_ts import UssTs
from stopwise.problem import IntArray


class Desk:
    """Opens and ends rounds. `Learner` adds what a user reads, saves and loads."""

    def __init__(
        self,
        settings: Settings,
        known: Costs,
        policy: Policy,
        reader: Reader,
        *,
        seed: int,
        purse: Purse,
        drift: Drift | None,
        on_drift: Callable[[DriftAlarm], None] | None,
        store: Store | None,
    ) -> None:
        self.settings = settings
        self.policy = policy
        self.reader = reader
        self.seed = seed
        self.stage_count = known.stage_count
        self.alarms: list[DriftAlarm] = []
        self._known = known
        self._on_drift = on_drift
        self._purse = purse
        self._lock = threading.RLock()
        self._lost: deque[Round] = deque()
        self._pending: list[Pattern] = []
        self._replaying = False
        carries = type(policy) is UssTs and not settings.measured
        thresholds = known.thresholds.tolist()
        self._state = State(
            self.stage_count,
            discount=settings.discount,
            strength=settings.segment_strength,
            recorder=policy if type(policy).record is not Policy.record else None,
            fast=(lambda: FastTs(policy, thresholds)) if carries else None,  # type: ignore[arg-type]
            drift=drift,
            report_drift=self._report_drift,
        )
        self._chooser = Chooser(policy, settings, self._state, seed)
        self._stage_costs = list(settings.costs)
        self._cumulative = list(known.cumulative)
        self._store = store
        self._writer = 0
        # Whether rounds may begin and end the short way: see there.
        self._direct = (
            settings.mode == "enforce" and not settings.full_run_rate and not purse.limited
        )
        self._short = (
            reader.plain
            and store is None
            and drift is None
            and settings.half_life is None
            and not settings.measured
            and self._state.recorder is None
        )
        if store is not None:
            self._attach(store)
        self._renew_costs()

    def _attach(self, store: Store) -> None:
        self._replaying = True
        try:
            self._writer = store.attach(self.settings, self.seed, self._state)
        finally:
            self._replaying = False
        self._chooser.reseed(self.seed, self._writer)

    def begin(self, segment: str = "") -> Round:
        """Open a round: its depth is drawn now, from all rounds that have ended so far."""
        with self._lock:
            if self._lost:
                self._settle()
            state = self._state
            tally = state.tallies.get(segment)
            if tally is None:
                self._settle()
                tally = state.tally(segment)
            fast = tally.fast
            sequence = state.begun + 1
            if fast is None or not self._direct:
                return self._begin_with_care(segment, sequence)
            state.begun = sequence
            # The short way: nothing stands between the carried distribution and the draw, and no
            # function is called for what two lines do.
            p, sums = fast.current or fast.renew()
            draws = self._chooser.draws
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
            return Round(self, sequence, state.others + sequence, segment, depth, p[depth])

    def _begin_with_care(self, segment: str, sequence: int) -> Round:
        """The same, with budgets, modes, full runs, lent evidence or another policy."""
        self._settle()
        state, settings = self._state, self.settings
        number = state.others + sequence
        tally = state.tally(segment)
        deepest = self._purse.deepest(self._cumulative, state.pool.spent)
        depth, probability = self._chooser.draw(tally, number, sequence, self._costs, deepest)
        state.begun = sequence
        if settings.mode == "enforce":
            round = Round(self, sequence, number, segment, depth, probability)
        else:
            run_to = min(settings.run_to, deepest)
            round = Round(self, sequence, number, segment, run_to, 1.0)
            round.advised, round.advised_probability = depth, probability
            round.unusual = True
        round.reserved = self._purse.reserve(self._cumulative[round.depth])
        if round.reserved:
            round.unusual = True
        return round

    def _finish(self, round: Round, abandoned: bool) -> Outcome:
        with self._lock:
            if round.ended:
                raise StopwiseError(f"round {round.number} has ended already")
            round.ended = True
            stage: int | None
            outputs = round.outputs
            if self._short and not (abandoned or round.unusual or outputs[-1] is ABSTAINED):
                # The short way for most rounds, with the same result (a test compares them).
                stage = round.stage = round.depth
                tally = self._state.tallies[round.segment]
                try:
                    pattern = tally.patterns[tuple(outputs)]
                except (KeyError, TypeError):
                    pattern = self._new_pattern(tally, stage, outputs)
                cost = round.cost = pattern.cost
                if not pattern.times:
                    self._pending.append(pattern)
                pattern.times += 1
                if stage and tally.fast is not None:
                    tally.fast.move(pattern.pairs)
                return tuple.__new__(Outcome, (outputs[-1], stage, cost))
            self._settle()
            called = len(outputs)
            if abandoned:
                round.abandoned = True
            if round.reserved:
                self._purse.release(round)
            if round.costs is None:
                round.cost = cost = self._cumulative[called - 1] if called else 0.0
            else:
                round.cost = cost = self._actual_cost(round, called)
            if called and self.reader.plain and outputs[-1] is not ABSTAINED:
                answer, stage = outputs[-1], called - 1
            else:
                answer, stage = self.reader.after(outputs, called - 1)
            round.stage = stage
            if called > 1:
                round.answered, round.disagreed = self.reader.compare(outputs)
            if round.advised is not None:
                self._note_advice(round, stage)
            if self._store is None:
                self._state.apply(round.segment, round)
            else:
                self._keep([self._record_of(round)])
            if round.costs is not None and self.settings.measured:
                self._renew_costs()
            return Outcome(answer, stage, cost)

    def _new_pattern(self, tally: Tally, stage: int, outputs: list[Any]) -> Pattern:
        """What a prefix adds. Few different ones come again and again, so it is kept."""
        moves = moves_of(*compare_answers(outputs, None)) if stage else NOTHING
        pattern = Pattern(tally, stage, self._cumulative[stage], moves)
        if len(tally.patterns) >= 512:
            tally.patterns.clear()
        with suppress(TypeError):  # outputs that cannot be hashed are compared every time
            tally.patterns[tuple(outputs)] = pattern
        return pattern

    def _actual_cost(self, round: Round, called: int) -> float:
        costs = list(round.costs or ())
        costs += [None] * (called - len(costs))
        return sum(
            known if actual is None else actual
            for known, actual in zip(self._stage_costs, costs, strict=False)
        )

    def _note_advice(self, round: Round, stage: int | None) -> None:
        advised = round.advised
        assert advised is not None
        costs = round.costs or []
        round.advised_cost = sum(
            costs[at] if at < len(costs) and costs[at] is not None else self._stage_costs[at]  # type: ignore[misc]
            for at in range(advised + 1)
        )
        early, when = self.reader.after(round.outputs, advised)
        if stage is not None and when is not None and round.called > advised:
            final = self.reader.after(round.outputs, stage)[0]
            round.advised_same = self.reader.comparator.agrees(early, final)

    def _record_of(self, round: Round) -> RoundRecord:
        return RoundRecord(
            number=round.number,
            writer=self._writer,
            sequence=round.sequence,
            segment=round.segment,
            depth=round.depth if round.drawn_depth is None else round.drawn_depth,
            probability=round.probability,
            stage=round.stage,
            called=round.called,
            answered=round.answered,
            disagreed=round.disagreed,
            failed=round.failed,
            costs=round.costs,
            confidences=round.confidences,
            cost=round.cost,
            abandoned=round.abandoned,
            advised=round.advised,
            advised_cost=round.advised_cost,
            advised_same=round.advised_same,
            outputs=round.outputs,
        )

    def _keep(self, records: Sequence[RoundRecord]) -> None:
        """Write rounds to the store, then count them: what is counted is always written."""
        assert self._store is not None
        if self._store.append(records):
            self._store.load_into(self._state)
            for record in records:
                # The counters came with the rest; the drift alarm watches this writer's own rounds.
                self._state.tally(record.segment).watch_only(record)
        else:
            for record in records:
                self._state.apply(record.segment, record)

    def _settle(self) -> None:
        """Add up what is pending; everything but the short ways of begin and end does so first."""
        if self._pending:
            pool = self._state.pool
            for pattern in self._pending:
                pattern.tally.apply_times(pattern)
                if pool is not pattern.tally:
                    pool.apply_times(pattern)
                pattern.times = 0
            self._pending.clear()
        while self._lost:
            round = self._lost.popleft()
            if not round.ended:
                try:
                    self._finish(round, True)
                except Exception as error:  # noqa: BLE001  # must not fall on another round
                    message = f"a round that was forgotten could not be counted: {error!r}"
                    warnings.warn(message, RuntimeWarning, stacklevel=3)

    def go_deeper(self, round: Round) -> bool:
        """Let a round call one stage more than was drawn, if there is one and it can be paid."""
        with self._lock:
            self._settle()
            at = len(round.outputs)
            if at >= self.stage_count or not self.can_pay(round):
                return False
            cost = self._stage_costs[at]
            if not self._purse.has(cost, self._state.pool.spent):
                return False
            round.reserved += self._purse.reserve(cost)
            round.go_on()
            return True

    def can_pay(self, round: Round) -> bool:
        """Whether the budget of the item has room for the next stage, at what it cost so far."""
        at = len(round.outputs)
        if self._purse.item_budget is None or at >= self.stage_count:
            return True
        so_far = self._cumulative[at - 1] if at else 0.0
        if round.costs is not None:
            so_far = self._actual_cost(round, at)
        return self._purse.allows(so_far, self._stage_costs[at])

    # ---- many rounds at once, as columns -----------------------------------------------------

    @property
    def in_columns(self) -> bool:
        """Whether many rounds can be counted at once: nothing about them but outputs and depth."""
        return self._short and self._direct

    def begin_many(self, size: int, segment: str) -> tuple[int, int, IntArray, list[float]]:
        """Begin rounds together: first sequence and number, their depths, their distribution."""
        with self._lock:
            self._settle()
            state = self._state
            first = state.begun + 1
            number = state.others + first
            depths, p = self._chooser.draw_many(
                state.tally(segment), number, first, self._costs, self.stage_count - 1, size
            )
            state.begun += size
            return first, number, depths, p

    def round_of(
        self, sequence: int, number: int, segment: str, depth: int, p: Sequence[float]
    ) -> Round:
        """One of many rounds that were begun together, as an object."""
        return Round(self, sequence, number, segment, depth, p[depth])

    def end_many(
        self, segment: str, depths: IntArray, where: Sequence[IntArray], columns: Sequence[Any]
    ) -> FloatArray:
        """Count rounds that all went to their depths; return what each cost.

        Args:
            depths: of every round.
            where: for each stage, the rounds that called it.
            columns: for each stage, its outputs in those rounds.
        """
        delta = count_columns(self.stage_count, depths, where, columns)
        costs = np.asarray(self._cumulative)[depths]
        delta.spent = float(costs.sum())
        with self._lock:
            self._settle()
            self._state.add(segment, delta)
        return costs

    # ---- costs and alarms --------------------------------------------------------------------

    def _renew_costs(self) -> None:
        if not self.settings.measured:
            self._costs = self._known
            return
        pool = self._state.pool
        means = [
            (given + total) / (1 + calls)
            for given, total, calls in zip(
                self.settings.costs, pool.cost_sums, pool.cost_counts, strict=True
            )
        ]
        self._costs = Costs.from_stages(means, self.settings.mistake_cost)
        self._stage_costs = means
        self._cumulative = list(self._costs.cumulative)

    def _report_drift(self, alarm: DriftAlarm) -> None:
        self.alarms.append(alarm)
        if self._on_drift is not None and not self._replaying:
            try:
                self._on_drift(alarm)
            except Exception as error:  # noqa: BLE001  # a listener must not cost an answer
                warnings.warn(f"on_drift raised {error!r}", RuntimeWarning, stacklevel=2)
