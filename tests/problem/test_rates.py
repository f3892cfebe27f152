from __future__ import annotations

import itertools

import numpy as np
import pytest

from stopwise import Costs, Problem, StopwiseError
from stopwise.problem.rates import ENUMERATE_UP_TO, joint_from_rates


def hidden_joint(rng, count, number):
    """Rates of a random mixture of `number` sets of wrong stages."""
    wrong = rng.random((number, count)) < rng.random(count) * 0.5
    p = rng.dirichlet(np.ones(number))
    errors = p @ wrong
    table = np.array(
        [[p @ (wrong[:, i] != wrong[:, j]) for j in range(count)] for i in range(count)]
    )
    return errors, table


def assert_rates(errors, table, wrong, p):
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p > 0).all()
    np.testing.assert_allclose(p @ wrong, errors, atol=1e-8)
    for i, j in itertools.combinations(range(len(errors)), 2):
        if table[i][j] is not None:
            assert p @ (wrong[:, i] != wrong[:, j]) == pytest.approx(table[i][j], abs=1e-8)


@pytest.mark.parametrize(
    ("count", "number"),
    [(2, 3), (3, 5), (5, 8), (8, 12), (10, 30), (11, 13), (12, 36), (15, 30), (20, 22), (30, 32)],
)
def test_rates_of_a_hidden_joint_distribution_are_met(count, number):
    rng = np.random.default_rng(count * 100 + number)
    errors, table = hidden_joint(rng, count, number)
    wrong, p = joint_from_rates(errors, table)
    assert_rates(errors, table, wrong, p)


def test_fifty_stages_with_few_pairs_given():
    rng = np.random.default_rng(0)
    errors, full = hidden_joint(rng, 50, 60)
    table: list[list[float | None]] = [[None] * 50 for _ in range(50)]
    for i in range(49):
        table[i][i + 1] = float(full[i, i + 1])
    for j in range(1, 50):
        table[0][j] = float(full[0, j])
    problem = Problem.from_rates(
        errors, table, Costs.from_cumulative(tuple(np.linspace(0, 0.5, 50)))
    )
    np.testing.assert_allclose(problem.error_rates, errors, atol=1e-8)
    np.testing.assert_allclose(problem.disagreements[0, 1:], full[0, 1:], atol=1e-8)


def test_fifty_nested_stages():
    errors = np.linspace(0.6, 0.02, 50)
    table = np.abs(errors[:, None] - errors[None, :])
    problem = Problem.from_rates(
        errors, table, Costs.from_cumulative(tuple(np.linspace(0, 0.5, 50)))
    )
    assert problem.strong_dominance
    np.testing.assert_allclose(problem.disagreements, table, atol=1e-8)


def test_the_result_lies_half_way_between_the_extremes():
    # Two stages leave no freedom; three leave one number, here P(all wrong) in [0, 0.1].
    errors, table = [0.3, 0.3, 0.3], [[0, 0.4, 0.4], [0.4, 0, 0.4], [0.4, 0.4, 0]]
    wrong, p = joint_from_rates(errors, table)
    all_wrong = p[wrong.all(axis=1)].sum()
    extremes = []
    for q in np.linspace(0, 0.2, 2001):  # P(i, j wrong, third right) = 0.1 - q, and so on
        two, one = 0.1 - q, 0.3 - q - 2 * (0.1 - q)
        none = 1 - q - 3 * two - 3 * one
        if min(two, one, none) >= -1e-12:
            extremes.append(q)
    assert all_wrong == pytest.approx((min(extremes) + max(extremes)) / 2, abs=1e-3)


def test_a_pair_that_is_impossible_alone_is_named():
    with pytest.raises(StopwiseError) as error:
        joint_from_rates([0.3, 0.1], [[0, 0.1], [0.1, 0]])
    assert str(error.value) == (
        "disagreements[0][1]: got 0.1, but need a rate between 0.2 and 0.4,"
        " given the two error rates (no joint distribution exists)"
    )


@pytest.mark.parametrize("count", [3, 10, 12, 50])
def test_three_pairs_that_break_the_triangle_inequality_are_named(count):
    errors = [0.3] * count
    table = np.full((count, count), 0.2)
    table[0, 1] = table[0, 2] = 0.1
    table[1, 2] = 0.4
    table = np.triu(table, 1) + np.triu(table, 1).T
    with pytest.raises(StopwiseError) as error:
        joint_from_rates(errors, table)
    assert str(error.value) == (
        "disagreements[1][2]: got 0.4, but need a rate of at most 0.2,"
        " given the disagreements of both with stage 0 (no joint distribution exists)"
    )


def test_three_pairs_that_would_all_disagree_too_often():
    table = [[0, 0.8, 0.8], [0.8, 0, 0.8], [0.8, 0.8, 0]]
    with pytest.raises(StopwiseError, match=r"a rate of at most 0\.4, given the disagreements of"):
        joint_from_rates([0.5, 0.5, 0.5], table)


@pytest.mark.parametrize("count", [5, ENUMERATE_UP_TO + 1])
def test_five_stages_impossible_together_though_any_three_are_possible(count):
    # Among five binary outputs at most 6 of 10 pairs differ, so a mean of 0.65 cannot be.
    # Any three may differ in 2 of 3 pairs, a mean of 0.667.
    table: list[list[float | None]] = [[None] * count for _ in range(count)]
    for i, j in itertools.combinations(range(5), 2):
        table[i][j] = 0.65
    with pytest.raises(StopwiseError, match="no joint distribution has these error and dis"):
        joint_from_rates([0.5] * count, table)


@pytest.mark.parametrize(
    ("errors", "table", "message"),
    [
        ([0.1], [[0]], "error_rates: got [0.1], but need at least two stages"),
        ([0.1, 1.2], [[0, 0], [0, 0]], "error_rates[1]: got 1.2, but need a rate between 0 and 1"),
        ([0.1, float("nan")], [[0, 0], [0, 0]], "error_rates[1]: got nan"),
        ([0.1, 0.1], [[0, -0.1], [0, 0]], "disagreements[0][1]: got -0.1, but need a rate"),
        ([0.1, 0.1], [[0, float("nan")], [0, 0]], "disagreements[0][1]: got nan"),
        ([0.1, 0.1], [[0, 0.1]], "disagreements: need a 2 x 2 table"),
        ([0.1, 0.1], [[0, 0.1], [0.1]], "disagreements: need a 2 x 2 table"),
        ([0.1, 0.1], [[0, 0.1], [0.15, 0]], "disagreements[1][0]: got 0.15, but need 0.1, as dis"),
    ],
)
def test_refusals(errors, table, message):
    with pytest.raises(StopwiseError) as error:
        joint_from_rates(errors, table)
    assert message in str(error.value)


def test_from_rates_wants_a_rate_for_each_cost():
    with pytest.raises(StopwiseError, match=r"error_rates: got \[0.1, 0.2\], but need 3 rates"):
        Problem.from_rates([0.1, 0.2], [[0, 0.1], [0.1, 0]], Costs.from_cumulative((0, 1, 2)))


def test_pairs_may_be_left_free():
    wrong, p = joint_from_rates([0.3, 0.2, 0.1], [[None] * 3] * 3)
    np.testing.assert_allclose(p @ wrong, [0.3, 0.2, 0.1], atol=1e-9)
