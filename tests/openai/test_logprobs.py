"""Confidences from log-probabilities: by hand, in every form that clients return, and refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.openai.logprobs import confidence_of_logprobs

CHANCES = [0.9, 0.5, 0.8]
LOGS = [math.log(chance) for chance in CHANCES]
TOKENS = [
    {"token": "a", "logprob": LOGS[0], "top_logprobs": [
        {"token": "b", "logprob": math.log(0.06)}, {"token": "a", "logprob": LOGS[0]},
    ]},
    {"token": "b", "logprob": LOGS[1], "top_logprobs": []},
    {"token": "c", "logprob": LOGS[2], "top_logprobs": []},
]  # fmt: skip
OBJECTS = SimpleNamespace(
    choices=[
        SimpleNamespace(
            logprobs=SimpleNamespace(content=[SimpleNamespace(logprob=one) for one in LOGS])
        )
    ]
)


@pytest.mark.parametrize(
    "reply",
    [
        LOGS,
        tuple(LOGS),
        np.asarray(LOGS),
        {"content": TOKENS},
        {"logprobs": {"content": TOKENS}},
        {"choices": [{"message": {"content": "abc"}, "logprobs": {"content": TOKENS}}]},
        {"choices": [{"text": "abc", "logprobs": {"token_logprobs": LOGS, "tokens": list("abc")}}]},
        OBJECTS,
        OBJECTS.choices[0],
        OBJECTS.choices[0].logprobs,
    ],
)
def test_every_form_by_hand(reply):
    assert confidence_of_logprobs(reply) == pytest.approx(0.36 ** (1 / 3))
    assert confidence_of_logprobs(reply, "product") == pytest.approx(0.36)
    assert confidence_of_logprobs(reply, "first") == pytest.approx(0.9)
    assert confidence_of_logprobs(reply, "least") == pytest.approx(0.5)


def test_the_gap_needs_the_next_best():
    assert confidence_of_logprobs({"content": TOKENS}, "gap") == pytest.approx(0.84)
    with pytest.raises(StopwiseError, match="top_logprobs"):
        confidence_of_logprobs(LOGS, "gap")


@given(st.lists(st.floats(-1e6, 0), min_size=1, max_size=50))
def test_it_is_always_a_probability(logs):
    for how in ("mean", "product", "first", "least"):
        assert 0 <= confidence_of_logprobs(logs, how) <= 1
    assert confidence_of_logprobs(logs, "least") <= confidence_of_logprobs(logs) + 1e-12


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([], r"logprobs: got \[\], but need log-probabilities"),
        ([math.nan], "logprobs: got nan, but need log-probabilities, 0 or less"),
        ([0.2], "logprobs: got 0.2"),
        (["-1"], "logprobs: got '-1'"),
        ("abc", "logprobs: got 'abc'"),
        (3, "logprobs: got 3"),
        ({"choices": []}, "choices"),
        ({"choices": [{"logprobs": None}]}, "ask for them with logprobs=True"),
        ({"content": [{"token": "a"}]}, "logprobs: got"),
    ],
)
def test_what_is_none_is_refused(reply, message):
    with pytest.raises(StopwiseError, match=message):
        confidence_of_logprobs(reply)
    with pytest.raises(StopwiseError, match="how: got 'mode'"):
        confidence_of_logprobs(LOGS, "mode")
