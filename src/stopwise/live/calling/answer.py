"""What a cascade gives for one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stopwise.checks import StopwiseError
from stopwise.live.round import Advice


class NoAnswerError(StopwiseError):
    """Stages failed and none answered. The last failure is its cause."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a cascade gives for one item.

    Attributes:
        answer: None where every stage that was called abstained.
        stage: the name of the stage that gave it; `depth` is the stage it was to stop at.
        probability: of that depth, exactly.
        cost: of all calls for this item.
        failures: (stage, error) of every stage that raised or ran out of time.
        advice: in the mode "advise", what enforcing would have done.
        recorded: False where the round could not be written to the store (a warning says why).
    """

    answer: Any
    stage: str | None
    depth: str
    probability: float
    cost: float
    failures: tuple[tuple[str, object], ...] = ()
    advice: Advice | None = None
    recorded: bool = True
