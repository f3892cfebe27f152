from __future__ import annotations

import numpy as np
import pytest

from stopwise import Costs, StopwiseError


def test_hand_case_in_other_units():
    costs = Costs.from_stages([1, 4, 5], mistake_cost=20)
    assert costs.cumulative == (1.0, 5.0, 10.0)
    assert costs.per_stage.tolist() == [1.0, 4.0, 5.0]
    assert costs.in_mistakes.tolist() == [0.05, 0.25, 0.5]
    assert costs.thresholds.tolist() == [[0.0, 0.2, 0.45], [-0.2, 0.0, 0.25], [-0.45, -0.25, 0.0]]
    assert costs.stage_count == 3
    assert costs == Costs.from_cumulative((1, 5, 10), 20.0)


def test_what_is_computed_once_cannot_be_changed():
    costs = Costs.from_cumulative((0.1, 0.2))
    for array in (costs.in_mistakes, costs.thresholds, costs.per_stage):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("cumulative", "mistake_cost", "message"),
    [
        ([0.5], 1, "costs: got [0.5], but need at least two stages"),
        ([], 1, "costs: got [], but need at least two stages"),
        ([0.5, 0.4], 1, "costs[1]: got 0.4, but need a cumulative cost of at least 0.5"),
        ([-0.1, 0.4], 1, "costs[0]: got -0.1, but need a finite number of 0 or more"),
        ([0, float("nan")], 1, "costs[1]: got nan, but need a finite number of 0 or more"),
        ([0, float("inf")], 1, "costs[1]: got inf"),
        ([0, 10**5000], 1, "costs[1]: got a number of thousands of digits"),
        ([0, True], 1, "costs[1]: got True"),
        ([0, "1"], 1, "costs[1]: got '1'"),
        ([0, None], 1, "costs[1]: got None"),
        ([0, [1]], 1, "costs[1]: got [1]"),
        ("01", 1, "costs: got '01', but need a list of numbers, one for each stage"),
        (7, 1, "costs: got 7, but need a list of numbers"),
        (None, 1, "costs: got None, but need a list of numbers"),
        ({0.1, 0.2}, 1, "costs: got {0.1, 0.2}, but need a list of numbers"),
        ({0.1: 1, 0.2: 2}, 1, "costs: got {0.1: 1, 0.2: 2}, but need a list of numbers"),
        ([0, 1], 0, "mistake_cost: got 0, but need a number above 0"),
        ([0, 1], -2, "mistake_cost: got -2, but need a number above 0"),
        ([0, 1], float("nan"), "mistake_cost: got nan"),
        ([0, 1], True, "mistake_cost: got True"),
        ([0, 1], 1e-320, "mistake_cost: got 1e-320, but need a number not so small"),
    ],
)
def test_refusals(cumulative, mistake_cost, message):
    with pytest.raises(StopwiseError) as error:
        Costs.from_cumulative(cumulative, mistake_cost)
    assert message in str(error.value)


def test_refusals_of_stage_costs():
    with pytest.raises(StopwiseError, match=r"costs\[1\]: got -1, but need a finite number of 0"):
        Costs.from_stages([2, -1])
    with pytest.raises(StopwiseError, match=r"costs\[1\]: got inf"):
        Costs.from_stages([1e308, 1e308])


def test_free_stages_are_allowed():
    assert Costs.from_stages([0, 0, 0]).cumulative == (0.0, 0.0, 0.0)


def test_numpy_costs():
    assert Costs.from_cumulative(np.array([0.1, 0.2])) == Costs.from_cumulative((0.1, 0.2))
