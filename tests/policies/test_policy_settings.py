"""Settings of policies: NumPy's scalars, JSON of this and the last version, who sees the truth."""

import inspect
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stopwise import Costs, Evidence, Policy, Problem, StopwiseError, make_policy, simulate
from stopwise.policies.base import certain_depth
from stopwise.policies.oracle import Oracle, with_oracle_stage
from stopwise.policies.registry import (
    policy_class,
    policy_from_json,
    policy_names,
    policy_to_json,
    same_policy_text,
)

COSTS = Costs.from_cumulative((0.0, 0.25))
PROBLEM = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], COSTS)

NUMPY_SETTINGS = [
    ("fixed", {"stage": np.int64(0)}),
    ("oracle", {"stage": np.int32(1)}),
    ("uss-ts", {"prior_disagreed": np.float32(2)}),
    ("uss-ts-literal", {"prior_agreed": np.int8(2)}),
    ("uss-ts-jump", {"temper": np.int64(2), "prior_agreed": np.float32(1.5)}),
    ("uss-ts-tempered", {"temper": np.float64(3)}),
    ("uss-ucb", {"alpha": np.float32(0.75)}),
    ("hanawal-2", {"alpha": np.int64(2)}),
    ("uss-voi", {"kappa": np.float32(2), "horizon": np.int64(50)}),
    ("uss-voi-anytime", {"head_start": np.int64(10), "rho0": np.float32(0.25)}),
    ("imed", {"horizon": np.int64(50)}),
    ("agree-in-a-row", {"number": np.int64(3)}),
    ("uss-pd", {"alpha": np.float32(0.5), "start": np.int64(5)}),
    ("per-item-logistic", {"kappa": np.float32(0.5), "strength": np.float64(2)}),
    ("per-item", {"kappa": np.float32(0.5), "always_full": np.int64(5)}),
]


@pytest.mark.parametrize(("name", "settings"), NUMPY_SETTINGS)
def test_numpy_scalars_are_settings_like_any_other(name, settings):
    policy = make_policy(name, **settings)
    assert make_policy(policy.label()) == policy
    assert policy_from_json(policy_to_json(policy)) == policy
    for value in policy.settings().values():
        assert type(value) in (int, float, str, type(None))
    assert simulate(PROBLEM, policy, horizon=20, replications=2).policy == policy.label()


def test_every_policy_is_tried():
    assert {name for name, _ in NUMPY_SETTINGS} >= set(policy_names()) - {"second-stage"}


def test_a_setting_that_json_cannot_hold_is_refused_before_the_rounds_run():
    @dataclass(frozen=True)
    class Odd(Policy):
        stages: frozenset = frozenset()
        name = "odd"

        def _depth_probabilities(self, evidence, round, costs):
            raise AssertionError("ran")

    with pytest.raises(StopwiseError, match=r"policy odd: stages: got .*JSON can hold"):
        simulate(PROBLEM, Odd(frozenset({1})), horizon=20, replications=2)
    with pytest.raises(StopwiseError, match=r"policy odd: got .*JSON can hold"):
        policy_to_json(Odd(frozenset({1})))


def test_json_of_the_last_version_is_read():
    old = '{"version": 1, "policy": "uss-ucb", "parameters": {"alpha": 0.51}}'
    assert policy_from_json(old) == make_policy("uss-ucb:alpha=0.51")
    assert json.loads(policy_to_json(policy_from_json(old)))["settings"] == {"alpha": 0.51}
    assert same_policy_text(old, policy_to_json(policy_from_json(old)))
    assert not same_policy_text(old, policy_to_json(make_policy("uss-ucb")))
    assert not same_policy_text("no JSON", old)
    with pytest.raises(StopwiseError, match="not both"):
        policy_from_json('{"policy": "uss-ucb", "parameters": {}, "settings": {}}')


def test_a_learner_of_the_last_version_goes_on():
    from stopwise.live import Learner

    learner = Learner({"a": 0.1, "b": 0.2}, "uss-voi-anytime", mistake_cost=2, seed=5)
    text = json.dumps(learner.to_form())
    assert '\\"settings\\": {' in text
    old = text.replace('\\"settings\\": {', '\\"parameters\\": {')
    again = Learner({"a": 0.1, "b": 0.2}, "uss-voi-anytime", mistake_cost=2, seed=5)
    again.restore(json.loads(old))


def test_only_the_oracle_is_shown_the_truth():
    @dataclass(frozen=True)
    class Curious(Policy):
        name = "curious"

        def for_horizon(self, horizon):
            seen.append(horizon)
            return self

        def _depth_probabilities(self, evidence, round, costs):
            return certain_depth(costs.stage_count, 0)

    seen: list[Any] = []
    simulate(PROBLEM, Curious(), horizon=20, replications=2, engine="reference")
    assert seen == [20]
    assert with_oracle_stage(Oracle(), 1) == Oracle(1)
    assert with_oracle_stage(Oracle(0), 1) == Oracle(0)
    for name in policy_names():
        methods = inspect.getmembers(policy_class(name), inspect.isfunction)
        for _, method in methods:
            assert "optimal_stage" not in inspect.signature(method).parameters
    result = simulate(PROBLEM, "oracle", horizon=20, replications=2)
    assert result.regret.mean == 0.0
    with pytest.raises(StopwiseError, match="only a simulation"):
        Oracle().for_horizon(20).probabilities(Evidence(2), 1, COSTS)
