"""What is kept of a finished round: enough to count it again, readable in a log."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stopwise.abstentions import Abstentions
from stopwise.checks import StopwiseError, fail, finite_number, known_names, parse_json_object
from stopwise.live.abstaining import added_under
from stopwise.live.items.row import ItemRow
from stopwise.live.limits import (
    LARGEST_ROUND_COST,
    MOST_ROUNDS,
    check_cost,
    check_probability,
)
from stopwise.live.pairs import Added, bits, pair_list, pair_number

MOST_STAGES = 1000


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


@dataclass
class RoundRecord:
    """A finished round.

    Attributes:
        number: the round number that the policy was given, from 1.
        writer: which of several learners sharing a store; 0 where there is one.
        sequence: this writer's own count of rounds begun; (writer, sequence) names the round.
        segment: whose evidence it is; "" where segments are not used.
        depth: the stage at which it was to stop, with `probability` (its exact propensity).
        stage: the stage whose answer was given; None where no stage answered.
        called: how many stages were called: always the first ones, but for `skipped`.
        skipped: bits of the stages among them that were jumped over and not called, where stages
            can be called alone; of all of them where the round was given up right after a jump.
        answered: bits of the stages that answered (did not abstain, did not fail).
        disagreed: bits of the pairs of answers that differed, see `stopwise.live.pairs`.
        failed: bits of the stages that raised or ran out of time.
        undecided: bits of the pairs of answers of which the comparator could not say.
        costs: what each call really cost, where it was reported; None elsewhere.
        confidences: how sure the stages said they are, where they said so; None elsewhere.
        cost: of the whole round.
        abandoned: whether it ended before its depth.
        advised: in the modes shadow and advise, the depth that enforcing would have drawn.
        advised_cost: what that would have cost.
        advised_same: whether its answer agrees with the one given; None where not known.
        outputs: the outputs themselves, if the log was asked to keep them.
        item: what a round that is decided per item showed.

    >>> from stopwise.live import Learner
    >>> records = []
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed", on_round=records.append)
    >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
    >>> records[0].called, records[0].stage, records[0].disagreed
    (2, 1, 1)
    """

    number: int
    writer: int
    sequence: int
    segment: str
    depth: int
    probability: float
    stage: int | None
    called: int
    answered: int
    disagreed: int
    failed: int = 0
    costs: Sequence[float | None] | None = None
    cost: float = 0.0
    abandoned: bool = False
    advised: int | None = None
    advised_cost: float = 0.0
    advised_same: bool | None = None
    outputs: Sequence[Any] | None = None
    confidences: Sequence[float | None] | None = None
    undecided: int = 0
    item: ItemRow | None = None
    skipped: int = 0

    def to_form(self) -> dict[str, Any]:
        """As JSON holds it; what is usual is left out.

        >>> RoundRecord(1, 0, 1, "", 1, 0.75, 1, 2, 0b11, 0b1, cost=0.25).to_form()["disagreed"]
        [[0, 1]]
        """
        form: dict[str, Any] = {
            "round": self.number,
            "depth": self.depth,
            "probability": self.probability,
            "stage": self.stage,
            "called": self.called,
            "answered": bits(self.answered),
            "disagreed": _pairs(self.disagreed, self.called),
            "cost": self.cost,
        }
        if self.undecided:
            form["undecided"] = _pairs(self.undecided, self.called)
        if self.writer:
            form["writer"] = self.writer
        if self.sequence != self.number:
            form["sequence"] = self.sequence
        if self.segment:
            form["segment"] = self.segment
        if self.failed:
            form["failed"] = bits(self.failed)
        if self.skipped:
            form["skipped"] = bits(self.skipped)
        if self.costs is not None:
            form["costs"] = list(self.costs)
        if self.confidences is not None:
            form["confidences"] = list(self.confidences)
        if self.abandoned:
            form["abandoned"] = True
        if self.advised is not None:
            form["advised"] = [self.advised, self.advised_cost, self.advised_same]
        if self.outputs is not None:
            form["outputs"] = list(self.outputs)
        if self.item is not None:
            form["item"] = self.item.to_form()
        return form

    def to_text(self, *, keep_outputs: bool) -> str:
        """One line of JSON that can be read back whatever the outputs are.

        >>> record = RoundRecord(1, 0, 1, "", 0, 1.0, 0, 1, 0b1, 0, outputs=[{1: 2, "1": 3}])
        >>> json.loads(record.to_text(keep_outputs=True))["outputs"]
        ["{1: 2, '1': 3}"]
        """
        form = self.to_form()
        outputs = form.pop("outputs", None)
        text = json.dumps(form)
        if not keep_outputs or outputs is None:
            return text
        return f'{text[:-1]}, "outputs": [{", ".join(map(_output_text, outputs))}]}}'

    @classmethod
    def from_form(cls, form: Mapping[str, Any], stage_count: int = MOST_STAGES) -> RoundRecord:
        """Read what `to_form` wrote; all of it is checked, for it may come from elsewhere.

        Args:
            form: the round.
            stage_count: how many stages the cascade has.

        >>> record = RoundRecord(1, 0, 1, "", 1, 0.75, 1, 2, 0b11, 0b1, cost=0.25)
        >>> RoundRecord.from_form(record.to_form()) == record
        True
        >>> RoundRecord.from_form({**record.to_form(), "probability": 25.0})
        Traceback (most recent call last):
        ...
        stopwise.checks.StopwiseError: round: probability: got 25.0, but need a probability, ...
        """
        known_names("round", form, _FIELDS)
        for field in _NEEDED:
            if field not in form:
                raise StopwiseError(f"round: the field {field!r} is missing")
        try:
            return cls._checked(form, stage_count)
        except StopwiseError as error:
            raise StopwiseError(f"round: {error}") from None
        except (TypeError, ValueError, OverflowError):
            raise fail("round", form, "a round as RoundRecord.to_form writes it") from None

    @classmethod
    def _checked(cls, form: Mapping[str, Any], stage_count: int) -> RoundRecord:
        called = _within("called", form["called"], 0, stage_count)
        probability = check_probability("probability", form["probability"])
        segment = form.get("segment", "")
        abandoned = form.get("abandoned", False)
        outputs = form.get("outputs")
        if not isinstance(segment, str):
            raise fail("segment", segment, "text")
        if not isinstance(abandoned, bool):
            raise fail("abandoned", abandoned, "true or false")
        if outputs is not None and (not isinstance(outputs, list) or len(outputs) != called):
            raise fail("outputs", outputs, f"the outputs of {called} stages")
        answered = _stages("answered", form["answered"], called)
        advised, advised_cost, advised_same = form.get("advised", (None, 0.0, None))
        if advised_same not in (None, True, False):
            raise fail("advised", form["advised"], "[stage, cost, whether the answer is the same]")
        stage = form["stage"]
        confidences = _numbers("confidences", form.get("confidences"), called)
        costs = _numbers("costs", form.get("costs"), called, least=0.0)
        cost = check_cost("cost", form["cost"], LARGEST_ROUND_COST)
        reported = math.fsum(one for one in costs or () if one is not None)
        if cost < reported * (1 - 1e-9):
            raise fail("cost", form["cost"], f"at least {reported:g}, what its calls cost")
        item = form.get("item")
        failed = _failed(form.get("failed", ()), called, answered)
        return cls(
            number=_within("round", form["round"], 1, MOST_ROUNDS),
            writer=_within("writer", form.get("writer", 0), 0, MOST_ROUNDS),
            sequence=_within("sequence", form.get("sequence", form["round"]), 1, MOST_ROUNDS),
            segment=segment,
            depth=_within("depth", form["depth"], 0, stage_count - 1),
            probability=probability,
            stage=None if stage is None else _within("stage", stage, 0, called - 1),
            called=called,
            answered=answered,
            disagreed=_pair_mask("disagreed", form["disagreed"], called, answered),
            undecided=_pair_mask("undecided", form.get("undecided", ()), called, answered),
            failed=failed,
            skipped=_skipped(form.get("skipped", ()), called, answered | failed, costs),
            costs=costs,
            cost=cost,
            abandoned=abandoned,
            advised=None if advised is None else _within("advised", advised, 0, stage_count - 1),
            advised_cost=check_cost("advised", advised_cost, LARGEST_ROUND_COST),
            advised_same=advised_same,
            outputs=outputs,
            confidences=confidences,
            item=None if item is None else ItemRow.from_form(item, called, confidences),
        )


def same_answer(record: RoundRecord, stage: int) -> bool | None:
    """Whether the answer after a stage is the one that was given; None where that is not known.

    >>> record = RoundRecord(1, 0, 1, "", 2, 0.75, 2, 3, 0b101, 0b10)       # the second abstained
    >>> same_answer(record, 1), same_answer(record, 2)
    (False, True)
    """
    spoke = record.answered & ((2 << stage) - 1)
    if not spoke or record.stage is None:
        return None
    return agreed(record, spoke.bit_length() - 1, record.stage)


def agreed(record: RoundRecord, one: int, two: int) -> bool | None:
    """Whether the answers of two stages agreed; None where that is not known.

    >>> agreed(RoundRecord(1, 0, 1, "", 1, 0.75, 1, 2, 0b11, 0b1), 1, 0)
    False
    """
    if not (record.answered >> one & 1 and record.answered >> two & 1):
        return None
    if one == two:
        return True
    pair = pair_number(min(one, two), max(one, two))
    return None if record.undecided >> pair & 1 else not record.disagreed >> pair & 1


def added_of(record: RoundRecord, stage_count: int, abstentions: Abstentions) -> Added:
    """What a round adds to the counters of pairs.

    Args:
        record: the round.
        stage_count: how many stages there are.
        abstentions: what it means that a stage gives no answer.

    >>> added_of(RoundRecord(1, 0, 1, "", 1, 0.75, 1, 2, 0b11, 0b1), 2, "leave out").pairs
    ((0, True),)
    """
    return added_under(
        abstentions, stage_count, record.called, record.depth,
        record.answered, record.disagreed, record.undecided,
    )  # fmt: skip


_NEEDED = ("round", "depth", "probability", "stage", "called", "answered", "disagreed", "cost")
_FIELDS = (
    *_NEEDED, "writer", "sequence", "segment", "failed", "costs", "confidences", "abandoned",
    "advised", "outputs", "undecided", "item", "skipped",
)  # fmt: skip


def _pairs(mask: int, called: int) -> list[list[int]]:
    return [list(pair) for at, pair in enumerate(pair_list(called)) if mask >> at & 1]


def _pair_mask(field: str, pairs: Any, called: int, answered: int) -> int:
    mask = 0
    for i, j in pairs:
        j = _within(field, j, 1, called - 1)
        i = _within(field, i, 0, j - 1)
        if not answered >> i & 1 or not answered >> j & 1:
            raise fail(field, [i, j], "a pair of stages that answered")
        mask |= 1 << pair_number(i, j)
    return mask


def _within(field: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise fail(field, value, f"a whole number from {least} to {most}")
    return value


def _stages(field: str, stages: Any, called: int) -> int:
    mask = 0
    for stage in stages:
        mask |= 1 << _within(field, stage, 0, called - 1)
    return mask


def _failed(stages: Any, called: int, answered: int) -> int:
    mask = _stages("failed", stages, called)
    if mask & answered:
        raise fail("failed", stages, "stages that have not answered")
    return mask


def _skipped(stages: Any, called: int, others: int, costs: Sequence[float | None] | None) -> int:
    mask = _stages("skipped", stages, called)  # to the last: given up right after a jump
    paid = sum(1 << at for at, cost in enumerate(costs or ()) if cost is not None)
    if mask & (others | paid):
        raise fail("skipped", stages, "stages that neither answered nor failed nor cost anything")
    return mask


def _numbers(
    field: str, values: Any, called: int, least: float | None = None
) -> list[float | None] | None:
    if values is None:
        return None
    if not isinstance(values, list) or len(values) > called:
        raise fail(field, values, f"a list of at most {called} numbers")
    for value in values:
        if value is not None:
            (finite_number if least is None else check_cost)(field, value)
    return values


def _output_text(output: Any) -> str:
    """An output as JSON that reads back; what JSON cannot hold is written as text."""
    if output is None or type(output) in (bool, float, str):
        return json.dumps(output)
    try:
        text = json.dumps(output)
        parse_json_object("output", f'{{"output": {text}}}')
    except (TypeError, ValueError, RecursionError, OverflowError):
        return json.dumps(_as_text(output))
    return text


def _as_text(output: Any) -> str:
    try:
        return str(output)
    except Exception:  # noqa: BLE001  # an output of a user: anything may happen
        return f"<{type(output).__name__} that cannot be written as text>"
