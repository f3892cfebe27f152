"""What a cascade gives for one item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stopwise.live.calling.errors import describe
from stopwise.live.record import Advice
from stopwise.live.running.explaining import DecisionExplanation, Decisions


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What a cascade gives for one item.

    Attributes:
        answer: None where every stage that was called abstained, or the item has no answer.
        stage: the name of the stage that gave it; `depth` is the stage it was to stop at.
        probability: of that depth, exactly.
        cost: of all calls for this item.
        failures: (stage, error) of every stage that raised or ran out of time.
        advice: in the mode "advise", what enforcing would have done.
        recorded: False where the round could not be counted in full: not written to the store, or
            its answers not compared (a warning says why).
        error: from `answer_many`, why this item has no answer (`NoAnswerError`, `BudgetError`);
            None where it has one.
        decisions: where rounds are decided per item, what `explain` makes its explanation from.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
    >>> answer = Cascade(stages, "fixed:stage=1", mistake_cost=20).answer("hello")
    >>> answer
    Answer(True, from model, cost 6)
    >>> answer.stage, answer.probability, answer.recorded
    ('model', 1.0, True)
    """

    answer: Any
    stage: str | None
    depth: str | None
    probability: float
    cost: float
    failures: tuple[tuple[str, object], ...] = ()
    advice: Advice | None = None
    recorded: bool = True
    error: Exception | None = None
    decisions: Decisions | None = field(default=None, compare=False)

    def explain(self) -> DecisionExplanation:
        """Why the item stopped where it did: as text, and with `to_dict()`.

        >>> from stopwise import Cascade, Stage
        >>> stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
        >>> print(Cascade(stages, "fixed:stage=1", mistake_cost=20).answer("hello").explain())
        model was drawn before the first call, with probability 1
        """
        if self.decisions is not None:
            return self.decisions.explain()
        why = "no stage was called"
        if self.depth is not None:
            why = f"{self.depth} was drawn before the first call, with probability"
            why += f" {self.probability:.3g}"
        return DecisionExplanation(why, self.depth, self.stage, self.probability)

    def __repr__(self) -> str:
        parts = [repr(self.answer)]
        if self.stage is not None:
            parts.append(f"from {self.stage}")
        parts.append(f"cost {self.cost:g}")
        # The text of an error may hold a key or an address: it is in the error, not here.
        parts += [f"{stage} failed ({describe(error)})" for stage, error in self.failures]
        if self.error is not None:
            parts.append(type(self.error).__name__)
        if not self.recorded:
            parts.append("not recorded")
        return f"Answer({', '.join(parts)})"
