from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from stopwise import Costs, Problem, StopwiseError


def three_stages(costs):
    """Hand case. Wrong sets: none .5, {1} .2, {1,2} .1, {2} .05, {1,2,3} .1, {3} .05."""
    return Problem.from_patterns(
        [
            ("x", ["x", "x", "x"], 0.5),
            ("x", ["y", "x", "x"], 0.2),
            ("x", ["y", "y", "x"], 0.1),
            ("x", ["x", "y", "x"], 0.05),
            ("x", ["y", "y", "y"], 0.1),
            ("x", ["x", "x", "y"], 0.05),
        ],
        Costs.from_cumulative(costs),
    )


def test_hand_case():
    problem = three_stages((0.05, 0.15, 0.4))
    np.testing.assert_allclose(problem.error_rates, [0.4, 0.25, 0.15], atol=1e-15)
    np.testing.assert_allclose(
        problem.disagreements, [[0, 0.25, 0.35], [0.25, 0, 0.2], [0.35, 0.2, 0]], atol=1e-15
    )
    np.testing.assert_allclose(problem.expected_total_costs, [0.45, 0.4, 0.55], atol=1e-15)
    assert problem.optimal_stage == 1
    np.testing.assert_allclose(problem.gaps, [0.05, 0, 0.15], atol=1e-15)
    # xi_1 = p_12 - (C_2 - C_1), xi_3 = C_3 - C_2 - p_23
    np.testing.assert_allclose(problem.margins, [0.15, math.nan, 0.05], atol=1e-15)
    assert problem.margin == pytest.approx(0.05)
    assert problem.weak_dominance
    assert not problem.strong_dominance
    # B: stage 1 fails against 2 (0.1 > 0.25 is false), stage 2 passes (0.25 > 0.2), stage 3 always.
    assert problem.stopping_set == (1, 2)
    assert problem.stopping_stage == 1


def test_weak_dominance_fails_where_the_price_equals_the_disagreement():
    problem = three_stages((0.05, 0.15, 0.35))  # C_3 - C_2 = 0.2 = p_23, up to rounding
    assert problem.optimal_stage == 1
    assert problem.margin == pytest.approx(0, abs=1e-12)
    assert not problem.weak_dominance
    assert problem.stopping_set == (2,)


def test_optimal_stage_is_the_last_of_equals():
    # Totals 0.4 + 0.3, 0.25 + 0.45, 0.15 + 0.55: equal on paper, not in the last bit.
    problem = three_stages((0.3, 0.45, 0.55))
    assert len(set(problem.expected_total_costs.tolist())) > 1
    assert problem.optimal_stage == 2
    assert problem.margin == math.inf
    assert problem.weak_dominance
    assert problem.gaps.max() < 1e-15


def test_mistake_cost_scales_the_costs():
    one = three_stages((0.05, 0.15, 0.4))
    ten = three_stages((0.05, 0.15, 0.4)).with_costs(
        Costs.from_cumulative((0.5, 1.5, 4.0), mistake_cost=10)
    )
    np.testing.assert_allclose(one.gaps, ten.gaps, atol=1e-15)
    np.testing.assert_allclose(one.margins, ten.margins, atol=1e-15)


def test_strong_dominance_ignores_impossible_patterns():
    patterns = [(0, [1, 0], 0.5), (0, [0, 0], 0.5), (0, [0, 1], 0.0)]
    assert Problem.from_patterns(patterns, Costs.from_cumulative((0, 1))).strong_dominance
    patterns = [(0, [1, 0], 0.5), (0, [0, 0], 0.4), (0, [0, 1], 0.1)]
    assert not Problem.from_patterns(patterns, Costs.from_cumulative((0, 1))).strong_dominance


def random_problem(rng, count, labels=3):
    number = int(rng.integers(2, 40))
    p = rng.dirichlet(np.ones(number))
    patterns = [
        (int(rng.integers(labels)), rng.integers(0, labels, size=count).tolist(), float(weight))
        for weight in p
    ]
    costs = np.cumsum(rng.random(count) * rng.choice([0.05, 0.2, 0.6]))
    return patterns, Costs.from_cumulative(tuple(costs), float(rng.choice([0.5, 1.0, 3.0])))


