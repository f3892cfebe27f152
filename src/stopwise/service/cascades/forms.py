"""What a decision is, what a call gave, and what a finished request was."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stopwise.openai.completions import Completion, Decided, Usage
from stopwise.policies.per_item.rule import RuleDecision
from stopwise.service.config.forms import Mode
from stopwise.service.database.writing import Ending

CLIENT_GONE = "client gone"
"""What is noted as the failure of a call that was given up because nobody waited for it."""
STOPPING = "stopping"
"""The same where it was given up because the service stops."""
GIVEN_UP = (CLIENT_GONE, STOPPING)
"""Failures that say nothing of the stage that was called."""

Why = Literal["", "not sampled", "budget", "pinned", "many choices"]
"""Why a request is served without being compared; empty if it is compared."""


@dataclass(frozen=True)
class RequestDecision:
    """How deep a request goes, decided before the first call, or after each one (per item).

    Attributes:
        depth: the stage that answers, drawn with `probability`; per item, how far it may go.
        advised: in the modes shadow and advise, what enforcing would have drawn.
        first: the first stage that is called; those before `depth` are only compared.
        full_run: whether it goes through all stages to keep figures unbiased.
        uncounted: why nothing is learned from it, or empty.
        chance: per item, the probability that it is a full run; None where depths are drawn.
        features: per item, what is known of it before the first call.
    """

    id: str
    cascade: str
    segment: str
    mode: Mode
    depth: int
    probability: float
    advised: int | None = None
    advised_probability: float | None = None
    full_run: bool = False
    uncounted: Why = ""
    at: float = field(default_factory=time.time)
    chance: float | None = None
    features: Mapping[str, Any] | None = None

    @property
    def first(self) -> int:
        """The first stage to call."""
        return self.depth if self.uncounted else 0

    @property
    def walks(self) -> bool:
        """Whether it is decided after each stage whether the next one is called."""
        return self.chance is not None and self.mode == "enforce" and not self.full_run


@dataclass(frozen=True)
class Call:
    """One call of a stage, over and done with.

    Attributes:
        output: what it answered; None where it abstained or failed.
        failed: a word for what went wrong ("timeout", "status 500", "client gone"), or None.
        shown: the answer as people may look at it, abstentions too.
        confidence: how sure the stage says it is; any number that sorts.
    """

    stage: int
    output: Any = None
    failed: str | None = None
    cost: float = 0.0
    seconds: float = 0.0
    usage: Usage | None = None
    shown: Any = None
    confidence: float | None = None

    @property
    def abstained(self) -> bool:
        """Whether it came back but without an answer."""
        return self.output is None and self.failed is None

    @property
    def unpaid(self) -> bool:
        """Whether it failed and cost nothing: it says nothing of what a call costs."""
        return self.failed is not None and not self.cost


@dataclass(frozen=True)
class ItemOutcome:
    """Per item, what the rule said.

    Attributes:
        stop: the stage after which it stopped the request, or would have; None if it did not.
        steps: what it said after each stage.
    """

    stop: int | None
    steps: tuple[RuleDecision, ...] = ()


@dataclass(frozen=True)
class Finished:
    """A request, or a round over the API, with all its calls.

    Attributes:
        calls: of the stages from `decision.first` on, in order.
        served: the stage whose answer the client got; None where it got an error.
        request: what was asked, for people to look at.
        who: the id of the key.
        ending: of a round over the API, the reply to its end.
        item: per item, what the rule said.
    """

    decision: RequestDecision
    calls: tuple[Call, ...]
    served: int | None
    request: Any = None
    who: str = ""
    abandoned: bool = False
    seconds: float = 0.0
    ending: Ending | None = None
    item: ItemOutcome | None = None

    def sampled(self, stage_count: int) -> bool:
        """Whether its answers are a fair sample of all stages' answers.

        One that went on because of what was answered is not: counted as pairs, it would bias them.
        """
        if self.decision.chance is None:
            return True
        return self.decision.full_run and len(self.calls) == stage_count

    @property
    def cost(self) -> float:
        """Of all calls."""
        return sum(call.cost for call in self.calls)

    @property
    def comparison_cost(self) -> float:
        """Of the calls whose answer the client did not get."""
        return sum(call.cost for call in self.calls if call.stage != self.served)


def shown(output: Any) -> Any:
    """An output as JSON, to be kept for people.

    >>> shown(Completion("hi"))
    {'content': 'hi'}
    """
    return output.to_form() if isinstance(output, (Completion, Decided)) else output
