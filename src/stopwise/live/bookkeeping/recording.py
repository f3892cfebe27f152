"""From a round to its record and its answer: what was called, what it cost, what agrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopwise.abstentions import Abstentions
from stopwise.evidence import ABSTAINED
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.choosing.prices import Prices
from stopwise.live.comparing.reader import Comparison, Reader
from stopwise.live.pairs import Added
from stopwise.live.record import RoundRecord, agreed
from stopwise.live.round import Round
from stopwise.live.settings import Mode


class RoundReader:
    """Reads what happened in rounds. Comparing may take long, so no lock is held meanwhile.

    Args:
        reader: compares outputs.
        prices: what calls cost that did not report it.
        items: what decides per item, if the policy does.
        mode: whether depths are enforced.
        abstentions: what it means that a stage gives no answer.
    """

    __slots__ = ("_enforced", "_goes_on", "_items", "_prices", "_reader")

    def __init__(
        self,
        reader: Reader,
        prices: Prices,
        items: ItemDecider | None,
        mode: Mode,
        abstentions: Abstentions = "leave out",
    ) -> None:
        self._goes_on = abstentions == "go on"
        self._reader = reader
        self._prices = prices
        self._items = items
        self._enforced = mode == "enforce"

    def read(self, round: Round, writer: int, abandoned: bool) -> tuple[RoundRecord, Any]:
        """What happened in a round, and its answer."""
        record = self._without_comparing(round, writer, abandoned)
        # One that was drawn elsewhere may have been advised alone where others are enforced.
        enforced = self._enforced and round.advised is None
        if self._items is not None and enforced:
            likeliest = self._items.answering(round)
            record.stage = record.stage if likeliest is None else likeliest
        outputs, reader, stage = round.outputs, self._reader, record.stage
        compared = round.compared
        if compared is None:
            compared = (
                reader.compare(outputs) if record.called > 1 else Comparison(int(stage == 0), 0)
            )
            round.compared = compared
        answer = None if stage is None else reader.answer_of(outputs, stage, compared)
        record.cost += compared.cost
        record.answered, record.disagreed = compared.answered, compared.disagreed
        record.undecided = compared.undecided
        if round.path is not None and not round.full_run:
            # It went on because of its outputs: counted as pairs, they would bias the counters.
            record.answered = 0 if stage is None else 1 << stage
            record.disagreed = record.undecided = 0
        if self._items is not None:
            record.item = self._items.row_of(round, record, enforced=enforced)
        if round.advised is not None:
            self._note_advice(record, round.advised_skipped)
        return record, answer

    def read_regular(self, round: Round, added: Added, cost: float) -> RoundRecord:
        """The same, in short, for a round that has nothing to tell of but outputs."""
        # What is usual stands on the class, so that a record is made quickly.
        record = RoundRecord.__new__(RoundRecord)
        record.number = round.number
        record.writer = 0
        record.sequence = round.sequence
        record.segment = round.segment
        record.depth = round.depth
        record.probability = round.probability
        record.stage = added.last
        record.called = len(round.outputs)
        record.answered = added.answered
        record.disagreed = added.disagreed
        record.cost = cost
        record.outputs = round.outputs
        if round.costs is not None:
            record.costs = round.costs
        if round.confidences is not None:
            record.confidences = round.confidences
        if round.advised is not None:
            record.advised = round.advised
            self._note_advice(record)
        return record

    def _without_comparing(self, round: Round, writer: int, abandoned: bool) -> RoundRecord:
        outputs, called = round.outputs, len(round.outputs)
        usable = called if round.answer_from is None else round.answer_from
        said = (at for at in range(usable - 1, -1, -1) if outputs[at] is not ABSTAINED)
        return RoundRecord(
            number=round.number,
            writer=writer,
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
            cost=self._prices.of_calls(round.costs, called, round.skipped),
            skipped=round.skipped,
            abandoned=abandoned,
            advised=round.advised,
            outputs=outputs,
            confidences=round.confidences,
        )

    def advised_cost(self, round: Round) -> float:
        """What a round would have cost if the advice had been followed."""
        if round.advised is None:
            return 0.0
        return self._cost_up_to(
            self.reached(round.outputs, round.advised), round.costs, round.advised_skipped
        )

    def _cost_up_to(
        self, stage: int, reported: Sequence[float | None] | None, skipped: int
    ) -> float:
        return self._prices.of_calls((reported or ())[: stage + 1], stage + 1, skipped)

    def reached(self, outputs: Sequence[Any], stage: int) -> int:
        """The last stage that is called where a round is to stop at one.

        It is another one where rounds go on after an abstention; so is the last that was called
        where none of them answered.
        """
        if not self._goes_on:
            return stage
        for at in range(stage, len(outputs)):
            if not self._reader.is_silent(outputs[: at + 1]):
                return at
        return max(stage, len(outputs) - 1)

    def _note_advice(self, record: RoundRecord, skipped: int = 0) -> None:
        advised = record.advised
        assert advised is not None
        outputs = record.outputs or ()
        advised = self.reached(outputs, advised)
        record.advised_cost = self._cost_up_to(advised, record.costs, skipped)
        spoke = [
            at for at, one in enumerate(outputs) if one is not ABSTAINED and not skipped >> at & 1
        ]
        early = max((at for at in spoke if at <= advised), default=None)
        if record.stage is not None and early is not None and record.called > advised:
            record.advised_same = agreed(record, early, record.stage)
