"""Why one item stopped where it did, in plain words and as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from stopwise.live.round import Round
from stopwise.policies.per_item.rule import RuleDecision


@dataclass(frozen=True)
class DecisionStep:
    """What was known after one stage, and what the rule said.

    Attributes:
        stage: its name.
        says: what it answered, as it is counted; None where it abstained.
        confidence: how sure it said it is.
        agrees_with: the earlier stages that said the same.
        stop: whether the rule stops here; None where it was not asked (after the last stage, or
            before there is a rule).
        risk: the expected loss of this answer, in mistakes; `risk_costs` is what that costs.
        going_on_costs: what going on is expected to cost, calls and mistakes.
        rows: how many items went on from the situation that decided.

    >>> print(DecisionStep("large", "yes", 0.9, ("small",)))
    large says yes, 0.9 sure, as small did
    """

    stage: str
    says: str | None
    confidence: float | None
    agrees_with: tuple[str, ...]
    stop: bool | None = None
    risk: float | None = None
    risk_costs: float | None = None
    going_on_costs: float | None = None
    rows: int | None = None

    def __str__(self) -> str:
        text = f"{self.stage} abstains" if self.says is None else f"{self.stage} says {self.says}"
        if self.confidence is not None:
            text += f", {self.confidence:.2g} sure"
        if self.agrees_with:
            text += f", as {' and '.join(self.agrees_with)} did"
        if self.risk is None or self.risk_costs is None or self.going_on_costs is None:
            return text
        than = "no more than" if self.stop else "more than"
        return (
            f"{text}: its risk of {self.risk:.2g} mistakes costs {self.risk_costs:.2g}, {than}"
            f" going on ({self.going_on_costs:.2g}, by {self.rows} items like it)"
        )


@dataclass(frozen=True)
class DecisionExplanation:
    """Why an item stopped where it did.

    Attributes:
        why: the reason in one sentence.
        stopped_after: the last stage that was called; None where none was.
        answer_from: the stage whose answer was given.
        probability: with which the round went as deep as it did.
        full_run: whether it went to the end whatever its outputs.
        steps: what was known after each stage.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"small": 1, "large": 5}, "per-item", mistake_cost=20)
    >>> with learner.begin() as round: round.observe("yes", confidence=0.9); round.observe("yes")
    >>> print(explain_round(round, learner.stages, learner.explain))
    a full run, drawn before the first call with probability 1
    - small says yes, 0.9 sure
    - large says yes, as small did
    >>> explain_round(round, learner.stages, learner.explain).to_dict()["full_run"]
    True
    """

    why: str
    stopped_after: str | None
    answer_from: str | None
    probability: float
    full_run: bool = False
    steps: tuple[DecisionStep, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        form = asdict(self)
        form["steps"] = [
            {**step, "agrees_with": list(step["agrees_with"])} for step in form["steps"]
        ]
        return form

    def __str__(self) -> str:
        return "\n".join([self.why, *(f"- {step}" for step in self.steps)])


class Decisions:
    """What an answer keeps of its round, to be explained if anybody asks.

    Args:
        round: which has ended.
        stages: their names.
        decisions: what the rule says of each situation of a round.
    """

    __slots__ = ("_decisions", "_made", "_round", "_stages")

    def __init__(
        self,
        round: Round,
        stages: tuple[str, ...],
        decisions: Callable[[Round], list[RuleDecision]],
    ) -> None:
        self._round: Round | None = round
        self._stages = stages
        self._decisions = decisions
        self._made: DecisionExplanation | None = None

    def explain(self) -> DecisionExplanation:
        """Why the item stopped where it did."""
        if self._made is None:
            assert self._round is not None
            self._made = explain_round(self._round, self._stages, self._decisions)
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        """An answer that goes elsewhere takes the explanation along, and not the learner."""
        return _made_before, (self.explain(),)


def _made_before(made: DecisionExplanation) -> Decisions:
    found = Decisions.__new__(Decisions)
    found._made, found._round = made, None
    return found


def explain_round(
    round: Round,
    stages: tuple[str, ...],
    decisions: Callable[[Round], list[RuleDecision]] | None = None,
) -> DecisionExplanation:
    """Why a round that has ended stopped where it did.

    Args:
        round: the round.
        stages: their names.
        decisions: what the rule says of each of its situations; None where no rule looks.
    """
    called = len(round.outputs)
    after = stages[called - 1] if called else None
    answered = None if round.stage is None else stages[round.stage]
    path = round.path
    if path is None:
        depth = stages[round.depth if round.drawn_depth is None else round.drawn_depth]
        why = f"{depth} was drawn before the first call, with probability {round.probability:.3g}"
        return DecisionExplanation(why, after, answered, round.probability)
    found = [] if decisions is None else decisions(round)
    # Where stages are called alone, the rule was asked after some of them.
    asked = [way[-1] for way, _ in getattr(path, "asked", ())] or range(len(found))
    by_stage = dict(zip(asked, found, strict=False))
    sure = round.confidences or []
    steps = []
    for at, label in enumerate(path.labels):
        if round.skipped >> at & 1:
            continue
        said = by_stage.get(at)
        steps.append(
            DecisionStep(
                stages[at],
                label,
                sure[at] if at < len(sure) else None,
                tuple(
                    stages[earlier]
                    for earlier in range(at)
                    if path.groups[at] >= 0 and path.groups[earlier] == path.groups[at]
                ),
                None if said is None else said.stop,
                None if said is None else said.losses[at],
                None if said is None else said.here,
                None if said is None else said.deeper,
                None if said is None else said.rows,
            )
        )
    full = round.full_run and round.advised is None
    why = _why(round, stages, steps)
    return DecisionExplanation(why, after, answered, round.probability, full, tuple(steps))


def _why(round: Round, stages: tuple[str, ...], steps: list[DecisionStep]) -> str:
    """The reason in one sentence."""
    path, last = round.path, len(stages) - 1
    assert path is not None
    rule = round.rule_depth if path.by.decides else None
    if not steps:
        return "no stage was called"
    instead = "" if rule is None or rule == last else f"; the rule would stop after {stages[rule]}"
    if round.advised is not None:
        if rule is None:
            return "all stages were called, whatever the rule says: nothing is enforced"
        return f"all stages were called; enforced, it would stop after {stages[round.advised]}"
    if round.full_run or path.looked or path.promised is False:
        if path.promised is False:
            return f"a full run: the promise of agreement is not proven yet{instead}"
        kind = "a look for the promise of agreement" if path.looked else "a full run"
        if not round.full_run:
            return f"{kind} that was cut short{instead}"
        text = f"{kind}, drawn before the first call with probability {round.full_chance:.3g}"
        return text + instead
    if rule is None or stages[rule] != steps[-1].stage:
        return (
            f"ended after {steps[-1].stage}, before the rule stopped it: a budget, a time limit or"
            " a failure"
        )
    if rule == last:
        if round.skipped == (1 << last) - 1:
            return f"{stages[last]} was called alone: the rule begins there"
        return f"went on to {stages[last]}: no earlier stage was sure enough"
    step = steps[-1]
    text = f"stopped after {step.stage}: it "
    text += "abstains" if step.says is None else f"says {step.says}"
    if step.confidence is not None:
        text += f" and is {step.confidence:.2g} sure"
    if step.risk_costs is not None and step.going_on_costs is not None:
        text += f"; risk {step.risk:.2g}, which costs {step.risk_costs:.2g}; going on costs"
        text += f" {step.going_on_costs:.2g}"
    return text
