"""The learner: opens rounds, counts them, and knows from evidence alone how deep to go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stopwise.checks import StopwiseError, fail, finite_number, whole_number
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live.bookkeeper import Desk
from stopwise.live.budgets import Purse
from stopwise.live.choosing import deterministic_stage
from stopwise.live.comparing import Agree, Comparator, make_comparator
from stopwise.live.comparing.reader import Combine, Reader
from stopwise.live.drift import Drift, DriftAlarm
from stopwise.live.report import Report, report_of
from stopwise.live.settings import Mode, Settings, policy_text, stage_names_and_costs
from stopwise.live.stores.base import Store
from stopwise.live.stores.snapshot import read_snapshot, write_snapshot
from stopwise.policies.base import Policy
from stopwise.policies.registry import make_policy


class Learner(Desk):
    """Learns from disagreement alone how deep to go. Safe to use from many threads.

    Args:
        stages: costs of the stages, cheapest first: `{"name": cost}`, a list of costs, or `Costs`.
        policy: a policy, or the name of a registered one.
        mistake_cost: what one wrong answer costs, in the units of the costs.
        seed: of the depths that are drawn.
        comparator: when two answers agree; see `stopwise.live.comparing`.
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
        made = make_policy(policy)
        compare = make_comparator(comparator)
        settings = Settings(
            stages=names,
            costs=per_stage,
            mistake_cost=known.mistake_cost,
            policy=policy_text(made),
            measured=bool(measured),
            comparator=compare.label,
            combine=None if combine is None else getattr(combine, "__qualname__", repr(combine)),
            half_life=half_life,
            full_run_rate=full_run_rate,
            mode=mode,
            run_to=_stage_index("run_to", run_to, names),
            segment_strength=segment_strength,
        )
        super().__init__(
            settings,
            known,
            made,
            Reader(compare, combine),
            seed=whole_number("seed", seed, least=0),
            purse=Purse(item_budget, run_budget),
            drift=drift,
            on_drift=on_drift,
            store=store,
        )

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
                return [float(stage == run_to) for stage in range(self.stage_count)]
            return self._advice(segment, deepest)

    def advice(self, segment: str = "") -> list[float]:
        """The distribution that enforcing would draw the next depth from, in any mode."""
        with self._lock:
            self._settle()
            return self._advice(segment, self.stage_count - 1)

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
        self._refuse_store()
        self.restore(read_snapshot(path), str(path), fork=fork)

    def _refuse_store(self) -> None:
        if self._store is not None:
            raise StopwiseError("load: this learner has a store, which is its memory")

    def restore(
        self, form: Mapping[str, Any], what: str = "snapshot", *, fork: int | None = None
    ) -> None:
        """Go on from what `to_form` gave; see `load`."""
        self._refuse_store()
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


def _stage_index(field: str, stage: int | str, names: Sequence[str]) -> int:
    if isinstance(stage, str):
        if stage not in names:
            raise fail(field, stage, "one of " + ", ".join(names))
        return list(names).index(stage)
    accepted = f"a stage from 0 to {len(names) - 1}, or -1 for the last"
    if finite_number(field, stage, accepted) != stage or not -len(names) <= stage < len(names):
        raise fail(field, stage, accepted)
    return int(stage) % len(names)
