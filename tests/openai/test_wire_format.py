"""The wire format: streams cut anywhere, answers put together, chains of comparators."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.openai.bodies import read_chat
from stopwise.openai.comparators import parse_comparator
from stopwise.openai.completions import (
    Completion,
    Decided,
    ToolCall,
    Usage,
    read_completion,
    usage_of,
)
from stopwise.openai.conversations import conversation_of, uniform_of
from stopwise.openai.decisions import read_question
from stopwise.openai.errors import ProtocolError
from stopwise.openai.streams import DONE, Events, StreamedAnswer, event_bytes, parse_chunk

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(texts, json_values, max_size=3), max_size=6),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_a_stream_may_be_cut_anywhere(
    forms: list[dict[str, Any]], cuts: list[int], ending: bytes
) -> None:
    data = b"".join(event_bytes(form) for form in [*forms]) + event_bytes(DONE)
    data = b": a comment\n\n" + data
    data = data.replace(b"\n", ending)
    events = Events()
    got: list[str] = []
    at = step = 0
    while at < len(data):
        size = cuts[step % len(cuts)]
        got += list(events.feed(data[at : at + size]))
        at, step = at + size, step + 1
    got += list(events.close())
    assert got[-1] == DONE
    assert [parse_chunk(event) for event in got[:-1]] == forms


def test_an_event_without_end_is_refused() -> None:
    events = Events()
    for _ in range(9):
        assert list(events.feed(b"x" * 1_000_000)) == []
    with pytest.raises(ValueError, match="too long"):
        list(events.feed(b"x" * 1_000_001))


def pieces(text: str, cuts: list[int]) -> list[str]:
    found, at = [], 0
    for cut in cuts:
        found.append(text[at : at + cut])
        at += cut
    return [*found, text[at:]]


@given(
    texts,
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=5), json_values), max_size=3),
    st.lists(st.integers(0, 5), max_size=6),
)
def test_a_streamed_answer_is_the_plain_one(
    text: str, calls: list[tuple[str, Any]], cuts: list[int]
) -> None:
    written = [(name, json.dumps(arguments)) for name, arguments in calls]
    message = {
        "content": text,
        "tool_calls": [{"function": {"name": n, "arguments": a}} for n, a in written],
    }
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    plain = read_completion(
        {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    )
    streamed = StreamedAnswer()
    for piece in pieces(text, cuts):
        streamed.add({"choices": [{"index": 0, "delta": {"content": piece}}]})
        streamed.add({"choices": [{"index": 1, "delta": {"content": "another choice"}}]})
    for at, (name, arguments) in enumerate(written):
        first = {"index": at, "function": {"name": name, "arguments": ""}}
        streamed.add({"choices": [{"delta": {"tool_calls": [first]}}]})
        for piece in pieces(arguments, cuts):
            delta = {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
            streamed.add({"choices": [{"delta": delta}]})
    assert not streamed.finished
    streamed.add({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    streamed.add({"choices": [], "usage": usage})
    assert streamed.finished
    assert streamed.completion == plain
    assert streamed.completion.usage == Usage(7, 3)


@given(json_values)
def test_whatever_an_upstream_says_is_read_or_refused(value: Any) -> None:
    for body in (
        value,
        {"choices": value},
        {"choices": [value]},
        {"choices": [{"message": value}]},
    ):
        found = read_completion(body)
        assert found is None or isinstance(found, Completion)
        usage_of(value)
        streamed = StreamedAnswer()
        if isinstance(body, dict):
            streamed.add(body)
            streamed.add({"choices": [{"delta": value}], "usage": value})
            streamed.add({"choices": [{"delta": {"tool_calls": value, "content": value}}]})
        assert isinstance(streamed.completion, Completion)


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_client_sends_is_read_or_refused_in_form(data: bytes) -> None:
    for read in (read_chat, read_question):
        with contextlib.suppress(ProtocolError):
            read(data)


outputs = (
    texts.map(Completion)
    | st.tuples(texts, texts).map(lambda pair: Completion("", (ToolCall(*pair),)))
    | st.sampled_from([True, False, 1, 0, "true", "a"]).map(Decided)
    | json_values
)


@given(
    st.sampled_from(
        ["tool_calls | folded", "exact", "json_fields(a) | folded", "number(0.5) | exact"]
    ),
    outputs,
    outputs,
)
def test_comparing_is_symmetric_and_reflexive(text: str, one: Any, two: Any) -> None:
    compare = parse_comparator("comparator", text)
    assert compare.agrees(one, two) == compare.agrees(two, one)
    assert compare.agrees(one, one) in (True, None)
    # The same kind of reading, or none: an abstention never agrees.
    if compare.agrees(one, one) is None:
        assert compare.agrees(one, two) is None


@pytest.mark.parametrize(
    ("text", "one", "two", "agrees"),
    [
        ("tool_calls | folded", Completion("Yes"), Completion(" yes "), True),
        ("tool_calls | folded", Completion("", (ToolCall("f", "{}"),)), Completion("f"), False),
        ("folded", Completion("x", (ToolCall("f", "{}"),)), Completion("x"), None),
        ("tool_calls", Completion("x"), Completion("x"), None),
        ("number(0.5) | folded", Completion("3.2"), Completion("3.5"), True),
        ("number(0.5) | folded", Completion("3"), Completion("three"), False),
        ("letter(ABC)", Completion("(b)"), Completion("B"), True),
        ("json_fields(a, b)", '{"a": 1, "b": 2, "c": 3}', {"a": 1, "b": 2}, True),
        ("exact", Decided(True), Decided(1), False),
        ("exact", {"a": [1, 2]}, {"a": [1, 2]}, True),
    ],
)
def test_chains(text: str, one: Any, two: Any, agrees: bool | None) -> None:
    assert parse_comparator("comparator", text).agrees(one, two) is agrees


@pytest.mark.parametrize(
    "text",
    ["", "|", "folded |", "fold", "letter(1)", "number(x)", "number(a=1)", "exact(2)", "f(("],
)
def test_chains_that_cannot_be(text: str) -> None:
    with pytest.raises(StopwiseError):
        parse_comparator("cascades.c.comparator", text)


def test_a_conversation_is_what_stays_the_same() -> None:
    system = {"role": "system", "content": "be kind"}
    first = {"role": "user", "content": "hello"}
    turns = [[system, first]]
    turns.append(
        [*turns[0], {"role": "assistant", "content": "hi"}, {"role": "user", "content": "x"}]
    )
    names = {conversation_of({"messages": turn}) for turn in turns}
    assert len(names) == 1
    assert conversation_of({"messages": [first]}) not in names
    named = {conversation_of({"messages": turn}, "abc") for turn in [turns[0], [first]]}
    assert len(named) == 1
    assert conversation_of({"prompt_cache_key": "abc", "messages": []}) in named


def test_numbers_of_conversations_are_uniform() -> None:
    """Kolmogorov's distance of 20,000 numbers; by the DKW bound a false alarm has chance 1e-6."""
    count = 20_000
    numbers = sorted(uniform_of(b"secret", "cascade", str(at)) for at in range(count))
    distance = max(abs((at + 0.5) / count - number) for at, number in enumerate(numbers))
    assert distance < math.sqrt(math.log(2 / 1e-6) / (2 * count)) + 1 / count
    assert uniform_of(b"other", "cascade", "1") != uniform_of(b"secret", "cascade", "1")


