from __future__ import annotations

import contextlib
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    outputs = np.array([0, 1])
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


def test_labels_that_json_cannot_hold():
    problem = Problem.from_patterns([((1, 2), [(1, 2), (3,)], 1.0)], Costs.from_cumulative((0, 1)))
    assert problem.error_rates.tolist() == [0.0, 1.0]
    assert problem == Problem.from_patterns(
        [((1, 2), [(1, 2), (3,)], 1.0)], Costs.from_cumulative((0, 1))
    )
    with pytest.raises(StopwiseError, match=r"labels: got \(1, 2\), but need text, a number or"):
        problem.to_json()


label = st.one_of(
    st.text(max_size=3),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
).filter(lambda value: value not in (0, 1))


@st.composite
def problems(draw):
    count = draw(st.integers(2, 12))
    labels = draw(st.lists(label, min_size=1, max_size=4))
    labels += draw(st.sampled_from([[True, False], [1, 0], []]))
    one = st.tuples(
        st.sampled_from(labels), st.lists(st.sampled_from(labels), min_size=count, max_size=count)
    )
    rows = draw(st.lists(one, min_size=1, max_size=8))
    rows += rows[: draw(st.integers(0, 3))]  # equal patterns, to be merged
    weights = draw(st.lists(st.integers(1, 1000), min_size=len(rows), max_size=len(rows)))
    costs = draw(st.lists(st.floats(0, 10), min_size=count, max_size=count))
    mistake_cost = draw(st.floats(0.01, 100))
    total = sum(weights)
    return (
        [(y, out, w / total) for (y, out), w in zip(rows, weights, strict=True)],
        Costs.from_stages(costs, mistake_cost),
    )


@settings(max_examples=100, deadline=None)
@given(problems())
def test_json_round_trip(case):
    patterns, costs = case
    problem = Problem.from_patterns(patterns, costs)
    again = Problem.from_json(problem.to_json())
    assert again == problem
    assert hash(again) == hash(problem)
    assert again.to_json() == problem.to_json()
    assert again.gaps.tolist() == problem.gaps.tolist()
    assert len(problem.p) == len({(y, tuple(out)) for y, out, _ in patterns})


@settings(max_examples=100, deadline=None)
@given(problems(), st.randoms())
def test_merging_and_order_do_not_change_the_rates(case, random):
    patterns, costs = case
    halves = [(y, out, p / 2) for y, out, p in patterns] * 2
    random.shuffle(halves)
    one, two = Problem.from_patterns(patterns, costs), Problem.from_patterns(halves, costs)
    np.testing.assert_allclose(one.error_rates, two.error_rates, atol=1e-12)
    np.testing.assert_allclose(one.disagreements, two.disagreements, atol=1e-12)


GOOD = {
    "costs": [0, 0.5],
    "cumulative": True,
    "patterns": [
        {"truth": 0, "outputs": [0, 0], "p": 0.5},
        {"truth": 0, "outputs": [1, 0], "p": 0.5},
    ],
}


def changed(**changes):
    return json.dumps({**GOOD, **changes})


def pattern(**changes):
    return changed(patterns=[{**GOOD["patterns"][0], **changes}, GOOD["patterns"][1]])


BIG = "1" + "0" * 5000

