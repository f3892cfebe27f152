"""Numbers, JSON, calls of tools and programs: which values agree."""

import json
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from stopwise.live import (
    fenced_json,
    json_fields,
    number,
    python_source,
    tool_call,
)

# ---- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3.5", 3.5),
        ("3,5", None),
        ("1,250", 1250),
        ("1,250.5", 1250.5),
        ("12,34", None),
        ("1.234,5", None),
        ("1,2,3", None),
        (" -7 ", -7),
        ("1e3", 1000.0),
        ("nan", None),
        ("1_000", None),
        ("about 3", None),
        ("9" * 5000, None),
        (float("inf"), None),
        (10**400, 10**400),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (None, None),
        ([1], None),
    ],
)
def test_numbers(text, found):
    assert number().key_of(text) == found


def test_whole_numbers_beyond_floats_are_told_apart():
    assert number().agrees(2**60, 2**60 + 1) is False
    assert number(1).agrees(2**60, 2**60 + 1) is True
    assert number(0.5).agrees(str(2**60), 2**60 + 1) is False
    assert number(relative=1e-3).agrees(10**400, 10**400 + 1) is True


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))
def test_a_tolerance_t_is_sound_only_at_2_t(right, given_answer, t):
    """Who agrees with an answer that is right within t is right within 2 t."""
    truth = right + t / 2
    if number(t).agrees(right, given_answer):
        assert abs(given_answer - truth) <= 2 * t * (1 + 1e-9) + 1e-9


# ---- JSON, tools, programs -------------------------------------------------------------------


def test_json_numbers_are_equal_by_value():
    assert json_fields().agrees('{"a": 1}', '{"a": 1.0}') is True
    assert json_fields("a").agrees({"a": [1, {"b": 2.0}]}, '{"a": [1.0, {"b": 2}]}') is True
    assert json_fields().agrees('{"a": 1}', '{"a": true}') is False
    assert json_fields().agrees('{"a": 1}', '{"a": "1"}') is False
    assert json_fields().agrees({"a": 2**60 + 1}, {"a": 2**60}) is False
    assert json_fields().agrees('{"a": NaN}', '{"a": NaN}') is None
    assert json_fields("a").agrees('{"b": 1}', '{"a": 1}') is None
    assert json_fields().agrees("[" * 100_000, {"a": 1}) is None
    assert json_fields().agrees({"a": {1, 2}}, {"a": 1}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON), st.dictionaries(st.text(max_size=3), JSON))
def test_json_agrees_as_its_values_do(one, two):
    def same(a, b):
        if isinstance(a, bool) != isinstance(b, bool) or type(a) is not type(b):
            return False
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return a == b

    assert json_fields().agrees(json.dumps(one), two) is same(one, two)
    assert json_fields().agrees(one, json.dumps(one, indent=3)) is True
    assert fenced_json().agrees(f"```json\n{json.dumps(one)}\n```", one) is True


@pytest.mark.parametrize(
    ("compare", "one", "two"),
    [
        (json_fields(), '{"a": 1, "a": 2}', '{"a": 2}'),
        (json_fields(), {1: "x"}, {"1": "x"}),
        (json_fields(), '{"a": 0.10000000000000000001}', '{"a": 0.1}'),
        (json_fields(), '{"a": 1e400}', '{"a": 1e400}'),
        (json_fields(), '{"a": 1e-400}', '{"a": 0}'),
        (number(), "0.10000000000000000001", "0.1"),
        (number(), "9007199254740993.0", "9007199254740992"),
        (number(), "1e-400", "0"),
        (tool_call(), {"name": "Ann", "age": 3}, {"name": "Ann"}),
        (tool_call(), {"name": "f", "arguments": {}, "args": {"a": 1}}, {"name": "f", "args": {}}),
        (tool_call(), {"name": "f", "arguments": '{"a": 1, "a": 2}'},
         {"name": "f", "arguments": {"a": 2}}),
        (tool_call(), {"name": "f", "input": {}, "type": "tool_result"},
         {"name": "f", "input": {}}),
        (tool_call(), {"name": "g", "function": {"name": "f", "arguments": {}}},
         {"name": "f", "arguments": {}}),
        (fenced_json(), '```json\n{"a": 1}\n```\nor maybe {"a": 2}', '{"a": 1}'),
        (fenced_json(), '```json\n{"a": 1}\n```\n```json\n{"a": 1,}\n```', '{"a": 1}'),
    ],
)  # fmt: skip
def test_what_may_not_be_equally_right_does_not_agree(compare, one, two):
    assert compare.agrees(one, two) is not True
    assert compare.agrees(two, one) is not True


def test_fenced_json():
    text = 'Sure!\n```json\n{"city": "Rome", "x": 1}\n```\nAnything else?'
    assert fenced_json("city").agrees(text, '{"city": "Rome"}') is True
    assert fenced_json().agrees("```\n[1, 2]\n```", [1.0, 2]) is True
    assert fenced_json("city").agrees(text + "\n" + text, {"city": "Rome"}) is None
    assert fenced_json("city").agrees("no JSON", {"city": "Rome"}) is None
    assert fenced_json("city").agrees("```python\nx = 1\n```\n" + text, {"city": "Rome"}) is True


def test_tool_calls():
    same = tool_call(ignore=["id"])
    plain = {"name": "pay", "arguments": {"sum": 5, "to": "Ann"}}
    forms = [
        json.dumps(plain),
        {"name": "pay", "input": {"to": "Ann", "sum": 5.0, "id": 9}},
        {"type": "function", "function": {"name": "pay", "arguments": '{"to":"Ann","sum":5}'}},
        {"role": "assistant", "tool_calls": [{"id": "x", "function": plain}]},
        [plain],
    ]
    assert all(same.agrees(plain, form) for form in forms)
    assert same.agrees(plain, {"name": "pay", "arguments": {"sum": 6, "to": "Ann"}}) is False
    assert same.agrees(plain, {"name": "buy", "arguments": {"sum": 5, "to": "Ann"}}) is False
    assert same.agrees([plain, forms[1]], [plain]) is False
    assert same.agrees({"name": "f"}, {"name": "f", "arguments": ""}) is True
    oops = {"name": "f", "arguments": "oops"}
    unreadables: tuple[Any, ...] = ("text", {}, [], {"name": 3}, oops, None)
    for unreadable in unreadables:
        assert same.agrees(plain, unreadable) is None


def test_python_source():
    same = python_source()
    assert same.agrees("def f(x):\n    return x+1  # add", "def f(x):\n\n  return (x + 1)") is True
    assert same.agrees("x = 'a'", 'x = "a"') is True
    assert same.agrees("```python\nx = 1\n```", "x=1") is True
    assert same.agrees("x = 1", "y = 1") is False
    for unreadable in ("def f(", "", "```\na\n```\n```\nb\n```", "x = '\0'", "(" * 10_000):
        assert same.agrees("x = 1", unreadable) is None
