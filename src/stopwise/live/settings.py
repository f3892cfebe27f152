"""What a learner was given, as against what it learned: checked once, compared on restore."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from stopwise.abstentions import Abstentions, as_abstentions
from stopwise.checks import (
    StopwiseError,
    fail,
    finite_number,
    number_within,
    one_among,
    one_of,
    take_plain_numbers,
)
from stopwise.costs import CALLS, Calls, Costs
from stopwise.live.limits import check_cost
from stopwise.policies.base import Policy
from stopwise.policies.per_item.agreement_guard import AgreementGuard
from stopwise.policies.registry import policy_to_json, same_policy_text

Mode = Literal["shadow", "advise", "enforce"]

# These say what the counters mean: evidence gathered under others is other evidence.
_MEANING = ("stages", "costs", "measured", "comparator", "combine", "half_life")
# These say what is decided from them: to go on exactly they must be the same too.
_DECIDING = ("mistake_cost", "policy", "full_run_rate", "mode", "run_to", "segment_strength")
# And these, where there is a promise of agreement.
_PROMISE = ("agree", "level", "look_rate")
_USUAL: Abstentions = "leave out"


@dataclass(frozen=True)
class LearnerSettings:
    """The settings of a learner, as JSON holds them.

    >>> one = LearnerSettings(("a", "b"), (0.0, 1.0), 5.0, '{"policy": "uss-ts"}')
    >>> two = LearnerSettings(("a", "c"), (0.0, 1.0), 5.0, '{"policy": "uss-ts"}')
    >>> one.check_same(two.to_form(), "snapshot", exactly=True)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: snapshot: stages is ["a", "c"] there, but ["a", "b"] here; ...
    """

    stages: tuple[str, ...]
    costs: tuple[float, ...]
    mistake_cost: float
    policy: str
    measured: bool = False
    comparator: str = "exact"
    combine: str | None = None
    half_life: float | None = None
    full_run_rate: float = 0.0
    mode: Mode = "enforce"
    run_to: int = 0
    segment_strength: float = 10.0
    agree: float | None = None
    level: float = 0.95
    look_rate: float = 0.1
    abstentions: Abstentions = _USUAL
    calls: Calls | None = None

    def __post_init__(self) -> None:
        take_plain_numbers(self)
        object.__setattr__(self, "abstentions", as_abstentions(self.abstentions))
        if self.calls is not None:
            one_of("calls", self.calls, CALLS)
        if self.alone:
            self._check_alone()
        if self.half_life is not None:
            accepted = "a number of rounds above 0, or None to keep all evidence"
            if finite_number("half_life", self.half_life, accepted) <= 0:
                raise fail("half_life", self.half_life, accepted)
        accepted = "a share between 0 and 1"
        if not 0 <= finite_number("full_run_rate", self.full_run_rate, accepted) <= 1:
            raise fail("full_run_rate", self.full_run_rate, accepted)
        one_of("mode", self.mode, get_args(Mode))
        if not isinstance(self.run_to, int) or not 0 <= self.run_to < len(self.stages):
            raise fail("run_to", self.run_to, one_among(self.run_to, self.stages))
        accepted = "a number of rounds, 0 or more"
        if finite_number("segment_strength", self.segment_strength, accepted) < 0:
            raise fail("segment_strength", self.segment_strength, accepted)
        AgreementGuard(self.agree or 0.5, self.level, self.look_rate)  # which says what they may be
        if self.promise is not None and self.run_to != len(self.stages) - 1:
            raise fail("run_to", self.stages[self.run_to], "the last stage, under a promise")

    def _check_alone(self) -> None:
        if list(self.costs) != sorted(self.costs):
            order = sorted(range(len(self.costs)), key=self.costs.__getitem__)
            raise fail(
                "stages", dict(zip(self.stages, self.costs, strict=True)),
                "rising costs, where stages are called alone: "
                + ", ".join(self.stages[at] for at in order),
            )  # fmt: skip
        if self.combine is not None:
            raise fail(
                "combine", self.combine,
                "None, where stages are called alone: there is one output to answer with",
            )  # fmt: skip
        if self.abstentions != _USUAL:
            raise fail(
                "abstentions", self.abstentions,
                f"{_USUAL!r}, where stages are called alone: a stage called because another"
                " abstained would have to be told from one that was chosen",
            )  # fmt: skip
        if self.promise is not None:
            raise fail(
                "agree", self.agree,
                "calls='cascade': a live promise counts rounds that went through all stages before"
                " the one they stop at; on a log, `stopwise analyze --agree --calls alone` promises"
                " for stages called alone",
            )  # fmt: skip

    @property
    def alone(self) -> bool:
        """Whether each stage is called without those before it."""
        return self.calls == "alone"

    @property
    def promise(self) -> AgreementGuard | None:
        """What agreement is promised, if any is."""
        if self.agree is None:
            return None
        return AgreementGuard(self.agree, self.level, self.look_rate)

    @property
    def discount(self) -> float:
        """What one more round leaves of the weight of older ones."""
        return 1.0 if self.half_life is None else float(2.0 ** (-1.0 / self.half_life))

    def to_form(self) -> dict[str, Any]:
        """As JSON holds it."""
        form = {**asdict(self), "stages": list(self.stages), "costs": list(self.costs)}
        if self.agree is None:  # as settings were written before there were promises
            for name in _PROMISE:
                del form[name]
        if self.abstentions == _USUAL:  # as before it was a setting
            del form["abstentions"]
        if self.calls is None:
            del form["calls"]
        return form

    def check_same(self, form: Any, what: str, *, exactly: bool) -> None:
        """Refuse counters that were gathered, or decisions made, under other settings.

        Args:
            form: the settings of the other side, as `to_form` gives them.
            what: its name in the error.
            exactly: whether decisions are to go on exactly, not only the evidence.
        """
        if not isinstance(form, Mapping):
            raise fail(f"{what}: settings", form, "an object of settings")
        mine = self.to_form()
        for field in (*_MEANING, *(_DECIDING if exactly else ())):
            if field not in form:
                raise StopwiseError(f"{what}: the setting {field!r} is missing")
            if not _same(field, form[field], mine[field]):
                remedy = (
                    "to use its evidence all the same, read it with"
                    " stopwise.live.read_evidence and add it with learner.add_evidence"
                    if field in _MEANING
                    else "to go on with its evidence under the new setting, give a new seed (fork)"
                )
                raise StopwiseError(
                    f"{what}: {field} is {_shown(form[field])} there, but {_shown(mine[field])}"
                    f" here; {remedy}"
                )
        theirs = form.get("calls") or "cascade"
        if exactly and theirs != (self.calls or "cascade"):
            raise StopwiseError(
                f"{what}: calls is {theirs} there, but {self.calls or 'cascade'} here; to go on"
                " with its evidence under the new setting, give a new seed (fork)"
            )
        self._check_same_promise(form, what, exactly=exactly)
        theirs = abstentions_of(form, what)
        if theirs != self.abstentions:
            raise StopwiseError(
                f"{what}: abstentions is {theirs!r} there, but {self.abstentions!r} here; counts"
                " of the one mean nothing to the other"
            )

    def _check_same_promise(self, form: Mapping[str, Any], what: str, *, exactly: bool) -> None:
        theirs = [form.get(name) for name in _PROMISE]
        mine = [self.to_form().get(name) for name in _PROMISE]
        # What was found by looking at one rate says something else at another rate.
        other_rate = None not in (theirs[0], mine[0]) and theirs[-1] != mine[-1]
        if other_rate or (exactly and theirs != mine):
            raise StopwiseError(
                f"{what}: {', '.join(_PROMISE)} are {_shown(theirs)} there, but {_shown(mine)}"
                " here; a promise goes on only as it was made"
            )


def abstentions_of(form: Mapping[str, Any], what: str) -> Abstentions:
    """What it meant to a learner that a stage gives no answer, by its settings.

    >>> abstentions_of({}, "snapshot")
    'leave out'
    """
    try:
        return as_abstentions(form.get("abstentions", _USUAL))
    except StopwiseError as error:
        raise StopwiseError(f"{what}: {error}") from None


def _same(field: str, one: Any, two: Any) -> bool:
    if field == "policy" and isinstance(one, str) and isinstance(two, str):
        return same_policy_text(one, two)
    return bool(one == two)


def stage_index(field: str, stage: int | str, names: Sequence[str]) -> int:
    """A stage by name or number, as its number.

    >>> stage_index("run_to", "b", ["a", "b"]), stage_index("run_to", -1, ["a", "b"])
    (1, 1)
    """
    if isinstance(stage, str):
        return list(names).index(one_of(field, stage, names))
    accepted = f"a stage from 0 to {len(names) - 1}, or -1 for the last"
    if number_within(field, stage, accepted, least=-len(names), most=len(names) - 1) % 1:
        raise fail(field, stage, accepted)
    return int(stage) % len(names)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def stage_names_and_costs(
    stages: Mapping[str, float] | Sequence[float] | Costs, mistake_cost: float
) -> tuple[tuple[str, ...], tuple[float, ...], Costs]:
    """Names, costs of each stage as they were given, and `Costs`, from what a user may write.

    >>> stage_names_and_costs({"regex": 0, "model": 2}, 10)
    (('regex', 'model'), (0.0, 2.0), Costs(cumulative=(0.0, 2.0), mistake_cost=10.0))
    """
    if isinstance(stages, Costs):
        return _numbered(stages.stage_count), tuple(map(float, stages.per_stage)), stages
    if isinstance(stages, Mapping):
        names = tuple(stages)
        if not all(isinstance(name, str) and name for name in names):
            raise fail("stages", list(names), "names that are text")
        given: Sequence[float] = list(stages.values())
    else:
        given = stages
        names = ()
    costs = Costs.from_stages(given, mistake_cost)
    for name, cost in zip(names or _numbered(costs.stage_count), given, strict=True):
        check_cost(f"costs: {name}", cost)
    return names or _numbered(costs.stage_count), tuple(map(float, given)), costs


def _numbered(stage_count: int) -> tuple[str, ...]:
    return tuple(f"stage {at + 1}" for at in range(stage_count))


def policy_text(policy: Policy) -> str:
    """A policy's name and settings as text; a policy that JSON cannot hold is named by its label.

    >>> from stopwise.policies.fixed import FixedStage
    >>> policy_text(FixedStage(0))
    '{"version": 1, "policy": "fixed", "settings": {"stage": 0}}'
    """
    try:
        return policy_to_json(policy)
    except (TypeError, ValueError):
        return policy.label()
