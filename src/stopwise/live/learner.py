"""The learner: opens rounds, counts them, and knows from evidence alone how deep to go."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, fail, finite_number, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import ABSTAINED, Evidence
from stopwise.live import budgets
from stopwise.live.choosing import Chooser, deterministic_stage
from stopwise.live.comparators import Agree, Comparator, make_comparator
from stopwise.live.draws import BITS, LOW_BITS
from stopwise.live.drift import Drift, DriftAlarm
from stopwise.live.fast_ts import FastTs
from stopwise.live.pairs import NOTHING, compare_answers, moves_of
from stopwise.live.records import RoundRecord
from stopwise.live.report import Report, report_of
from stopwise.live.rounds import Outcome, Round
from stopwise.live.settings import Mode, Settings, policy_text, stage_names_and_costs
from stopwise.live.snapshot import read_snapshot, write_snapshot
from stopwise.live.state import State
from stopwise.live.stores import Store
from stopwise.live.tally import Pattern, Tally, count_columns
from stopwise.policies.base import Policy
from stopwise.policies.registry import make_policy
from stopwise.policies.uss_ts import UssTs
from stopwise.problem import IntArray

Combine = Callable[[Sequence[Any]], Any]


class Learner:
    """Learns from disagreement alone how deep to go. Safe to use from many threads.

    Args:
        stages: costs of the stages, cheapest first: `{"name": cost}`, a list of costs, or `Costs`.
        policy: a policy, or the name of a registered one.
        mistake_cost: what one wrong answer costs, in the units of the costs.
        seed: of the depths that are drawn.
        comparator: when two answers agree; see `stopwise.live.comparators`.
        combine: the answer after some outputs, if it is not the last of them (a vote). It is handed
            the outputs that are not abstentions.
        measured: let running means of the costs that rounds report enter the rule. The costs given
            in `stages` then count as one call each.
        half_life: after so many rounds of a segment, evidence counts half. None keeps all.
        full_run_rate: share of rounds that are sent through all stages whatever the policy says.
        drift: watch disagreement rates and raise alarms.
        on_drift: called with every `DriftAlarm`.
        mode: "enforce" stops at the depth drawn; "shadow" and "advise" run to `run_to` and note
            what enforcing would have done.
        run_to: the stage, by name or number, of the modes shadow and advise; the last by default.
        item_budget: a round is never begun, nor goes on, beyond this cost.
        run_budget: nor all rounds of this learner together; see `BudgetError`.
        segment_strength: how many rounds the other segments' evidence may count for in a segment.
        store: a `RoundLog` or a `SqliteStore`; without one, use `save` and `load`.

    >>> learner = Learner({"rule": 0, "model": 1}, mistake_cost=4, seed=1)
    >>> learner.probabilities()
    [0.25, 0.75]
    >>> with learner.begin() as round:
    ...     for stage in range(round.depth + 1):
    ...         round.observe("yes")
    >>> learner.rounds
    1
    """

    def __init__(
        self,
        stages: Mapping[str, float] | Sequence[float] | Costs,
        policy: str | Policy = "uss-ts",
        *,
        mistake_cost: float = 1.0,
        seed: int = 0,
        comparator: Comparator | Agree | str = "exact",
        combine: Combine | None = None,
        measured: bool = False,
        half_life: float | None = None,
        full_run_rate: float = 0.0,
        drift: Drift | None = None,
        on_drift: Callable[[DriftAlarm], None] | None = None,
        mode: Mode = "enforce",
        run_to: int | str = -1,
        item_budget: float | None = None,
        run_budget: float | None = None,
        segment_strength: float = 10.0,
        store: Store | None = None,
    ) -> None:
        names, per_stage, known = stage_names_and_costs(stages, mistake_cost)
        self.policy = make_policy(policy)
        self.comparator = make_comparator(comparator)
        self.settings = Settings(
            stages=names,
            costs=per_stage,
            mistake_cost=known.mistake_cost,
            policy=policy_text(self.policy),
            measured=bool(measured),
            comparator=self.comparator.label,
            combine=None if combine is None else getattr(combine, "__qualname__", repr(combine)),
            half_life=half_life,
            full_run_rate=full_run_rate,
            mode=mode,
            run_to=_stage_index("run_to", run_to, names),
            segment_strength=segment_strength,
        )
        self.seed = whole_number("seed", seed, least=0)
        self.count = known.count
        self.alarms: list[DriftAlarm] = []
        self._known = known
        self._combine = combine
        self._on_drift = on_drift
        self._purse = budgets.Purse(item_budget, run_budget)
        self._lock = threading.RLock()
        self._lost: deque[Round] = deque()
        self._replaying = False
        carries = type(self.policy) is UssTs and not measured
        thresholds = known.thresholds.tolist()
        self._state = State(
            self.count,
            discount=self.settings.discount,
            strength=segment_strength,
            recorder=self.policy if type(self.policy).record is not Policy.record else None,
            fast=(lambda: FastTs(self.policy, thresholds)) if carries else None,  # type: ignore[arg-type]
            drift=drift,
            report_drift=self._report_drift,
        )
        self._chooser = Chooser(self.policy, self.settings, self._state, self.seed)
        self._stage_costs = list(self.settings.costs)
        self._cumulative = list(known.cumulative)
        self._plain_compare = self.comparator.label == "exact" and combine is None
        self._store = store
        self._writer = 0
        self._pending: list[Pattern] = []
        self._direct = mode == "enforce" and not full_run_rate and not self._purse.limited
        self._short = (
            self._plain_compare
            and store is None
            and half_life is None
            and drift is None
            and not measured
            and self._state.recorder is None
        )
        if store is not None:
            self._attach(store)
        self._renew_costs()

    # ---- rounds ------------------------------------------------------------------------------

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
                depth = self.count - 1
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
                round.called = stage + 1
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
            called = round.called = len(outputs)
            if abandoned:
                round.abandoned = True
            if round.reserved:
                self._purse.release(round)
            if round.costs is None:
                round.cost = cost = self._cumulative[called - 1] if called else 0.0
            else:
                round.cost = cost = self._actual_cost(round, called)
            if called and self._plain_compare and outputs[-1] is not ABSTAINED:
                answer, stage = outputs[-1], called - 1
            else:
                answer, stage = self._answer_after(outputs, called - 1)
            round.stage = stage
            if called > 1:
                self._compare(round)
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

    def _compare(self, round: Round) -> None:
        if self._plain_compare:
            round.answered, round.disagreed = compare_answers(round.outputs, None)
            return
        answers = list(round.outputs)
        if self._combine is not None:
            # A stage that said nothing gave no answer, though the vote stands: no agreement.
            for stage, output in enumerate(answers):
                if output is not ABSTAINED:
                    answers[stage] = self._answer_after(round.outputs, stage)[0]
        keys = self.comparator.keys(answers)
        differ = None if self.comparator.agree is None else self.comparator.differ
        round.answered, round.disagreed = compare_answers(keys, differ)

    def _answer_after(self, outputs: Sequence[Any], stage: int) -> tuple[Any, int | None]:
        """The answer when stopping at a stage, and the last stage that spoke up to there."""
        for last in range(min(stage, len(outputs) - 1), -1, -1):
            if outputs[last] is not ABSTAINED:
                if self._combine is None:
                    return outputs[last], last
                said = [output for output in outputs[: last + 1] if output is not ABSTAINED]
                return self._combine(said), last
        return ABSTAINED, None

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
        early, when = self._answer_after(round.outputs, advised)
        if stage is not None and when is not None and round.called > advised:
            final = self._answer_after(round.outputs, stage)[0]
            round.advised_same = self.comparator.agrees(early, final)

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
                self._finish(round, True)

    def answer_of(self, round: Round) -> tuple[Any, int | None]:
        """The answer as things stand, and the stage that gave it."""
        return self._answer_after(round.outputs, len(round.outputs) - 1)

    def can_pay(self, round: Round) -> bool:
        """Whether the budget of the item has room for the next stage, at what it cost so far."""
        at = len(round.outputs)
        if self._purse.item_budget is None or at >= self.count:
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
                state.tally(segment), number, first, self._costs, self.count - 1, size
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
        delta = count_columns(self.count, depths, where, columns)
        costs = np.asarray(self._cumulative)[depths]
        delta.spent = float(costs.sum())
        with self._lock:
            self._settle()
            self._state.add(segment, delta)
        return costs

    # ---- what the evidence says --------------------------------------------------------------

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages."""
        return self.settings.stages

    @property
    def rounds(self) -> int:
        """How many rounds have ended, in all segments and by all who share the store."""
        with self._lock:
            self._settle()
            return self._state.pool.rounds

    def evidence(self, segment: str = "") -> Evidence:
        """The exact counts of a segment.

        >>> Learner([0, 1]).evidence().seen[0, 1]
        np.int64(0)
        """
        with self._lock:
            self._settle()
            return self._state.peek(segment).evidence()

    @property
    def segments(self) -> list[str]:
        """The segments that have begun."""
        return list(self._state.tallies)

    @property
    def costs(self) -> Costs:
        """The costs that the rule uses now: those given, or running means."""
        with self._lock:
            return self._costs

    def probabilities(self, segment: str = "") -> list[float]:
        """The distribution of the next depth, with all that `begin` takes into account."""
        with self._lock:
            self._settle()
            deepest = self._purse.deepest(self._cumulative, self._state.pool.spent)
            if self.settings.mode != "enforce":
                run_to = min(self.settings.run_to, deepest)
                return [float(stage == run_to) for stage in range(self.count)]
            return self._advice(segment, deepest)

    def advice(self, segment: str = "") -> list[float]:
        """The distribution that enforcing would draw the next depth from, in any mode."""
        with self._lock:
            self._settle()
            return self._advice(segment, self.count - 1)

    def _advice(self, segment: str, deepest: int) -> list[float]:
        number = self._state.others + self._state.begun + 1
        tally = self._state.peek(segment)
        return self._chooser.distribution(tally, number, self._costs, deepest)

    def best_stage(self, segment: str = "") -> int:
        """The deterministic reading of the evidence: the first stage beyond which nothing pays.

        The first stage i whose observed disagreement with every deeper stage j is below
        C_j - C_i (in mistakes). A pair that was never seen rules nothing out, so that a learner
        that knows nothing answers with the last stage.

        >>> Learner({"rule": 0, "model": 1}, mistake_cost=4).best_stage()
        1
        """
        with self._lock:
            self._settle()
            tally = self._state.peek(segment)
            return deterministic_stage(self._state.evidence_for(tally), self._costs)

    def report(self, segment: str | None = None) -> Report:
        """Counts of a segment, or of all together, and what advice would have saved."""
        with self._lock:
            self._settle()
            tally = self._state.pool if segment is None else self._state.peek(segment)
            return report_of(tally, self.stages)

    def add_evidence(self, evidence: Evidence, segment: str = "") -> None:
        """Start from evidence gathered elsewhere (a log, another learner, other prices)."""
        with self._lock:
            self._settle()
            if self._store is not None:
                self._store.add_evidence(segment, evidence)
            self._state.add_evidence(segment, evidence)

    # ---- keeping -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a snapshot: to a temporary file, flushed to disk, then put in place at once.

        Rounds still open are not in it; they count only where they end.
        """
        write_snapshot(path, self.to_form())

    def to_form(self) -> dict[str, Any]:
        """What a snapshot holds, as JSON would."""
        with self._lock:
            self._settle()
            return {
                "settings": self.settings.to_form(),
                "seed": self.seed,
                "state": self._state.to_form(),
            }

    def load(self, path: str | Path, *, fork: int | None = None) -> None:
        """Go on from a snapshot, in the place of all that this learner knew.

        Args:
            path: what `save` wrote.
            fork: None resumes exactly: the same future decisions as if it had never stopped, which
                needs the same settings (the seed is the snapshot's). A new seed here keeps the
                evidence only, as several copies of one learner should.
        """
        self.restore(read_snapshot(path), str(path), fork=fork)

    def restore(
        self, form: Mapping[str, Any], what: str = "snapshot", *, fork: int | None = None
    ) -> None:
        """Go on from what `to_form` gave; see `load`."""
        if self._store is not None:
            raise StopwiseError("load: this learner has a store, which is its memory")
        self.settings.check_same(form["settings"], what, exactly=fork is None)
        with self._lock:
            self._settle()
            if fork is None:
                seed = whole_number("seed", form["seed"], least=0)
            else:
                seed = whole_number("fork", fork, least=0)
            self._state.restore(form["state"])
            self.seed = seed
            self._chooser.reseed(seed)
            self._renew_costs()

    def _attach(self, store: Store) -> None:
        self._replaying = True
        try:
            self._writer = store.attach(self.settings, self.seed, self._state)
        finally:
            self._replaying = False
        self._chooser.reseed(self.seed, self._writer)

    def refresh(self) -> None:
        """Read what others have added to a shared store; ending a round does so too."""
        with self._lock:
            if self._store is not None:
                self._settle()
                self._store.load_into(self._state)
                self._renew_costs()

    def close(self) -> None:
        """Count rounds that were forgotten, and let the store go."""
        with self._lock:
            self._settle()
            if self._store is not None:
                self._store.close()

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


def _stage_index(field: str, stage: int | str, names: Sequence[str]) -> int:
    if isinstance(stage, str):
        if stage not in names:
            raise fail(field, stage, "one of " + ", ".join(names))
        return list(names).index(stage)
    accepted = f"a stage from 0 to {len(names) - 1}, or -1 for the last"
    if finite_number(field, stage, accepted) != stage or not -len(names) <= stage < len(names):
        raise fail(field, stage, accepted)
    return int(stage) % len(names)
