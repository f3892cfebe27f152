"""One round: its depth is known from the start, it takes outputs, it ends with an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from stopwise.checks import StopwiseError, fail, finite_number, names_settings_of
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.reader import Comparison, Reader
from stopwise.live.counters.prefixes import Prefixes
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.interrupts import Begun, SharedNote
from stopwise.live.items.path import ItemPath
from stopwise.live.items.row import Features
from stopwise.live.limits import check_cost
from stopwise.live.pairs import Added
from stopwise.live.record import Advice, RoundOutcome, RoundRecord

BILLED = 2
"""What `Round.unusual` is where calls reported what they cost, and nothing else is to be said."""


class RunBudgets(Protocol):
    """What ending a round the short way needs of budgets; see `Budgets`."""

    held: float
    parents: int


class CountedIn(Protocol):
    """What ending a round the short way needs of those who count it."""

    counters: SegmentCounters

    @property
    def budgets(self) -> RunBudgets:
        """What is held back for open rounds."""


class Books(Protocol):
    """What a round needs of those who opened it."""

    stage_count: int
    reader: Reader
    short: bool
    watched: bool
    heard: bool
    prefixes: Prefixes

    @property
    def ledger(self) -> CountedIn:
        """Where it is counted."""

    def stops(self, round: Round) -> bool:
        """Whether a round that is decided per item stops here; else it is at its next stage."""

    def finish(self, round: Round, abandoned: bool, wait: bool = True) -> RoundOutcome:
        """Count a round and give its answer."""

    def tell(self, round: Round, added: Added, outcome: RoundOutcome) -> None:
        """Tell who listens that a round has ended."""

    def advised_cost(self, round: Round) -> float:
        """What a round would have cost if the advice had been followed."""

    def advised_stage(self, round: Round) -> int:
        """The stage that would have answered if the advice had been followed."""

    async def kept(self, round: Round) -> None:
        """Wait until a round is in the store."""


@names_settings_of("fail", "abandon")
class Round:
    """A round that was begun; make one with `Learner.begin`.

    Attributes:
        number: the round number, from 1.
        segment: whose evidence it adds to.
        depth: the last stage to call.
        probability: the exact probability with which this depth was drawn.
        outputs: the outputs so far; None where a stage abstained or failed.
        confidences: how sure the stages said they are, as far as any said so; None elsewhere.
        skipped: bits of the stages that were jumped over, where stages can be called alone.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed:stage=1", mistake_cost=4)
    >>> round = learner.begin()
    >>> round.depth, round.probability
    (1, 1.0)
    >>> round.observe("spam")
    >>> round.observe("ham")
    >>> round.end()
    RoundOutcome(answer='ham', stage=1, cost=1.0)
    """

    __slots__ = (
        "__dict__", "__weakref__", "_books", "advised", "advised_probability", "begun", "depth",
        "ended_with", "number", "outputs", "probability", "reserved", "segment", "sequence",
        "unusual",
    )  # fmt: skip
    # What most rounds never need stands on the class, so that beginning one stays cheap; but not
    # what ending any round reads, nor what all rounds of a mode or under a budget have.
    ended: bool = True
    drawn_depth: int | None = None
    failed: int = 0
    costs: list[float | None] | None = None
    confidences: list[float | None] | None = None
    place: int = 0  # its number among the rounds that go to the store
    record: RoundRecord | None = None  # what happened, once ended; the short ways leave it out
    errors: Sequence[tuple[int, object]] = ()
    compared: Comparison | None = None  # how the answers compare, once that is known
    per_item: bool = False  # decided after each stage, from the situation the item is in
    full_run: bool = False  # to the end, whatever the outputs
    full_chance: float = 0.0
    counted: bool = False  # its situations, which an interrupt must not count twice
    rule_depth: int | None = None  # where the rule says to stop, once it has
    path: ItemPath | None = None  # the situations so far
    features: Features | None = None  # what is known before the first call
    silent: bool | None = None  # whether its last stage gave no answer, once somebody asked
    skipped: int = 0  # stages that were jumped over
    advised_skipped: int = 0  # and those that the advice would have
    answer_from: int | None = None  # only the stages before this one may give the answer

    def __init__(
        self,
        books: Books,
        sequence: int,
        number: int,
        segment: str,
        depth: int,
        probability: float,
    ) -> None:
        self._books = books
        self.sequence = sequence
        self.number = number
        self.segment = segment
        self.depth = depth
        self.probability = probability
        self.unusual = 0  # whether there is more to count than outputs: `BILLED` if only costs
        self.reserved = 0.0
        self.advised: int | None = None
        self.advised_probability: float
        self.outputs: list[Any] = []
        self.begun: Begun | SharedNote | None

    def observe(
        self, output: Any, cost: float | None = None, confidence: float | None = None
    ) -> None:
        """Tell the output of the next stage, with what is known of the call.

        Args:
            output: what the stage answered; None where it abstained.
            cost: what the call really cost.
            confidence: how sure the stage says it is; any number that sorts.
        """
        raise StopwiseError(f"round {self.number} has ended; begin another")

    @property
    def next_stage(self) -> int | None:
        """The stage to call next, as far as is known now; None where the depth is reached.

        Where stages are called alone this is not always the one after the last.

        >>> from stopwise.live import Learner
        >>> learner = Learner({"small": 1, "large": 5}, "fixed:stage=1", calls="alone")
        >>> round = learner.begin()                 # nothing to learn: no mistake costs 4
        >>> round.next_stage
        1
        >>> round.observe("yes"); round.end()
        RoundOutcome(answer='yes', stage=1, cost=5.0)
        """
        return len(self.outputs) if len(self.outputs) <= self.depth else None

    def skip_to(self, stage: int) -> None:
        """Jump to a stage: those in between are not called and cost nothing.

        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 1, "model": 5}, "fixed").begin()
        >>> round.skip_to(1); round.observe("yes"); round.end()
        RoundOutcome(answer='yes', stage=1, cost=5.0)
        """
        at = len(self.outputs)
        if stage > at:
            if stage > self.depth:
                raise fail("stage", stage, f"a stage up to {self.depth}, where this round stops")
            self.unusual |= 1
            self.skipped |= (1 << stage) - (1 << at)
            self.outputs.extend([ABSTAINED] * (stage - at))

    def fail(self, error: object = None, cost: float | None = None) -> None:
        """Tell that the next stage raised or ran out of time: recorded, never an agreement.

        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 0, "model": 1}, "fixed").begin()
        >>> round.observe("yes"); round.fail(TimeoutError()); round.end()
        RoundOutcome(answer='yes', stage=0, cost=1.0)
        """
        stage = len(self.outputs)
        self.observe(ABSTAINED, cost)
        self.unusual |= 1
        self.failed |= 1 << stage
        self.errors = [*self.errors, (stage, error)]

    def go_on(self) -> None:
        """Allow one stage more than was drawn, to stand in for one that failed or abstained.

        `depth` and `probability` move with it only in what is called: the record keeps what was
        drawn.

        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 0, "model": 1}, "fixed:stage=0").begin()
        >>> round.fail(); round.go_on(); round.observe("yes"); round.end()
        RoundOutcome(answer='yes', stage=1, cost=1.0)
        """
        if self.depth + 1 >= self._books.stage_count:
            raise fail("depth", self.depth + 1, f"a stage up to {self._books.stage_count - 1}")
        self.unusual |= 1
        if self.drawn_depth is None:
            self.drawn_depth = self.depth
        self.depth += 1

    def answer_after(self, stage: int) -> Any:
        """The answer if the round had stopped there: the last one given up to that stage.

        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 0, "model": 1}, "fixed").begin()
        >>> round.observe("yes"); round.observe("no")
        >>> round.answer_after(0), round.answer_after(1)
        ('yes', 'no')
        """
        return self._books.reader.after(self.outputs, stage)[0]

    def end(self, *, wait: bool = True) -> RoundOutcome:
        """Count the round and give the answer. Ending before the depth is `abandon`.

        Args:
            wait: with a store of durability "round", return when the round is kept; without, it is
                kept a moment later (`Learner.flush` waits for all).
        """
        books, outputs = self._books, self.outputs
        if books.short and not self.unusual and len(outputs) > self.depth:
            # The short way for rounds of which there is nothing to say but their outputs, with the
            # same result (a test compares them). Python lets signal handlers and other threads run
            # after calls: from the call of `tuple` to `append`, all of it is done, or none.
            try:
                added, outcome = books.prefixes.known[tuple(outputs)]
                if books.watched and added.pairs:
                    counters = books.ledger.counters
                    if len(counters.pending) + 1 >= counters.unwatched:
                        return books.finish(self, False, wait)  # a bet is to be looked at
                counters = books.ledger.counters
                tally = counters.tallies[self.segment]
            except (KeyError, TypeError):
                return books.finish(self, False, wait)
            if outcome[0] is outputs[-1] and not self.ended:  # 1 and True are one prefix
                waiting = counters.pending if added.pairs or counters.ordered else counters.quiet
                if self.reserved:
                    budgets = books.ledger.budgets
                    if self.sequence <= budgets.parents:
                        return books.finish(self, False, wait)
                    held = budgets.held - self.reserved
                    budgets.held = held if held > 0.0 else 0.0
                    self.reserved = 0.0
                    counters.pending_cost += outcome[2]
                self.ended_with = outcome
                self.__class__ = Round
                waiting.append((tally, added, self.advised))
                if books.heard:
                    books.tell(self, added, outcome)
                return outcome
        return books.finish(self, len(outputs) <= self.depth, wait)

    async def end_async(self) -> RoundOutcome:
        """The same, awaiting a comparator that is async or takes its time, and the store.

        >>> import asyncio
        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 0, "model": 1}, "fixed:stage=0").begin()
        >>> round.observe("yes"); asyncio.run(round.end_async())
        RoundOutcome(answer='yes', stage=0, cost=0.0)
        """
        reader = self._books.reader
        if reader.blocks and len(self.outputs) > 1 and self.compared is None:
            self.compared = await reader.compare_async(self.outputs)
        outcome = self.end(wait=False)
        await self.kept()
        return outcome

    async def kept(self) -> None:
        """Once ended: wait until the round is in the store, if that is what `durability` asks.

        >>> import asyncio
        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 0, "model": 1}, "fixed:stage=0").begin()
        >>> round.observe("yes"); outcome = round.end(wait=False)
        >>> asyncio.run(round.kept())
        """
        await self._books.kept(self)

    def abandon(self, *, wait: bool = True) -> RoundOutcome:
        """Give the round up: what it saw is counted all the same.

        Args:
            wait: see `end`.

        >>> from stopwise.live import Learner
        >>> round = Learner({"rule": 0, "model": 1}, "fixed").begin()
        >>> round.observe("yes"); round.abandon()
        RoundOutcome(answer='yes', stage=0, cost=0.0)
        """
        return self._books.finish(self, True, wait)

    @property
    def stage(self) -> int | None:
        """Once ended: the stage whose answer was given; None where no stage answered."""
        outcome: RoundOutcome | None = getattr(self, "ended_with", None)
        return None if outcome is None else outcome.stage

    @property
    def cost(self) -> float:
        """Once ended: the cost of all calls."""
        outcome: RoundOutcome | None = getattr(self, "ended_with", None)
        return 0.0 if outcome is None else outcome.cost

    @property
    def called(self) -> int:
        """How many stages have been called so far."""
        return len(self.outputs) - self.skipped.bit_count()

    @property
    def advice(self) -> Advice | None:
        """In the modes shadow and advise, once ended: what enforcing would have done."""
        if self.advised is None:
            return None
        cost = self._books.advised_cost(self) if self.ended else 0.0
        answer = self.answer_after(self._books.advised_stage(self))
        return Advice(self.advised, self.advised_probability, answer, cost)

    def _note_cost(self, stage: int, cost: float) -> None:
        value = check_cost("cost", cost)
        costs = self.costs
        if costs is None:
            self.unusual |= BILLED
            self.costs = [*[None] * stage, value]
            return
        if len(costs) < stage:
            costs.extend([None] * (stage - len(costs)))
        costs.append(value)

    def __enter__(self) -> Round:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.ended:
            self._books.finish(self, kind is not None or len(self.outputs) <= self.depth)

    @property
    def was_made(self) -> bool:
        """Whether there is all of it: False where an interrupt cut its making in two."""
        return hasattr(self, "outputs")

    def __repr__(self) -> str:
        state = "ended" if self.ended else f"{len(self.outputs)} outputs of {self.depth + 1}"
        return f"Round({self.number}, depth {self.depth}, {state})"


class OpenRound(Round):
    """A round that has not ended; when it ends, its class becomes `Round`."""

    __slots__ = ()
    ended = False

    def observe(
        self, output: Any, cost: float | None = None, confidence: float | None = None
    ) -> None:
        """Tell the output of the next stage; see `Round.observe`, which is called once it ended."""
        outputs = self.outputs
        if len(outputs) > self.depth:
            raise StopwiseError(
                f"round {self.number} stops at stage {self.depth}, whose output is there already"
            )
        sure = None if confidence is None else finite_number("confidence", confidence)
        if cost is not None:
            self._note_cost(len(outputs), cost)
        if sure is not None:  # only now: what is refused leaves no trace, and may be told again
            known = self.confidences or []
            self.confidences = [*known, *[None] * (len(outputs) - len(known)), sure]
        outputs.append(output)

    # Users know it as this, which is what Python calls it where a keyword is misspelt.
    observe.__qualname__ = "Round.observe"


Dropped = defaultdict[Round, Callable[[], int]]
"""Open rounds of one learner that nobody holds any more, as keys."""


def dropped_rounds() -> tuple[Dropped, type[OpenRound]]:
    """Where open rounds of one learner go when they are dropped, and the class of such rounds.

    No line of Python may run when a round is dropped: the collector can run while this thread holds
    a lock, and what a signal handler raises in `__del__` is lost with the round. So it is written
    in parts that are compiled: Python looks `__del__` up, which is a property, so `dropped[round]`
    is asked for, which keeps the round and gives something that can be called. Python does so once
    for each round. The class, the rounds and their learner hold each other, and go together.

    >>> dropped, kind = dropped_rounds()
    >>> round = kind.__new__(kind)
    >>> del round
    >>> len(dropped)
    1
    """
    dropped: Dropped = defaultdict(partial(partial, int))

    class LearnersRound(OpenRound):
        """An open round of this learner."""

        __slots__ = ()
        __del__ = property(dropped.__getitem__)

    return dropped, LearnersRound
