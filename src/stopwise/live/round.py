"""One round: its depth is known from the start, it is told outputs, it ends with an answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stopwise.checks import StopwiseError, fail, finite_number
from stopwise.evidence import ABSTAINED

if TYPE_CHECKING:
    from stopwise.live.comparing.reader import Comparison, Reader
    from stopwise.live.items.path import ItemPath
    from stopwise.live.items.row import Features
    from stopwise.live.record import RoundRecord


class RoundOutcome(NamedTuple):
    """What a round ended with: the answer, the stage that gave it, the cost of all calls.

    `stage` is None, and so is the answer, where no stage answered.

    >>> from stopwise.live import Learner
    >>> round = Learner({"rule": 0, "model": 1}, "fixed:stage=1", mistake_cost=4).begin()
    >>> round.observe("spam"); round.observe("ham")
    >>> answer, stage, cost = round.end()
    >>> answer, stage, cost
    ('ham', 1, 1.0)
    """

    answer: Any
    stage: int | None
    cost: float


class Advice(NamedTuple):
    """What enforcing would have done: the stage, its probability, its answer, its cost.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed:stage=0", mistake_cost=4, mode="advise")
    >>> round = learner.begin()
    >>> round.observe("spam"); round.observe("ham")
    >>> round.end()                      # the user has the answer of the last stage
    RoundOutcome(answer='ham', stage=1, cost=1.0)
    >>> round.advice
    Advice(stage=0, probability=1.0, answer='spam', cost=0.0)
    """

    stage: int
    probability: float
    answer: Any
    cost: float


class Books(Protocol):
    """What a round asks of whoever keeps the books; the bookkeeper has it all."""

    reader: Reader
    stage_count: int
    forgotten: deque[Round]

    def finish(self, round: Round, abandoned: bool, wait: bool = True) -> RoundOutcome:
        """Count the round and give its answer."""

    async def kept(self, round: Round) -> None:
        """Wait until the round is in the store."""


class Round:
    """A round that was begun; make one with `Learner.begin`.

    Attributes:
        number: the round number, from 1.
        segment: whose evidence it adds to.
        depth: the last stage to call.
        probability: the exact probability with which this depth was drawn.
        outputs: the outputs told so far; None where a stage abstained or failed.
        confidences: how sure the stages said they are, as far as any said so; None elsewhere.

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

    # What most rounds never need stands on the class, so that beginning one stays cheap.
    ended: bool = False
    unusual: bool = False  # there is more to count than outputs
    drawn_depth: int | None = None
    failed: int = 0
    stage: int | None = None
    cost: float = 0.0
    costs: list[float | None] | None = None
    confidences: list[float | None] | None = None
    advised: int | None = None
    advised_probability: float = 0.0
    place: int = 0  # its number among the rounds that go to the store
    record: RoundRecord | None = None  # what happened, once ended; the short way leaves it out
    reserved: float = 0.0
    errors: Sequence[tuple[int, object]] = ()
    compared: Comparison | None = None  # how the answers compare, once that is known
    looks: bool = False  # decided after each stage, from the situation the item is in
    full_run: bool = False  # to the end, whatever the outputs
    full_chance: float = 0.0
    counted: bool = False  # its situations, which an interrupt must not count twice
    rule_depth: int | None = None  # where the rule says to stop, once it has
    path: ItemPath | None = None  # the situations so far
    features: Features | None = None  # what is known before the first call
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
        self.outputs: list[Any] = []

    def observe(
        self, output: Any, cost: float | None = None, confidence: float | None = None
    ) -> None:
        """Tell the output of the next stage, with what is known of the call.

        Args:
            output: what the stage answered; None where it abstained.
            cost: what the call really cost.
            confidence: how sure the stage says it is; any number that sorts.
        """
        outputs = self.outputs
        if len(outputs) > self.depth or self.ended:
            self._refuse()
        if confidence is not None:
            sure = finite_number("confidence", confidence)
            known = self.confidences or []
            self.confidences = [*known, *[None] * (len(outputs) - len(known)), sure]
        if cost is not None:
            self._note_cost(len(outputs), cost)
        outputs.append(output)

    def fail(self, error: object = None, cost: float | None = None) -> None:
        """Tell that the next stage raised or ran out of time: recorded, never an agreement."""
        stage = len(self.outputs)
        self.observe(ABSTAINED, cost)
        self.unusual = True
        self.failed |= 1 << stage
        self.errors = [*self.errors, (stage, error)]

    def go_on(self) -> None:
        """Allow one stage more than was drawn, to stand in for one that failed.

        `depth` and `probability` move with it only in what is called: the record keeps what was
        drawn.
        """
        if self.depth + 1 >= self._books.stage_count:
            raise fail("depth", self.depth + 1, f"a stage up to {self._books.stage_count - 1}")
        self.unusual = True
        if self.drawn_depth is None:
            self.drawn_depth = self.depth
        self.depth += 1

    def answer_after(self, stage: int) -> Any:
        """The answer if the round had stopped there: the last one given up to that stage."""
        return self._books.reader.after(self.outputs, stage)[0]

    def end(self, *, wait: bool = True) -> RoundOutcome:
        """Count the round and give the answer. Ending before the depth is `abandon`.

        Args:
            wait: with a store of durability "round", return when the round is kept; without, it is
                kept a moment later (`Learner.flush` waits for all).
        """
        return self._books.finish(self, len(self.outputs) <= self.depth, wait)

    async def end_async(self) -> RoundOutcome:
        """The same, awaiting a comparator that is async or takes its time, and the store."""
        reader = self._books.reader
        if reader.takes_time and len(self.outputs) > 1 and self.compared is None:
            self.compared = await reader.compare_async(self.outputs)
        outcome = self.end(wait=False)
        await self.kept()
        return outcome

    async def kept(self) -> None:
        """Once ended: wait until the round is in the store, if that is what `durability` asks."""
        await self._books.kept(self)

    def abandon(self) -> RoundOutcome:
        """Give the round up: what it saw is counted all the same."""
        return self._books.finish(self, True)

    @property
    def called(self) -> int:
        """How many stages have been called so far."""
        return len(self.outputs)

    @property
    def advice(self) -> Advice | None:
        """In the modes shadow and advise, once ended: what enforcing would have done."""
        if self.advised is None:
            return None
        cost = 0.0 if self.record is None else self.record.advised_cost
        return Advice(self.advised, self.advised_probability, self.answer_after(self.advised), cost)

    def _note_cost(self, stage: int, cost: float) -> None:
        value = finite_number("cost", cost, "a number, 0 or more")
        if value < 0:
            raise fail("cost", cost, "a number, 0 or more")
        self.unusual = True
        if self.costs is None:
            self.costs = []
        self.costs.extend([None] * (stage - len(self.costs)))
        self.costs.append(value)

    def _refuse(self) -> None:
        if self.ended:
            raise StopwiseError(f"round {self.number} has ended; begin another")
        raise StopwiseError(
            f"round {self.number} stops at stage {self.depth}, which has been told already"
        )

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

    def __del__(self) -> None:
        # No lock may be taken here: the collector can run while this thread holds it. The round is
        # counted the next time the learner is used.
        if not self.ended:
            books = getattr(self, "_books", None)
            if books is not None:
                books.forgotten.append(self)

    def __repr__(self) -> str:
        state = "ended" if self.ended else f"told {len(self.outputs)} of {self.depth + 1}"
        return f"Round({self.number}, depth {self.depth}, {state})"
