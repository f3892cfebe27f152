"""The openai client, unchanged, against the real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from fake_upstream import FakeUpstream

MESSAGES: Any = [{"role": "user", "content": "hello?"}]
Live = Callable[..., Any]


@pytest.fixture
def server(live: Live) -> Any:
    return live(mode="shadow", sample=1.0)


@pytest.fixture
def client(server: Any) -> Any:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as made:
        yield made


def test_plain(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="support", messages=MESSAGES)
    assert answer.model == "support"
    assert answer.choices[0].message.content == "I am large"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 120
    assert answer.usage.model_extra is not None
    assert answer.usage.model_extra["cost"] == pytest.approx(0.0018)


def test_headers(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model="support", messages=MESSAGES)
    assert raw.headers["x-stopwise-mode"] == "shadow"
    assert raw.headers["x-stopwise-stage"] == "large"


def test_streamed_with_usage(client: openai.OpenAI, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: "one two three"
    chunks = list(
        client.chat.completions.create(
            model="support", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "one two three"
    assert chunks[-1].usage is not None
    assert {chunk.model for chunk in chunks} == {"support"}


def test_tools(client: openai.OpenAI, upstream: FakeUpstream) -> None:
    function = {"name": "find", "arguments": '{"a": 1}'}
    given = {"message": {"tool_calls": [{"id": "1", "type": "function", "function": function}]}}
    upstream.answer = lambda model, body: given
    tools: Any = [{"type": "function", "function": {"name": "find", "parameters": {}}}]
    answer = client.chat.completions.create(model="support", messages=MESSAGES, tools=tools)
    call = answer.choices[0].message.tool_calls
    assert call is not None
    assert call[0].function.arguments == '{"a": 1}'  # type: ignore[union-attr]
    with client.chat.completions.stream(model="support", messages=MESSAGES, tools=tools) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls is not None
    assert final.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'


def test_structured_output(client: openai.OpenAI, upstream: FakeUpstream) -> None:
    from pydantic import BaseModel

    class Place(BaseModel):
        city: str

    upstream.answer = lambda model, body: '{"city": "Rome"}'
    answer = client.chat.completions.parse(
        model="support", messages=MESSAGES, response_format=Place
    )
    assert answer.choices[0].message.parsed == Place(city="Rome")
    assert upstream.requests[0][1]["response_format"]["type"] == "json_schema"


def test_two_choices(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="support", messages=MESSAGES, n=2)
    assert len(answer.choices) == 2


def test_errors(client: openai.OpenAI, upstream: FakeUpstream, server: Any) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="nobody", messages=MESSAGES)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="support", messages=[])
    upstream.answer = lambda model, body: {"status": 429}
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="support", messages=MESSAGES)
    upstream.answer = lambda model, body: {"status": 500}
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="support", messages=MESSAGES)
    upstream.answer = lambda model, body: {"cut": 2} if body.get("stream") else "x"
    with pytest.raises(openai.APIError, match="broke off"):
        list(client.chat.completions.create(model="support", messages=MESSAGES, stream=True))
    with pytest.raises(openai.NotFoundError, match="Responses API is not served"):
        client.responses.create(model="support", input="x")
    server.service.keys.create("app", ["infer"])
    server.service.keys.renew()
    with pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model="support", messages=MESSAGES)


def test_timeouts(client: openai.OpenAI, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: {"hang": 1}
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3).chat.completions.create(model="support", messages=MESSAGES)


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["support"]
