"""Every policy conforms, and the conformance suite catches each kind that does not."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stopwise import Policy, make_policy, policy_names
from stopwise.policies import registry
from stopwise.policies.conformance import check_policy

BUILT_IN = [
    "uss-ts",
    "uss-ts:prior_disagreed=0.5,prior_agreed=2",
    "uss-ts:prior_disagreed=10,prior_agreed=0.1",
    "uss-ts-literal",
    "uss-ts-literal:prior_disagreed=3,prior_agreed=0.5",
    "uss-ucb",
    "uss-ucb:alpha=0.51",
    "uss-ucb:alpha=10",
    "hanawal-2",
    "hanawal-2:alpha=0.1",
    "fixed",
    "fixed:stage=0",
    "fixed:stage=3",
    "fixed:stage=-2",
    "oracle",
    "oracle:stage=1",
]


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_policies_conform(name):
    check_policy(make_policy(name))


def test_every_name_conforms():
    for name in set(policy_names()) - set(BUILT_IN):
        policy = registry.policy_class(name)
        if policy.__module__.startswith("stopwise."):
            check_policy(make_policy(name), seed=1)


def uniform(count):
    return np.full(count, 1 / count)


@dataclass(frozen=True)
class Good(Policy):
    name = "good"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count)


@dataclass(frozen=True)
class Mutates(Good):
    name = "mutates"

    def _depth_probabilities(self, evidence, round, costs):
        evidence.seen[0, 1] += 1
        return uniform(costs.stage_count)


@dataclass(frozen=True)
class MutatesWhenDrawing(Good):
    name = "mutates-when-drawing"

    def draw(self, evidence, round, costs, rng):
        evidence.add([0, 1])
        return super().draw(evidence, round, costs, rng)


CALLS: list[Any] = []


@dataclass(frozen=True)
class Remembers(Good):
    name = "remembers"

    def _depth_probabilities(self, evidence, round, costs):
        CALLS.append(round)
        p = uniform(costs.stage_count)
        p[0] += 0.01 * (len(CALLS) % 7)
        return p / p.sum()


@dataclass(frozen=True)
class RemembersDraws(Good):
    name = "remembers-draws"

    def draw(self, evidence, round, costs, rng):
        CALLS.append(round)
        return len(CALLS) % costs.stage_count


@dataclass(frozen=True)
class GlobalGenerator(Good):
    name = "global-generator"

    def draw(self, evidence, round, costs, rng):
        return int(np.random.random() * costs.stage_count)  # noqa: NPY002  # what must be caught


@dataclass(frozen=True)
class WrongProbabilities(Good):
    name = "wrong-probabilities"

    def draw(self, evidence, round, costs, rng):
        return 0 if rng.random() < 0.9 else costs.stage_count - 1


@dataclass(frozen=True)
class CountsTooMuch(Good):
    name = "counts-too-much"

    def record(self, evidence, round, prefix):
        evidence.add([*prefix, *[0] * (evidence.stage_count - len(prefix))])


@dataclass(frozen=True)
class TakesAway(Good):
    name = "takes-away"

    def record(self, evidence, round, prefix):
        evidence.seen[:] = 0
        evidence.disagreed[:] = 0


@dataclass(frozen=True)
class ChangesPrefix(Good):
    name = "changes-prefix"

    def record(self, evidence, round, prefix):
        evidence.add(prefix)
        prefix.clear()


@dataclass(frozen=True)
class WrongShape(Good):
    name = "wrong-shape"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count + 1)


@dataclass(frozen=True)
class OnlyTwoStages(Good):
    name = "only-two-stages"

    def _depth_probabilities(self, evidence, round, costs):
        return np.array([0.5, 0.5])


@dataclass(frozen=True)
class NotOne(Good):
    name = "not-one"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count) * 0.9


@dataclass(frozen=True)
class NegativeProbability(Good):
    name = "negative"

    def _depth_probabilities(self, evidence, round, costs):
        p = np.zeros(costs.stage_count)
        p[:2] = -0.5, 1.5
        return p


@dataclass(frozen=True)
class NotANumber(Good):
    name = "not-a-number"

    def _depth_probabilities(self, evidence, round, costs):
        return np.full(costs.stage_count, np.nan)


@dataclass(frozen=True)
class Crashes(Good):
    name = "crashes"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count)[[costs.stage_count]]


@dataclass(frozen=True)
class OutsideCascade(Good):
    name = "outside-cascade"

    def draw(self, evidence, round, costs, rng):
        return costs.stage_count


@dataclass(frozen=True)
class NoInt(Good):
    name = "no-int"

    def draw(self, evidence, round, costs, rng):
        return float(super().draw(evidence, round, costs, rng))


@dataclass(frozen=True)
class Grows(Good):
    name = "grows"
    log: list = dataclasses.field(default_factory=list)

    def record(self, evidence, round, prefix):
        evidence.add(prefix)
        self.log.append(round)


@dataclass(frozen=True)
class NoPickle(Good):
    name = "no-pickle"
    rule: object = dataclasses.field(default_factory=lambda: lambda: 0)


@dataclass(frozen=True, eq=False)
class ComesBackOther(Good):
    name = "comes-back-other"

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


def test_a_good_policy_of_a_user_conforms():
    check_policy(Good())


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (Mutates(), "changes the evidence"),
        (MutatesWhenDrawing(), "changes the evidence"),
        (Remembers(), "remembers earlier calls"),
        (RemembersDraws(), "draws otherwise with the same seed"),
        (GlobalGenerator(), "draws otherwise with the same seed"),
        (WrongProbabilities(), "but states"),
        (CountsTooMuch(), "counts stages not called"),
        (TakesAway(), "takes evidence away"),
        (ChangesPrefix(), "changes the outputs"),
        (WrongShape(), "gives no distribution"),
        (OnlyTwoStages(), "gives no distribution"),
        (NotOne(), "gives no distribution"),
        (NegativeProbability(), "gives no distribution"),
        (NotANumber(), "gives no distribution"),
        (Crashes(), "raises IndexError"),
        (OutsideCascade(), "outside the cascade"),
        (NoInt(), "no int"),
        (Grows(), "grows as it runs"),
        (ComesBackOther(), "does not come back equal"),
    ],
    ids=lambda value: value.name if isinstance(value, Policy) else "",
)
def test_conformance_catches(policy, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_policy(policy)


def test_conformance_catches_what_cannot_be_pickled():
    with pytest.raises(Exception, match=r"pickle|local object"):
        check_policy(NoPickle())