def test_against_loops_over_patterns():
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(200):
        count = int(rng.integers(2, 13))
        patterns, costs = random_problem(rng, count, labels=int(rng.integers(2, 5)))
        problem = Problem.from_patterns(patterns, costs)
        price = [c / costs.mistake_cost for c in costs.cumulative]
        error = [sum(w for y, out, w in patterns if out[i] != y) for i in range(count)]
        differ = [
            [sum(w for _, out, w in patterns if out[i] != out[j]) for j in range(count)]
            for i in range(count)
        ]
        total = [error[i] + price[i] for i in range(count)]
        best = max(i for i in range(count) if total[i] <= min(total) + 1e-12)
        xi = []
        for j in range(count):
            if j < best:
                xi.append(differ[best][j] - (price[best] - price[j]))
            elif j > best:
                xi.append(price[j] - price[best] - differ[best][j])
            else:
                xi.append(math.nan)
        b = [
            i
            for i in range(count)
            if all(price[j] - price[i] > differ[i][j] + 1e-12 for j in range(i + 1, count))
        ]
        strong = all(
            out[j] == y
            for y, out, w in patterns
            for i in range(count)
            for j in range(i + 1, count)
            if w > 0 and out[i] == y
        )
        np.testing.assert_allclose(problem.error_rates, error, atol=1e-12)
        np.testing.assert_allclose(problem.disagreements, differ, atol=1e-12)
        assert problem.optimal_stage == best
        np.testing.assert_allclose(
            problem.gaps, [value - total[best] for value in total], atol=1e-12
        )
        np.testing.assert_allclose(problem.margins, xi, atol=1e-12)
        margin = min(xi[best + 1 :], default=math.inf)
        assert problem.margin == pytest.approx(margin, abs=1e-12)
        assert problem.weak_dominance == (margin > 1e-12)
        assert problem.stopping_set == tuple(b)
        assert problem.strong_dominance == strong
        if problem.weak_dominance:  # Lemma 1
            assert problem.stopping_stage == problem.optimal_stage
        seen.add((problem.weak_dominance, best == count - 1))
    assert len(seen) == 3  # dominance trivially, dominance not trivially, no dominance


def test_fifty_stages():
    rng = np.random.default_rng(3)
    patterns, costs = random_problem(rng, 50)
    problem = Problem.from_patterns(patterns, costs)
    assert problem.stage_count == 50
    assert problem.disagreements.shape == (50, 50)
    assert Problem.from_json(problem.to_json()) == problem


def test_from_predictions_counts_rows_and_keeps_their_order():
    predictions = [[0, 1, 1], [0, 0, 0], [0, 1, 1], [1, 1, 0]]
    problem = Problem.from_predictions(
        predictions, [1, 0, 1, 1], Costs.from_cumulative((0, 0.1, 0.2))
    )
    assert problem.rows.tolist() == [0, 1, 0, 2]
    assert problem.p.tolist() == [0.5, 0.25, 0.25]
    np.testing.assert_allclose(problem.error_rates, [0.5, 0, 0.25])
    again = Problem.from_json(problem.to_json())
    assert again == problem
    assert again.rows.tolist() == [0, 1, 0, 2]


def test_labels_of_a_mixed_table_stay_what_they_are():
    problem = Problem.from_predictions(
        [["a", 1], [1, "a"]], ["a", 1], Costs.from_cumulative((0, 1))
    )
    assert problem.error_rates.tolist() == [0.0, 1.0]
    assert set(problem.labels) == {"a", 1}


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, bool, "U3", object])
def test_numpy_predictions(kind):
    table = np.array([[0, 1], [1, 1]]).astype(kind)
    truth = np.array([1, 1]).astype(kind)
    problem = Problem.from_predictions(table, truth, Costs.from_cumulative((0, 1)))
    assert problem.error_rates.tolist() == [0.5, 0.0]
    assert Problem.from_json(problem.to_json()) == problem


def test_numpy_labels_in_patterns():
    outputs: Any = np.array([0, 1])
    problem = Problem.from_patterns(
        [(np.int64(0), outputs, np.float64(1))], Costs.from_cumulative((0, 1))
    )
    assert Problem.from_json(problem.to_json()) == problem


def test_a_problem_keeps_to_itself():
    rows = np.array([0, 1])
    problem = Problem.from_predictions(
        [[0, 1], [1, 1]], [1, 1], Costs.from_cumulative((0, 1))
    ).with_rows(rows)
    rows[0] = 1
    assert problem.rows.tolist() == [0, 1]
    for array in (problem.p, problem.rows, problem.error_rates, problem.gaps, problem.margins):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_strong_dominance_implies_weak_for_binary_outputs():
    rng = np.random.default_rng(5)
    for _ in range(100):
        count = int(rng.integers(2, 8))
        weights = rng.dirichlet(np.ones(count + 1))
        nested = [
            (0, [1] * wrong + [0] * (count - wrong), float(p)) for wrong, p in enumerate(weights)
        ]
        costs = Costs.from_cumulative(tuple(np.cumsum(rng.random(count) * 0.3)))
        problem = Problem.from_patterns(nested, costs)
        assert problem.strong_dominance
        assert problem.weak_dominance


def test_proposition_3_bounds_error_differences_by_disagreement():
    rng = np.random.default_rng(6)
    for _ in range(50):
        patterns, costs = random_problem(rng, 5)
        problem = Problem.from_patterns(patterns, costs)
        for i, j in itertools.permutations(range(5), 2):
            difference = problem.error_rates[i] - problem.error_rates[j]
            assert difference <= problem.disagreements[i, j] + 1e-12


@pytest.mark.parametrize("build", [
    lambda costs: Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs),
    lambda costs: Problem.from_patterns([(0, [0, 0], 1.0)], costs),
    lambda costs: Problem.from_predictions([[0, 1]], [0], costs),
    lambda costs: Problem.from_patterns(
        [(0, [0, 0], 1.0)], Costs.from_stages([0, 1])
    ).with_costs(costs),
])  # fmt: skip
def test_plain_numbers_are_no_costs(build):
    with pytest.raises(StopwiseError, match=r"^costs: got \[0.1, 0.3\], but need Costs, such as"):
        build([0.1, 0.3])
