from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.learning import least_loss
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations

STAGES = ("small", "medium", "large")


def fitted(
    mistake_cost: float = 30.0, rows: int = 4000, **settings: object
) -> tuple[Rule, Observations]:
    data, _ = made_up(2 * rows, (0.2, 0.9, 1.8), seed=8)
    costs = Costs.from_stages([0.1, 1, 4], mistake_cost)
    return Rule.fit(STAGES, data.where(np.arange(rows)), costs, **settings), data.where(
        np.arange(rows, 2 * rows)
    )


def test_one_decision_is_that_of_many_and_explains_itself() -> None:
    rule, rows = fitted()
    keys = situations(rows, rule.counts.binning)
    depths = rule.depths(rows)
    for at in range(300):
        for stage in range(2):
            key = int(keys[at, stage])
            decision = rule.decide(stage, key)
            assert decision.stop == rule.stops(stage, key)
            assert decision.stop == (decision.here <= decision.deeper + 1e-9)
            if depths[at] == stage:
                assert decision.stop
                break
            assert not decision.stop or stage > depths[at]


def test_easy_items_stop_early_and_hard_ones_go_on() -> None:
    rule, rows = fitted(8.0, reference="last")
    depths = rule.depths(rows)
    assert rows.confidences is not None
    assert len(set(depths.tolist())) > 1
    assert rows.confidences[depths == 0, 0].mean() > rows.confidences[depths > 0, 0].mean() + 0.1


def own_measure(rule: Rule, rows: Observations, depths: np.ndarray) -> float:
    """Calls, and every difference from the last stage as a mistake: what needs no label."""
    at = np.arange(len(rows))
    differs = rows.codes[at, depths] != rows.codes[:, -1]
    return float(
        np.asarray(rule.costs.cumulative)[depths].mean() + rule.costs.mistake_cost * differs.mean()
    )


@pytest.mark.parametrize("mistake_cost", [3.0, 10.0, 30.0, 100.0])
def test_by_its_own_measure_it_is_no_worse_than_any_single_stage(mistake_cost: float) -> None:
    """Held out, with room for estimation: 2 % of the best stage's cost."""
    rule, rows = fitted(mistake_cost, reference="last", trust=1.0)
    own = own_measure(rule, rows, rule.depths(rows))
    fixed = [own_measure(rule, rows, np.full(len(rows), stage)) for stage in range(3)]
    assert own <= min(fixed) * 1.02


def test_it_is_optimal_stopping_on_its_table() -> None:
    """Against every rule on a small table: 2 stages to decide after, 2 situations each."""
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, 2, 4000) for _ in range(3)], axis=1)
    codes[:, 2] = np.where(rng.random(4000) < 0.8, codes[:, 1], codes[:, 2])
    rows = Observations(("no", "yes"), codes)
    costs = Costs.from_stages([0.1, 1, 1.5], 8.0)
    rule = Rule.fit(STAGES, rows, costs, reference="last", trust=1.0)
    own = own_measure(rule, rows, rule.depths(rows))
    agree, says = codes[:, 0] == codes[:, 1], codes[:, 0]
    best = math.inf
    for first in itertools.product((False, True), repeat=2):
        for second in itertools.product((False, True), repeat=4):
            stop_first = np.asarray(first)[says]
            stop_second = np.asarray(second)[2 * agree + codes[:, 1]]
            depths = np.where(stop_first, 0, np.where(stop_second, 1, 2))
            best = min(best, own_measure(rule, rows, depths))
    assert own <= best * 1.001


def test_a_rule_comes_back_from_json_and_decides_alike() -> None:
    rule, rows = fitted()
    again = Rule.from_json(json.dumps({**rule.to_dict(), "reads": ["for people"]}))
    assert again.depths(rows).tolist() == rule.depths(rows).tolist()
    assert again.stages == STAGES


@pytest.mark.parametrize(
    "change",
    [{"version": 3}, {"rule": "other"}, {"stages": ["a"]}, {"costs": [1, 2]}, {"counts": {}},
     {"unknown": 1}, {"mistake_cost": 0}, {"reference": "x"}],
)  # fmt: skip
def test_a_damaged_rule_is_refused(change: dict[str, object]) -> None:
    rule, _ = fitted(rows=200)
    with pytest.raises(StopwiseError):
        _ = Rule.from_dict({**rule.to_dict(), **change}).risks


def test_an_abstaining_stage_is_passed_by() -> None:
    codes = np.array([[-1, 0], [0, 0]] * 100)
    rows = Observations(("a",), codes)
    rule = Rule.fit(("a", "b"), rows, Costs.from_stages([1, 1], 10))
    assert rule.depths(rows).tolist() == [1, 0] * 100


def test_without_confidences_the_partition_still_decides() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 6000)
    codes = np.where(rng.random((6000, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    rows = Observations(("no", "yes"), codes)
    rule = Rule.fit(STAGES, rows, Costs.from_stages([1, 1, 1], 30), reference="consensus")
    depths = rule.depths(rows)
    agree = codes[:, 0] == codes[:, 1]
    assert (depths[agree] == 1).all()
    assert (depths[~agree] == 2).all()


def test_losses_that_are_equal_on_paper_are_equal() -> None:
    """After all stages the deepest of equals answers, also where rounding made it worse."""
    rule, rows = fitted(rows=200)
    losses = np.array([[0.5, 0.3, 0.1 + 0.2]])
    held = SimpleNamespace(loss=lambda groups: losses)
    vars(rule)["held"] = held
    assert rule.answering((0, 1, 2)) == 2
    assert least_loss(held, rows.where(np.array([0]))).tolist() == [2]
    alone = replace(AloneRule.fit(STAGES, rows, rule.costs), held=held)
    assert alone.answering(np.array([[0, 1, 2]])).tolist() == [2]