REFUSED = [
    (pattern(p=0.4), "patterns: probabilities sum to 0.9, but must sum to 1"),
    (pattern(p=-0.5), "patterns[0].p: got -0.5, but need a probability between 0 and 1"),
    (pattern(p=1.5), "patterns[0].p: got 1.5, but need a probability between 0 and 1"),
    (pattern(p=math.nan), "patterns[0].p: got nan"),
    (pattern(p=math.inf), "patterns[0].p: got inf"),
    (pattern(p="0.5"), "patterns[0].p: got '0.5'"),
    (pattern(p=True), "patterns[0].p: got True"),
    (pattern(p=None), "patterns[0].p: got None"),
    (pattern(outputs=[0]), "patterns[0].outputs: got [0], but need 2 outputs, one for each cost"),
    (pattern(outputs=[0, 0, 0]), "patterns[0].outputs: got [0, 0, 0], but need 2 outputs"),
    (pattern(outputs="00"), "patterns[0].outputs: got '00', but need a list"),
    (pattern(outputs=5), "patterns[0].outputs: got 5, but need a list"),
    (pattern(outputs={"0": 1}), "patterns[0].outputs: got {'0': 1}, but need a list"),
    (pattern(outputs=[0, None]), "patterns[0].outputs: got None, but need a label"),
    (pattern(outputs=[0, [1]]), "patterns[0].outputs: got [1], but need a label"),
    (pattern(outputs=[0, math.nan]), "patterns[0].outputs: got nan, but need a label"),
    (pattern(outputs=[0, math.inf]), "patterns[0].outputs: got inf, but need a label"),
    (pattern(truth=None), "patterns[0].truth: got None, but need a label"),
    (pattern(truth={}), "patterns[0].truth: got {}, but need a label"),
    (
        pattern(truth=False, outputs=[False, False]),
        "patterns[1].truth: got 0, but need labels that are either true and false or 1 and 0",
    ),
    (pattern(outputs=[0, True]), "patterns[1].outputs: got 1, but need labels that are either"),
    (pattern(weight=1), "patterns[0]: unknown field 'weight'; known are 'truth', 'outputs', 'p'"),
    (changed(patterns=[[0, [0, 0], 1]]), "patterns[0]: got [0, [0, 0], 1], but need an object"),
    (changed(patterns=[{"truth": 0, "p": 1}]), "patterns[0]: the field 'outputs' is missing"),
    (changed(patterns=[]), "patterns: got none, but need at least one"),
    (changed(patterns={}), "patterns: got {}, but need a list of objects"),
    (changed(costs=[0.5]), "costs: got [0.5], but need at least two stages"),
    (changed(costs=[0.5, 0.4]), "costs[1]: got 0.4, but need a cumulative cost of at least 0.5"),
    (changed(costs=[0, 0.1, 0.2]), "patterns[0].outputs: got [0, 0], but need 3 outputs"),
    (changed(costs=[0, math.nan]), "costs[1]: got nan"),
    (changed(costs=[0, 10**400]), "costs[1]: got 1000"),
    (changed(costs=[1, -0.5], cumulative=False), "costs[1]: got -0.5, but need a cost of 0 or"),
    (changed(costs=[1e308, 1e308], cumulative=False), "costs[1]: got inf"),
    (changed(costs={"a": 1}), "costs: got {'a': 1}, but need a list of numbers"),
    (changed(cumulative=1), "cumulative: got 1, but need true or false"),
    (changed(mistake_cost=0), "mistake_cost: got 0, but need a number above 0"),
    (changed(mistake_cost=None), "mistake_cost: got None, but need a number above 0"),
    (changed(stages=["a"]), "stages: got ['a'], but need 2 different names, one for each cost"),
    (changed(stages=["a", "a"]), "stages: got ['a', 'a'], but need 2 different names"),
    (changed(stages=["a", 1]), "stages: got ['a', 1], but need a list of names"),
    (changed(stages="ab"), "stages: got 'ab', but need a list of names"),
    (changed(stages=2), "stages: got 2, but need a list of names"),
    (changed(stages={"a": 1, "b": 2}), "but need a list of names"),
    (changed(stages=["a", "b\n"]), "but need a list of names, each of printable characters"),
    (changed(rows=[0, 2]), "rows[1]: got 2, but need a pattern index below 2"),
    (changed(rows=[0, -1]), "rows[1]: got -1, but need a whole number, 0 or more"),
    (changed(rows=[]), "rows: got [], but need a list of pattern indices"),
    (changed(rows=3), "rows: got 3, but need a list of pattern indices"),
    (
        changed(rows=[0, 0, 0, 1]),
        "patterns[0].p: got 0.5, but need its share of the rows, 0.75",
    ),
    (changed(version=2), "version: got 2, but need version 1"),
    (changed(version=True), "version: got True, but need version 1"),
    (changed(cost=1), "problem: unknown field 'cost'; known are 'version', 'costs'"),
    ('{"costs": [0, 1]}', "problem: the field 'patterns' is missing"),
    ('{"patterns": []}', "problem: the field 'costs' is missing"),
    ('{"costs": [0, 1], "costs": [0, 2]}', "problem: field 'costs' is given twice"),
    ("[1, 2]", "problem: got [1, 2], but need a JSON object"),
    ("", "problem: this is not JSON (Expecting value: line 1 column 1 (char 0))"),
    ('{"costs": [0, 1],}', "problem: this is not JSON"),
    (b"\xff\xfe\x00", "problem: this is not JSON"),
    ("[" * 100_000, "problem: this JSON is nested too deeply"),
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "problem: this JSON is nested too deeply"),
    (f'{{"costs": [0, {BIG}]}}', "problem: this JSON has a number of too many digits"),
    (7, "problem: got 7, but need JSON as text"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(text, message):
    with pytest.raises(StopwiseError) as error:
        Problem.from_json(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_form_of_the_refusals_is_otherwise_good():
    problem = Problem.from_json(json.dumps(GOOD))
    assert problem.error_rates.tolist() == [0.5, 0.0]
    assert Problem.from_json(changed(cumulative=False)).costs.cumulative == (0.0, 0.5)
    assert Problem.from_json(json.dumps(GOOD).encode()) == problem


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=8,
    ),
    st.sampled_from(["costs", "cumulative", "mistake_cost", "stages", "patterns", "rows"]),
)
def test_whatever_stands_in_a_field_is_taken_or_refused_by_name(value, field):
    with contextlib.suppress(StopwiseError):  # any other error fails the test
        Problem.from_json(changed(**{field: value}))


@pytest.mark.parametrize(
    ("predictions", "truth", "message"),
    [
        ([[0, 1], [1]], [0, 1], "predictions: got (2,), but need a table of items by 2 stages"),
        ([[0, 1, 1]], [0], "predictions: got (1, 3), but need a table of items by 2 stages"),
        ([[0, 1]], [0, 1], "truth: got (2,), but need 1 values"),
        (np.zeros((0, 2)), [], "truth: got (0,), but need 0 values, one for each row, and not 0"),
        ([[0, None]], [0], "predictions[0][1]: got None, but need a label"),
        ([[0, math.nan]], [0], "predictions[0][1]: got nan, but need a label"),
        ([[0, 1]], [math.nan], "truth[0]: got nan, but need a label"),
        (["ab", "cd"], [0, 1], "predictions: got (2,), but need a table"),
    ],
)
def test_refused_predictions(predictions, truth, message):
    with pytest.raises(StopwiseError) as error:
        Problem.from_predictions(predictions, truth, Costs.from_cumulative((0, 1)))
    assert message in str(error.value)


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
