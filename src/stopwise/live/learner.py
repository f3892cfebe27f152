"""The learner: opens rounds, counts them, and knows from evidence alone how deep to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, overload

from stopwise.checks import StopwiseError, known_names, names_settings_of, whole_number
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live.bookkeeping.bookkeeper import Bookkeeper
from stopwise.live.bookkeeping.drawn import begin_drawn
from stopwise.live.bookkeeping.funding import funded, funded_async
from stopwise.live.bookkeeping.knowledge import Knowledge
from stopwise.live.bookkeeping.many_rounds import ManyRounds
from stopwise.live.bookkeeping.resuming import resume_from, snapshot_of
from stopwise.live.choosing.readings import Certain, LiveReading
from stopwise.live.choosing.stateless_decider import DrawnItem, StatelessDecider
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.parts import parts_of
from stopwise.live.round import Round
from stopwise.live.stores.queueing.status import StoreStatus
from stopwise.live.stores.snapshot import read_snapshot, write_snapshot
from stopwise.live.watching.drift import DriftAlarm
from stopwise.live.watching.explain import Explanation
from stopwise.live.watching.report import LiveReport
from stopwise.policies.base import Policy
from stopwise.policies.per_item.rule import RuleDecision
from stopwise.policies.registry import DEFAULT_POLICY
from stopwise.situations.transitions import Transitions


@names_settings_of(
    "best_stage", "explain", "report", "evidence", "probabilities", "advice", "begin_drawn",
    "begin_async", "add_evidence", "load", "restore",
)  # fmt: skip
class Learner:
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
        half_life: after this number of rounds of a segment, evidence counts half. None keeps all.
        full_run_rate: share of rounds that are sent through all stages whatever the policy says.
        drift: watch disagreement rates and raise alarms.
        on_drift: called with every `DriftAlarm`.
        mode: "enforce" stops at the depth drawn; "shadow" and "advise" run to `run_to` and note
            what enforcing would have done.
        run_to: the stage, by name or number, of the modes shadow and advise; the last by default.
        item_budget: a round is never begun, nor goes on, beyond this cost.
        run_budget: nor all rounds of this learner together; see `BudgetError`.
        segment_strength: how many rounds the other segments' evidence may count for in a segment.
        rule: a per-item rule to begin with, or the file that `stopwise fit` wrote. The policy is
            then `per-item`, unless another that decides per item is named.
        agree: promise that at least this share of the rounds has the answer of a full run; rounds
            are full runs until that is proven. Policy: as with `rule`; the mistake cost is unused.
        level: how sure that is, at all times together.
        calls: "cascade", a stage needs those before it; "alone", each can be called by itself: a
            round then calls the stage that the policy draws and no other, but for full runs, whose
            known probability falls as the square root of the rounds and which alone are counted.
            Not given it is "cascade", and reports state savings both ways.
        look_rate: the share of rounds that run to the end to look, once the rule may stop early.
        max_segments: beyond this many, new segments are counted together, as "other".
        abstentions: what it means that a stage gives no answer: "leave out" (the pair is not
            counted, the answer is the last one given), "go on" (the next stage is called until one
            answers) or "mistake" (no answer is a wrong one); see `stopwise.abstentions`.
        store: a `RoundLog`, `SqliteStore` or `PostgresStore`; without one, use `save` and `load`.
        on_round: called with the `RoundRecord` of every round that has ended.

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
        policy: str | Policy = DEFAULT_POLICY,
        *,
        mistake_cost: float = 1.0,
        seed: int = 0,
        measured: bool = False,
        **options: Unpack[LearnerKeywords],
    ) -> None:
        own = ("policy", "mistake_cost", "seed", "measured")
        known_names("Learner", options, (*own, *LearnerKeywords.__optional_keys__), "setting")
        parts = parts_of(stages, policy, mistake_cost, measured, options)
        self.settings = parts.settings
        self.policy = parts.policy
        self.reader = parts.reader
        self._books = Bookkeeper(
            parts.settings, parts.costs, parts.policy, parts.reader,
            whole_number("seed", seed, least=0), options, parts.rule,
        )  # fmt: skip
        self._knowledge = Knowledge(self._books, parts.policy.label())
        self.many = ManyRounds(self._books)
        if not self.shares_budget:  # one call fewer in every round
            self.begin = self._books.opener.begin  # type: ignore[method-assign]

    def __repr__(self) -> str:
        stages = zip(self.stages, self.settings.costs, strict=True)
        costs = ", ".join(f"{name}: {cost:g}" for name, cost in stages)
        return f"Learner({{{costs}}}, {self.policy.label()!r}, {self.rounds} rounds)"

    # ---- rounds ------------------------------------------------------------------------------

    def begin(self, segment: str = "", features: Mapping[str, Any] | None = None) -> Round:
        """Open a round: its depth is drawn now, from all rounds that have ended so far.

        Args:
            segment: whose evidence it uses and adds to.
            features: what is known of the item, by name, for a policy that decides per item.
        """
        books = self._books
        return funded(books.ledger, lambda: books.opener.begin(segment, features))

    async def begin_async(
        self, segment: str = "", features: Mapping[str, Any] | None = None
    ) -> Round:
        """The same; where a store is asked for more of a shared budget, the event loop goes on.

        >>> import asyncio
        >>> asyncio.run(Learner({"rule": 0, "model": 1}, "fixed").begin_async()).depth
        1
        """
        books = self._books
        if not books.ledger.budgets.shared:
            return self.begin(segment, features)
        return await funded_async(books.ledger, lambda: books.opener.begin(segment, features))

    def begin_drawn(
        self,
        depth: int,
        probability: float,
        segment: str = "",
        *,
        advised: tuple[int, float] | None = None,
        item: DrawnItem | None = None,
    ) -> Round:
        """Open a round whose depth was drawn elsewhere, as by another process of a service.

        Args:
            depth: what was drawn.
            probability: with which probability it was.
            segment: whose evidence it adds to.
            advised: in the modes shadow and advise: the depth that enforcing would have drawn, and
                its probability.
            item: where rounds are decided per item, how this one was; see `item_decider`.

        >>> round = Learner({"rule": 0, "model": 1}).begin_drawn(1, 0.25)
        >>> round.depth, round.probability
        (1, 0.25)
        """
        return begin_drawn(self._books, self.begin, depth, probability, segment, advised, item)

    def go_deeper(self, round: Round) -> bool:
        """Let a round call one stage more than was drawn, if there is one and it can be paid.

        >>> learner = Learner({"rule": 0, "model": 1}, "fixed:stage=0", mistake_cost=4)
        >>> round = learner.begin()
        >>> learner.go_deeper(round), round.depth, learner.go_deeper(round)
        (True, 1, False)
        """
        return self._books.go_deeper(round)

    def goes_on(self, round: Round) -> bool:
        """Let a round at its depth call one stage more, where its last stage gave no answer.

        That is so with `abstentions="go on"`, as long as there is another stage that can be paid.

        >>> learner = Learner([0, 1, 5], "fixed:stage=0", mistake_cost=9, abstentions="go on")
        >>> round, outputs = learner.begin(), iter([None, "yes"])
        >>> while len(round.outputs) <= round.depth or learner.goes_on(round):
        ...     round.observe(next(outputs))
        >>> round.end()
        RoundOutcome(answer='yes', stage=1, cost=1.0)
        """
        return self._books.goes_on(round)

    def can_pay(self, round: Round) -> bool:
        """Whether the budget of the item has room for the next stage, at what it cost so far.

        >>> learner = Learner([1, 1], "fixed", item_budget=2)
        >>> round = learner.begin()
        >>> round.observe("a", cost=1.5)
        >>> learner.can_pay(round)
        False
        """
        return self._books.can_pay(round)

    def stops(self, round: Round) -> bool:
        """Whether a round that is decided per item stops after the stages it has called.

        >>> learner = Learner([0, 1], "per-item", mistake_cost=20)
        >>> round = learner.begin()
        >>> round.observe("a")
        >>> learner.stops(round)                       # the first rounds are full runs
        False
        """
        return self._books.stops(round)

    @property
    def shares_budget(self) -> bool:
        """Whether other processes spend from the same budget."""
        return self._books.ledger.budgets.shared

    @property
    def limits_items(self) -> bool:
        """Whether there is a budget of an item, so that `can_pay` is to be asked."""
        return self._books.ledger.budgets.item_budget is not None

    @property
    def per_item(self) -> bool:
        """Whether rounds are decided per item, after each stage."""
        return self._books.items is not None

    @property
    def item_decider(self) -> StatelessDecider | None:
        """Decides items whose rounds are kept elsewhere and are counted by `begin_drawn`.

        None where the policy knows the depth before the first call, or a promise is kept, which
        needs every round to begin here.
        """
        items = self._books.items
        if items is None or items.guard is not None:
            return None
        return StatelessDecider(items, self._books, lambda: self.rounds)

    @property
    def transitions(self) -> Transitions | None:
        """What a per-item policy has counted: evidence that adds up over machines.

        >>> Learner([0, 1], "per-item").transitions is None     # no bins before the first rounds
        True
        """
        return None if self._books.items is None else self._books.items.counts

    def add_transitions(self, counts: Transitions) -> None:
        """Start from, or add, what another learner of the same rule has counted per item.

        >>> one, two = Learner([0, 1], "per-item"), Learner([0, 1], "per-item")
        >>> for _ in range(40):
        ...     with one.begin() as round: round.observe("a"); round.observe("b")
        >>> two.add_transitions(one.transitions)
        >>> two.transitions.rounds
        40
        """
        self._books.add_transitions(counts)

    # ---- what it knows -----------------------------------------------------------------------

    @property
    def stage_count(self) -> int:
        """How many stages there are."""
        return self._books.stage_count

    @property
    def seed(self) -> int:
        """The seed of the depths that are drawn; after `load`, that of the snapshot."""
        return self._books.ledger.seed

    @property
    def alarms(self) -> list[DriftAlarm]:
        """All drift alarms so far."""
        return self._books.ledger.listeners.alarms

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages."""
        return self.settings.stages

    @property
    def rounds(self) -> int:
        """How many rounds have ended, in all segments and by all who share the store."""
        return self._knowledge.rounds

    def evidence(self, segment: str = "") -> Evidence:
        """The exact counts of a segment.

        >>> Learner([0, 1]).evidence().seen[0, 1]
        np.int64(0)
        """
        return self._knowledge.evidence(segment)

    @property
    def segments(self) -> list[str]:
        """The segments that have begun."""
        return list(self._books.counters.tallies)

    @property
    def costs(self) -> Costs:
        """The costs that the rule uses now: those given, or running means."""
        with self._books.ledger.lock:
            return self._books.ledger.prices.costs

    @property
    def own_costs(self) -> Costs:
        """What each stage's calls cost now, without what follows where a round goes on.

        >>> Learner({"rule": 0, "model": 1}, abstentions="go on").own_costs.per_stage
        array([0., 1.])
        """
        with self._books.ledger.lock:
            return self._books.ledger.prices.own

    def probabilities(self, segment: str = "") -> list[float]:
        """The distribution of the next depth, with all that `begin` takes into account."""
        return self._knowledge.probabilities(segment)

    def advice(self, segment: str = "") -> list[float]:
        """The distribution that enforcing would draw the next depth from, in any mode.

        >>> learner = Learner({"rule": 0, "model": 1}, mode="shadow", mistake_cost=4)
        >>> learner.advice(), learner.probabilities()  # in shadow, all stages are called
        ([0.25, 0.75], [0.0, 1.0])
        """
        return self._knowledge.advice(segment)

    @overload
    def best_stage(self, segment: str = "", reading: LiveReading = ...) -> int: ...
    @overload
    def best_stage(self, segment: str = "", *, reading: Certain) -> int | None: ...
    def best_stage(self, segment: str = "", reading: str = "weak-dominance") -> int | None:
        """Where to stop for good, by one reading of the evidence (`report().readings` has all).

        By default the paper's rule; the last stage where nothing is known. "certain" may be None.

        >>> Learner({"rule": 0, "model": 1}, mistake_cost=4).best_stage()
        1
        """
        return self._knowledge.best_stage(segment, reading)

    @overload
    def explain(self, about: str = "") -> Explanation: ...
    @overload
    def explain(self, about: Round) -> list[RuleDecision]: ...
    def explain(self, about: str | Round = "") -> Explanation | list[RuleDecision]:
        """Why rounds go as deep as they do: as text, `to_json()` and `plot()`.

        Args:
            about: a segment (its next round), or a round (what a per-item rule says on its way).

        >>> Learner({"rule": 0, "model": 1}, mistake_cost=4).explain().pairs[0].threshold
        0.25
        """
        if isinstance(about, Round):
            return [] if self._books.items is None else self._books.items.explain(about)
        return self._knowledge.explanation(about)

    def report(self, segment: str | None = None) -> LiveReport:
        """Counts of a segment, or of all together, and what advice would have saved.

        >>> learner = Learner({"rule": 0, "model": 1}, "fixed", mistake_cost=4)
        >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
        >>> learner.report().calls, learner.report().spent
        ((1, 1), 1.0)
        """
        return self._knowledge.report(segment)

    def add_evidence(self, evidence: Evidence, segment: str = "") -> None:
        """Start from evidence gathered elsewhere (a log, another learner, other prices).

        >>> learner = Learner([0, 1], mistake_cost=4)
        >>> learner.add_evidence(Evidence.from_counts([[0, 90], [0, 0]], [[0, 2], [0, 0]]))
        >>> learner.best_stage(), learner.rounds
        (0, 0)
        """
        self._books.ledger.add_evidence(segment, evidence)

    # ---- keeping -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a snapshot: to a temporary file, flushed to disk, then put in place at once.

        Rounds still open are not in it; they count only where they end.

        >>> import tempfile
        >>> learner, path = Learner([0, 1], "fixed"), tempfile.mkdtemp() + "/kept.json"
        >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
        >>> learner.save(path)
        >>> again = Learner([0, 1], "fixed")
        >>> again.load(path)
        >>> again.rounds
        1
        """
        write_snapshot(path, self.to_form())

    def to_form(self) -> dict[str, Any]:
        """What a snapshot holds, as JSON would.

        >>> sorted(Learner([0, 1]).to_form())
        ['seed', 'settings', 'state']
        """
        return snapshot_of(self._books)

    def load(self, path: str | Path, *, fork: int | None = None) -> None:
        """Go on from a snapshot, in the place of all that this learner knew.

        Args:
            path: what `save` wrote.
            fork: None resumes exactly: the same future decisions as if it had never stopped, which
                needs the same settings (the seed is the snapshot's). A new seed here keeps the
                evidence only, as several copies of one learner should.

        >>> import tempfile
        >>> one, path = Learner([0, 1], seed=1), tempfile.mkdtemp() + "/kept.json"
        >>> one.save(path)
        >>> two = Learner([0, 1])
        >>> two.load(path, fork=2)
        >>> two.seed
        2
        """
        self._refuse_store()
        self.restore(read_snapshot(path), str(path), fork=fork)

    def _refuse_store(self) -> None:
        if self._books.queue is not None:
            raise StopwiseError("load: this learner has a store, which is its memory")

    def restore(
        self, form: Mapping[str, Any], what: str = "snapshot", *, fork: int | None = None
    ) -> None:
        """Go on from what `to_form` gave; see `load`.

        >>> one, two = Learner([0, 1], seed=1), Learner([0, 1])
        >>> two.restore(one.to_form())
        >>> two.seed
        1
        """
        self._refuse_store()
        resume_from(self._books, form, what, fork=fork)

    def refresh(self) -> None:
        """Write what is queued, and read what others have added to a shared store.

        >>> import tempfile
        >>> from stopwise.live import SqliteStore
        >>> path = tempfile.mkdtemp() + "/shared.db"
        >>> one, two = (Learner([0, 1], "fixed", store=SqliteStore(path)) for _ in range(2))
        >>> with one.begin() as round: round.observe("yes"); round.observe("no")
        >>> two.refresh()
        >>> two.rounds
        1
        >>> one.close(); two.close()
        """
        self._books.ledger.refresh()

    def flush(self) -> None:
        """Wait until all rounds that have ended are in the store.

        >>> import tempfile
        >>> from stopwise.live import SqliteStore
        >>> store = SqliteStore(tempfile.mkdtemp() + "/kept.db", durability="behind")
        >>> learner = Learner([0, 1], "fixed", store=store)
        >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
        >>> learner.flush()
        >>> learner.store_status.queued
        0
        >>> learner.close()
        """
        if self._books.queue is not None:
            self._books.queue.flush()

    def wait_as_durable(self) -> None:
        """The same where the store's durability is "round"; else, no round is late afterwards.

        >>> Learner([0, 1]).wait_as_durable()           # without a store nothing is waited for
        """
        self._books.ledger.keeper.wait_as_durable()

    @property
    def store_status(self) -> StoreStatus:
        """How the store is doing: what is kept, queued, failed."""
        return self._books.ledger.keeper.status()

    def close(self) -> None:
        """Count rounds that were forgotten, write what is queued, and let the store go.

        >>> with Learner([0, 1], "fixed") as learner:   # closed at the end
        ...     round = learner.begin()
        >>> learner.close()                             # and may be again
        """
        self._books.close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()
