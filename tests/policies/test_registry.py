"""Policies by name: labels, settings, JSON, registration."""

from __future__ import annotations

import dataclasses
import inspect
import math
from dataclasses import dataclass

import numpy as np
import pytest

from stopwise import Costs, Evidence, Policy, StopwiseError, make_policy, policy_names, register
from stopwise.policies import registry
from stopwise.policies.fixed import FixedStage
from stopwise.policies.hanawal2 import Hanawal2
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ucb import UssUcb


def test_names_of_the_policies():
    assert policy_names()[:6] == [
        "uss-ts", "uss-ts-literal", "uss-ucb", "hanawal-2", "fixed", "oracle",
    ]  # fmt: skip
    assert make_policy("uss-ucb") == UssUcb(alpha=0.5)
    assert make_policy("hanawal-2") == Hanawal2(alpha=1.5)
    assert make_policy("uss-ts") == UssTs(1.0, 1.0)


@pytest.mark.parametrize("name", ["uss-ucb:alpha=0.51", "uss-ts:prior_agreed=2.0", "fixed:stage=0"])
def test_labels_make_the_policy_again(name):
    policy = make_policy(name)
    assert policy.label() == name
    assert make_policy(policy.label()) == policy
    assert registry.policy_from_json(registry.policy_to_json(policy)) == policy


def test_numpy_settings():
    assert registry.policy_from_json(registry.policy_to_json(UssUcb(np.float32(0.5)))) == UssUcb()
    assert make_policy("fixed", stage=np.int64(1)) == FixedStage(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uss-tsx", "policy: got 'uss-tsx', but need 'uss-ts', 'uss-ts-literal'"),
        ("", "policy: got '', but need 'uss-ts'"),
        ("uss-ucb:beta=1", "policy uss-ucb: unknown setting 'beta'; known are 'alpha'"),
        ("uss-ucb:alpha", "policy uss-ucb: got 'alpha', but need settings written as name=value"),
        ("uss-ucb:alpha=", "but need settings written as name=value, separated by ','"),
        ("uss-ucb:alpha=0", "alpha: got 0, but need a number above 0"),
        ("uss-ucb:alpha=nan", "alpha: got 'nan', but need a number above 0"),
        ("uss-ucb:alpha=NaN", "alpha: got nan, but need a number above 0"),
        ("uss-ucb:alpha=1e999", "alpha: got inf, but need a number above 0"),
        ("uss-ucb:alpha=wide", "alpha: got 'wide', but need a number above 0"),
        ("uss-ucb:alpha=1,alpha=2", "policy uss-ucb: setting 'alpha' is given twice"),
        ("uss-ucb:alpha=" + "9" * 5000, "alpha: got '999"),
        ("uss-ucb:alpha=" + "[" * 100_000, "alpha: got '[[["),
        ("uss-ts:prior_agreed=-1", "prior_agreed: got -1, but need a number above 0"),
        ("fixed:stage=abc", "stage: got 'abc', but need a whole number"),
        ("fixed:stage=1.5", "stage: got 1.5, but need a whole number"),
        ("fixed:stage=true", "stage: got True, but need a whole number"),
        ("fixed:stage=null", "stage: got None, but need a whole number"),
        ("oracle:stage=-1", "stage: got -1, but need a whole number, 0 or more"),
        (7, "policy: got 7, but need a policy, or 'uss-ts'"),
        (None, "policy: got None, but need a policy, or 'uss-ts'"),
    ],
)
def test_refused_policies(text, message):
    with pytest.raises(StopwiseError) as error:
        make_policy(text)
    assert message in str(error.value)


def test_settings_are_never_ignored():
    with pytest.raises(StopwiseError, match="a name, where settings are given beside it"):
        make_policy(UssUcb(), alpha=1)
    with pytest.raises(StopwiseError, match="setting 'alpha' is given twice"):
        make_policy("uss-ucb:alpha=1", alpha=1)
    with pytest.raises(StopwiseError, match="unknown setting 'beta'"):
        make_policy("uss-ucb", beta=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "policy: got [], but need a JSON object"),
        ('{"policy": 1}', "policy: got 1, but need 'uss-ts'"),
        ('{"policy": "uss-ucb", "parameters": []}', "parameters: got [], but need an object"),
        ('{"policy": "uss-ucb", "setting": {}}', "policy: unknown field 'setting'"),
        ('{"policy": "uss-ucb", "version": 9}', "version: got 9, but need version 1"),
    ],
)
def test_refused_json(text, message):
    with pytest.raises(StopwiseError) as error:
        registry.policy_from_json(text)
    assert message in str(error.value)


def test_wrong_use():
    with pytest.raises(StopwiseError, match="evidence: got '2 stages', but need 3 stages"):
        UssTs().probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1, 2)))
    for round in (0, -1, 1.5, None, math.nan):
        with pytest.raises(StopwiseError, match="round: got"):
            UssTs().probabilities(Evidence(2), round, Costs.from_cumulative((0, 1)))
    with pytest.raises(StopwiseError, match="oracle: only a simulation can tell it"):
        make_policy("oracle").probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1)))
    with pytest.raises(StopwiseError, match="stage: got 2, but need a stage from 0 to 1"):
        make_policy("fixed:stage=2").probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1)))


@dataclass(frozen=True)
class Good(Policy):
    """A policy of a user: every depth is as likely."""

    name = "good"

    def _depth_probabilities(self, evidence, round, costs):
        return np.full(costs.stage_count, 1 / costs.stage_count)


def test_register():
    register(Good)
    assert "good" in policy_names()
    assert make_policy("good") == Good()

    @register
    @dataclass(frozen=True)
    class NeedsStage(Good):
        stage: int
        name = "needs-stage"

    assert make_policy("needs-stage:stage=1") == NeedsStage(stage=1)
    with pytest.raises(StopwiseError, match="policy needs-stage: the setting 'stage' must be giv"):
        make_policy("needs-stage")


def test_refused_registrations():
    @dataclass(frozen=True)
    class Impostor(Good):
        name = "uss-ts"

    @dataclass(frozen=True)
    class Colon(Good):
        name = "a:b"

    @dataclass(frozen=True)
    class NoPolicy:
        name = "no-policy"

    class NoDataclass(Policy):
        name = "no-dataclass"

        def _depth_probabilities(self, evidence, round, costs):
            return np.full(costs.stage_count, 1 / costs.stage_count)

    for policy, message in [
        (Impostor, "a name that no built-in policy has"),
        (Colon, "text without ':', ',', '=' or spaces"),
        (NoPolicy, "a subclass of stopwise.Policy"),
        (Good(), "a subclass of stopwise.Policy"),
        (NoDataclass, "a dataclass, so that its settings can be written down"),
    ]:
        with pytest.raises(StopwiseError) as error:
            register(policy)
        assert message in str(error.value)


@pytest.mark.parametrize("name", policy_names())
def test_a_misspelt_setting_of_a_class_is_refused_by_name(name):
    made = type(make_policy("fixed:stage=0" if name == "fixed" else name))
    known = [field.name for field in dataclasses.fields(made)]
    assert list(inspect.signature(made).parameters) == known  # what an editor completes
    misspelt = known[0] + "s" if known else "alpha"
    advice = f"did you mean .{known[0]}" if known else "known are"
    with pytest.raises(StopwiseError, match=f"^{made.__name__}: .*{misspelt}.*; {advice}"):
        made(**{misspelt: 1})
