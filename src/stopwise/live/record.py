"""What is kept of a finished round: enough to count it again, readable in a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.checks import StopwiseError, fail, known_keys
from stopwise.live.counters.pairs import bits, pair_list, pair_number


@dataclass(slots=True)
class RoundRecord:
    """A finished round.

    Attributes:
        number: the round number that the policy was given, from 1.
        writer: which of several learners sharing a store; 0 where there is one.
        sequence: this writer's own count of rounds begun; (writer, sequence) names the round.
        segment: whose evidence it is; "" where segments are not used.
        depth: the stage at which it was to stop, with `probability` (its exact propensity).
        stage: the stage whose answer was given; None where no stage answered.
        called: how many stages were called: always the first ones.
        answered: bits of the stages that answered (did not abstain, did not fail).
        disagreed: bits of the pairs of answers that differed, see `stopwise.live.counters.pairs`.
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
        return form

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> RoundRecord:
        """Read what `to_form` wrote.

        >>> record = RoundRecord(1, 0, 1, "", 1, 0.75, 1, 2, 0b11, 0b1, cost=0.25)
        >>> RoundRecord.from_form(record.to_form()) == record
        True
        """
        known_keys("round", form, _FIELDS)
        try:
            advised, advised_cost, advised_same = form.get("advised", (None, 0.0, None))
            return cls(
                number=form["round"],
                writer=form.get("writer", 0),
                sequence=form.get("sequence", form["round"]),
                segment=form.get("segment", ""),
                depth=form["depth"],
                probability=form["probability"],
                stage=form["stage"],
                called=form["called"],
                answered=_mask(form["answered"]),
                disagreed=_mask(pair_number(i, j) for i, j in form["disagreed"]),
                failed=_mask(form.get("failed", ())),
                costs=form.get("costs"),
                cost=form["cost"],
                abandoned=form.get("abandoned", False),
                advised=advised,
                advised_cost=advised_cost,
                advised_same=advised_same,
                outputs=form.get("outputs"),
                confidences=form.get("confidences"),
                undecided=_mask(pair_number(i, j) for i, j in form.get("undecided", ())),
            )
        except KeyError as error:
            raise StopwiseError(f"round: the field {error.args[0]!r} is missing") from None
        except (TypeError, ValueError):
            raise fail("round", form, "a round as RoundRecord.to_form writes it") from None


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


_FIELDS = (
    "round", "writer", "sequence", "segment", "depth", "probability", "stage", "called",
    "answered", "disagreed", "failed", "costs", "cost", "abandoned", "advised", "outputs",
    "confidences", "undecided",
)  # fmt: skip


def _pairs(mask: int, called: int) -> list[list[int]]:
    return [list(pair) for at, pair in enumerate(pair_list(called)) if mask >> at & 1]


def _mask(numbers: Any) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