def test_an_event_that_never_ends_is_refused() -> None:
    """Lines without a blank one between them are one event: its size is bounded."""
    events = Events()
    line = b"data: " + b"x" * 99_990 + b"\n"
    for _ in range(99):
        assert list(events.feed(line)) == []
    with pytest.raises(ValueError, match="too long"):
        list(events.feed(2 * line))
    kept = Events()
    for _ in range(200):  # the same with blank lines goes on for ever
        assert len(list(kept.feed(line + b"\n"))) == 1


@pytest.mark.parametrize(
    "usage",
    [
        {}, {"total_tokens": 5}, {"prompt_tokens": "9", "completion_tokens": 1},
        {"prompt_tokens": 9, "completion_tokens": -5}, {"prompt_tokens": True},
        {"prompt_tokens": 9, "completion_tokens": None}, {"prompt_tokens": 1e300},
        {"prompt_tokens": 0, "completion_tokens": 0},
    ],
)  # fmt: skip
def test_usage_that_tells_no_numbers_is_none(usage: dict[str, Any]) -> None:
    """Read as 0 tokens, such a call would be free, and its stage the cheapest of all."""
    assert usage_of(usage) is None
    streamed = StreamedAnswer()
    streamed.add({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    streamed.add({"choices": [], "usage": usage})
    assert streamed.completion.usage == Usage(7, 3)
