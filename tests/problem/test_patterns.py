"""How patterns are read: labels become codes, equal patterns one, and nothing is guessed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise import Costs, Problem, StopwiseError
from stopwise.problem.patterns import (
    code_patterns,
    code_predictions,
    frozen,
    json_patterns,
    probabilities,
    stage_names,
)

labels = st.one_of(st.text(max_size=2), st.integers(2, 5), st.tuples(st.integers(0, 2)))


@st.composite
def pattern_lists(draw):
    count = draw(st.integers(1, 4))
    outputs = st.lists(labels, min_size=count, max_size=count)
    rows = draw(st.lists(st.tuples(labels, outputs), min_size=1, max_size=8))
    return count, [(truth, out, 1 / len(rows)) for truth, out in rows]


@given(pattern_lists())
def test_codes_stand_for_labels_and_weights_are_kept(case):
    count, patterns = case
    table, p, coded = code_patterns(patterns, count)
    expected: dict[tuple, float] = {}
    for truth, outputs, weight in patterns:
        key = (truth, *outputs)
        expected[key] = expected.get(key, 0.0) + weight
    read_back = {tuple(coded[code] for code in row): w for row, w in zip(table, p, strict=True)}
    assert read_back == pytest.approx(expected)
    assert len(coded) == len(set(coded)), "one code for one label"
    assert set(table.ravel()) == set(range(len(coded))), "no code without a label"


@given(pattern_lists())
def test_a_table_of_predictions_is_read_as_its_rows(case):
    count, patterns = case
    predictions = np.empty((len(patterns), count), dtype=object)
    truth = np.empty(len(patterns), dtype=object)
    for at, (answer, outputs, _) in enumerate(patterns):
        truth[at] = answer
        for stage, output in enumerate(outputs):
            predictions[at, stage] = output
    different, rows, coded = code_predictions(predictions, truth, count)
    assert len(different) == len({(answer, *outputs) for answer, outputs, _ in patterns})
    for at, (answer, outputs, _) in enumerate(patterns):
        assert [coded[code] for code in different[rows[at]]] == [answer, *outputs]


def test_numpy_labels_are_the_labels_they_hold():
    table, _, coded = code_patterns([(np.int64(3), [3, np.str_("a")], 1.0)], 2)
    assert table.tolist() == [[0, 0, 1]]
    assert coded == (3, "a")
    assert type(coded[0]) is int


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ([], "patterns: got none, but need at least one"),
        ([(0, "ab", 1.0)], "patterns[0].outputs: got 'ab', but need a list, one output"),
        ([(0, {0, 1}, 1.0)], "patterns[0].outputs: got {0, 1}, but need a list, one output"),
        ([(0, [0], 1.0)], "patterns[0].outputs: got [0], but need 2 outputs, one for each cost"),
        ([(0, [0, 1], 1.5)], "patterns[0].p: got 1.5, but need a probability between 0 and 1"),
        ([(0, [0, 1], "1")], "patterns[0].p: got '1', but need a probability between 0 and 1"),
        ([(0, [0, 1], math.nan)], "patterns[0].p: got nan, but need a probability"),
        ([(None, [0, 1], 1.0)], "patterns[0].truth: got None, but need a label"),
        ([(0, [0, [1]], 1.0)], "patterns[0].outputs: got [1], but need a label"),
        ([(0, [0, {1}], 1.0)], "patterns[0].outputs: got {1}, but need a label that can be hashed"),
        ([(0, [0, 1])], "patterns[0]: got (0, [0, 1]), but need truth, outputs and probability"),
        ([7], "patterns[0]: got 7, but need truth, outputs and probability"),
    ],
)
def test_refused_patterns(patterns, message):
    with pytest.raises(StopwiseError) as error:
        code_patterns(patterns, 2)
    assert message in str(error.value)


def test_true_and_one_are_not_mixed_up_in_json():
    ones = [{"truth": 1, "outputs": [1, 0], "p": 1}]
    assert list(json_patterns(ones)) == [(1, [1, 0], 1)]
    for mixed in (
        [{"truth": 1, "outputs": [True, 0], "p": 1}],
        [*ones, {"truth": False, "outputs": [1, 1], "p": 1}],
    ):
        with pytest.raises(StopwiseError, match="either true and false or 1 and 0, not both"):
            list(json_patterns(mixed))


@pytest.mark.parametrize(
    ("total", "kept"),
    [(1.0, True), (1.0 + 1e-13, True), (1.0 - 1e-9, False), (1.0 + 9e-7, False)],
)
def test_sums_near_one_are_made_one_and_others_refused(total, kept):
    p = np.array([0.25 * total, 0.75 * total])
    read = probabilities(p)
    assert read.sum() == pytest.approx(1, abs=1e-12)
    assert (read.tolist() == p.tolist()) is kept
    with pytest.raises(StopwiseError, match=r"probabilities sum to 1\.00001, but must sum to 1"):
        probabilities(np.array([1.00001]))
    assert probabilities(np.array([1.0 + 2e-16])).tolist() == [1.0], "never above one"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("ab", "stages: got 'ab', but need a list of names, each of printable characters"),
        ({"a": 1, "b": 2}, "stages: got {'a': 1, 'b': 2}, but need a list of names"),
        (["a", " "], "stages: got ['a', ' '], but need a list of names"),
        (["a", "b\n"], "but need a list of names, each of printable characters"),
        (["a", 3], "stages: got ['a', 3], but need a list of names"),
        (["a", "a"], "stages: got ['a', 'a'], but need 2 different names, one for each cost"),
        (["a"], "stages: got ['a'], but need 2 different names, one for each cost"),
    ],
)
def test_refused_names(names, message):
    with pytest.raises(StopwiseError) as error:
        stage_names(names, 2)
    assert message in str(error.value)


def test_names_may_come_from_any_list_like_thing():
    assert stage_names((name for name in "xy"), 2) == ("x", "y")
    assert stage_names(None, 1) == ("stage 1",)


def test_what_is_frozen_cannot_be_written_to():
    array = frozen(np.zeros(2))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


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
