"""A problem as JSON: what is written is read back, and what is wrong is refused by its name."""

from __future__ import annotations

import contextlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise import Costs, Problem, StopwiseError


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
    (pattern(weight=1), "patterns[0]: unknown field 'weight'; known are 'outputs', 'p', 'truth'"),
    (changed(patterns=[[0, [0, 0], 1]]), "patterns[0]: got [0, [0, 0], 1], but need an object"),
    (changed(patterns=[{"truth": 0, "p": 1}]), "patterns[0]: the field 'outputs' is missing"),
    (changed(patterns=[]), "patterns: got none, but need at least one"),
    (changed(patterns={}), "patterns: got {}, but need a list of objects"),
    (changed(costs=[0.5]), "costs: got [0.5], but need at least two stages"),
    (changed(costs=[0.5, 0.4]), "costs[1]: got 0.4, but need a cumulative cost of at least 0.5"),
    (changed(costs=[0, 0.1, 0.2]), "patterns[0].outputs: got [0, 0], but need 3 outputs"),
    (changed(costs=[0, math.nan]), "costs[1]: got nan"),
    (changed(costs=[0, 10**400]), "costs[1]: got 1000"),
    (
        changed(costs=[1, -0.5], cumulative=False),
        "costs[1]: got -0.5, but need a finite number",
    ),
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
    (changed(cost=1), "problem: unknown field 'cost'; did you mean 'costs'?"),
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
