"""Errors name the field, the value and what would be accepted."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stopwise as sw
from stopwise.abstentions import as_abstentions
from stopwise.checks import (
    StopwiseError,
    fail,
    finite_number,
    known_names,
    known_version,
    number_within,
    parse_json_object,
    positive_number,
    whole_number,
)


@given(st.one_of(st.integers(-(10**15), 10**15), st.floats(allow_nan=False, allow_infinity=False)))
def test_finite_numbers_are_kept(value):
    assert finite_number("cost", value) == float(value)


@pytest.mark.parametrize("value", [True, "1", b"1", None, math.nan, math.inf, [1], {}, 10**400])
def test_no_finite_number(value):
    with pytest.raises(StopwiseError, match=r"cost: got .*, but need a finite number"):
        finite_number("cost", value)


@pytest.mark.parametrize("value", [0, -1, -0.5])
def test_not_positive(value):
    with pytest.raises(StopwiseError, match=r"alpha: got .*, but need a number above 0"):
        positive_number("alpha", value)


@given(
    st.floats(-3, 3),
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("least", "most", "above", "below"), st.integers(-3, 3))
    ),
)
def test_a_number_within_a_range(value, ends):
    """Against the four comparisons one by one; an end that is not given does not count."""
    held = {
        "least": float.__ge__,
        "most": float.__le__,
        "above": float.__gt__,
        "below": float.__lt__,
    }
    if all(held[name](value, float(end)) for name, end in ends.items()):
        assert number_within("share", value, "a number in the range", **ends) == value
    else:
        with pytest.raises(StopwiseError, match=r"share: got .*, but need a number in the range"):
            number_within("share", value, "a number in the range", **ends)


@pytest.mark.parametrize("value", [np.int64(7), 7.0, np.float32(7), 7])
def test_whole_numbers_of_every_kind(value):
    found = whole_number("horizon", value, least=1)
    assert found == 7
    assert type(found) is int


@given(st.integers(-(10**12), 10**12), st.integers(-5, 5))
def test_whole_numbers_have_a_least(value, least):
    if value >= least:
        assert whole_number("rounds", value, least=least) == value
    else:
        with pytest.raises(StopwiseError, match=f"rounds: .* a whole number, {least} or more"):
            whole_number("rounds", value, least=least)


def test_a_whole_number_of_any_size_keeps_its_digits():
    assert whole_number("seed", 2**60 + 1, least=None) == 2**60 + 1
    with pytest.raises(StopwiseError, match="seed"):
        whole_number("seed", 0.5, least=None)


def test_long_values_are_cut():
    message = str(fail("costs", "x" * 10_000, "less"))
    assert len(message) < 200
    assert message.endswith("..., but need less")
    assert "thousands of digits" in str(fail("seed", 10**5000, "less"))


def test_versions():
    known_version({}, 1)
    known_version({"version": 1}, 1)
    for form in ({"version": True}, {"version": 2}, {"version": None}, {"version": "1"}):
        with pytest.raises(StopwiseError, match=r"version: got .* need version 1"):
            known_version(form, 1)
    with pytest.raises(StopwiseError, match="version: got None"):
        known_version({}, 1, needed=True)


def test_unknown_keys_name_the_nearest():
    known_names("problem", ["costs"], ["costs", "rates"])
    with pytest.raises(StopwiseError, match=r"^problem: unknown field 'rate'; .* 'rates'[?]$"):
        known_names("problem", ["rate"], ["costs", "rates"])
    with pytest.raises(StopwiseError, match=r"unknown setting 'zzz'; known are 'mode', 'policy'"):
        known_names("Cascade", ["zzz"], ["policy", "mode"], "setting")
    with pytest.raises(StopwiseError, match=r"unknown field 'a'; none is known"):
        known_names("empty", ["a"], [])


objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(objects)
def test_json_objects_come_back(form):
    assert parse_json_object("rule", json.dumps(form)) == form


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "field 'a' is given twice"),
        ('{"a": {"b": 1, "b": 2}}', "field 'b' is given twice"),
        ("[1]", "need a JSON object"),
        ("{", "this is not JSON"),
        (b"\xff\xfe{", "this is not JSON"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": 1' + "0" * 5000 + "}", "too many digits"),
        (3, "JSON as text"),
    ],
)
def test_refused_json(text, message):
    with pytest.raises(StopwiseError, match=message):
        parse_json_object("rule", text)


@pytest.mark.parametrize(
    ("choose", "nearest"),
    [
        (lambda: as_abstentions("goon"), "go on"),
        (lambda: sw.Learner({"rule": 0, "model": 1}, mode="shadow", run_to="modle"), "model"),
        (lambda: sw.paper.problem("pima", 3, "calibratd"), "calibrated"),
        (lambda: cast(Any, sw.Learner([0, 1])).best_stage(reading="estimatd"), "estimated"),
    ],
)
def test_a_misspelt_choice_is_told_the_nearest(choose, nearest):
    with pytest.raises(StopwiseError, match=rf"did you mean '{nearest}'\?"):
        choose()


def test_a_simulation_needs_a_problem():
    with pytest.raises(StopwiseError, match="problem: got 'pima', but need a Problem"):
        sw.simulate("pima", "uss-ts", horizon=10, replications=1)


@pytest.mark.parametrize("codes", [[[0.5, 1]], [[np.nan, 1]], [["a", "b"]], [[0, 1], [1]]])
def test_an_estimate_takes_no_codes_that_are_none(codes):
    with pytest.raises(StopwiseError, match="codes: got"):
        sw.estimating.plurality(codes)
