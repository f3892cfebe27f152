"""Chat completions, streamed, through the real server: at once, relayed, broken, left."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from fake_upstream import USAGE, FakeUpstream
from front_requests import ask
from service_helpers import Maker

from patience import eventually
from stopwise.service.cascades.counting import sums_of
from stopwise.service.cascades.forms import Finished, RequestDecision

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}], "stream": True}
Live = Callable[..., Any]


async def _events(url: str, body: dict[str, Any], leave_after: int | None = None) -> list[Any]:
    """(nothing, event) until the stream ends; the client leaves after some events if asked to."""
    got: list[Any] = []
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/chat/completions", json=body) as response,
    ):
        names = {name.lower(): value for name, value in response.headers.items()}
        got.append((response.status, names))
        async for line in response.content:
            if line.startswith(b"data: "):
                text = line[6:].decode().strip()
                form = text if text == "[DONE]" else json.loads(text)
                got.append((None, form))
                if leave_after is not None and len(got) > leave_after:
                    break
    return got


def events(url: str, body: dict[str, Any] | None = None, leave_after: int | None = None) -> Any:
    return asyncio.run(_events(url, body or ASK, leave_after))


def text(got: list[Any]) -> str:
    parts = []
    for _, form in got[1:]:
        if isinstance(form, dict) and form.get("choices"):
            parts.append(form["choices"][0]["delta"].get("content") or "")
    return "".join(parts)


def settled(server: Any) -> Any:
    eventually(lambda: not server.service._tasks)
    assert server.service.recorder.drain()
    return server.service


def test_the_answer_streams_at_once_while_shallower_stages_run(
    live: Live, upstream: FakeUpstream
) -> None:
    server = live(mode="shadow", sample=1.0)
    streamed = threading.Event()
    slow = {"until": streamed, "then": "a b c d"}
    upstream.answer = lambda model, body: slow if model == "small" else "a b c d"
    upstream.pause = 0.1
    got = events(server.url)  # all of it, while the shallow stage is still thinking
    streamed.set()
    assert got[-1][1] == "[DONE]"
    assert text(got) == "a b c d"
    headers = got[0][1]
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["x-stopwise-stage"] == "large"
    for _, form in got[1:-1]:
        assert form["model"] == "support"
        assert form["id"] == f"chatcmpl-{headers['x-stopwise-round']}"
        assert "usage" not in form
    service = settled(server)
    evidence = service.cascades["support"].learner.evidence()
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (1, 0)
    # Usage was asked for all the same: the cost is known.
    bodies = {body["model"]: body for _, body in upstream.requests}
    assert bodies["large"]["stream_options"] == {"include_usage": True}
    assert "stream" not in bodies["small"]
    assert service.rounds.sums("support")["cost:1"] == pytest.approx(1800 / 1e6)


def test_usage_comes_if_it_was_asked_for(live: Live, upstream: FakeUpstream) -> None:
    server = live(mode="shadow", sample=0.0)
    got = events(server.url, {**ASK, "stream_options": {"include_usage": True}})
    assert got[-2][1]["usage"] == {**USAGE, "cost": pytest.approx(1800 / 1e6)}
    assert got[-2][1]["choices"] == []


def test_tool_calls_are_streamed_and_compared(live: Live, upstream: FakeUpstream) -> None:
    server = live(mode="shadow", sample=1.0)
    function = {"name": "find", "arguments": '{"a": "x", "b": 1}'}
    given = {"message": {"tool_calls": [{"id": "1", "type": "function", "function": function}]}}
    upstream.answer = lambda model, body: given
    got = events(server.url)
    pieces = [
        call["function"].get("arguments", "")
        for _, form in got[1:-1]
        for call in form["choices"][0]["delta"].get("tool_calls", [])
    ]
    assert "".join(pieces) == function["arguments"]
    evidence = settled(server).cascades["support"].learner.evidence()
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (1, 0)


def test_failure_before_the_first_byte_is_replaced(live: Live, upstream: FakeUpstream) -> None:
    server = live(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: {"status": 500} if model == "large" else "from small"
    got = events(server.url)
    assert got[0][0] == 200
    assert got[0][1]["x-stopwise-stage"] == "small"
    assert text(got) == "from small"
    assert got[-1][1] == "[DONE]"
    evidence = settled(server).cascades["support"].learner.evidence()
    assert evidence.seen[0, 1] == 0


@pytest.mark.parametrize("way", ["drop", "silent", "kept open", "long"])
def test_a_stream_that_opens_and_has_no_event_is_replaced(
    make: Maker, upstream: FakeUpstream, way: str
) -> None:
    client, service = make(mode="shadow", sample=1.0)
    for stage in service.cascades["support"].config.stages:
        object.__setattr__(stage.upstream, "timeout", 60 if way in ("drop", "long") else 0.2)
    upstream.answer = lambda model, body: {"opened": way} if model == "large" else "fine"
    response = ask(client, ASK)
    assert response.status_code == 200
    assert response.headers["x-stopwise-stage"] == "small"
    assert response.text.endswith("data: [DONE]\n\n")
    upstream.answer = lambda model, body: {"opened": way} if body.get("stream") else {"status": 500}
    response = ask(client, ASK)
    assert response.json()["error"]["code"] == "no_answer"
    assert service.recorder.drain()
    eventually(lambda: not service._tasks)
    assert service.recorder.drain()
    assert service.rounds.sums("support")["failed:1"] == 2


def test_failure_of_all_before_the_first_byte_is_a_proper_error(
    live: Live, upstream: FakeUpstream
) -> None:
    server = live(mode="shadow", sample=0.0)
    upstream.answer = lambda model, body: {"status": 500}
    got = events(server.url)
    assert got[0][0] == 502
    assert got[0][1]["content-type"] == "application/json"


def test_failure_after_the_first_byte_is_told_and_has_no_done(
    live: Live, upstream: FakeUpstream
) -> None:
    server = live(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: {"cut": 2} if body.get("stream") else "x"
    got = events(server.url)
    assert got[0][0] == 200
    assert text(got) == "some words"
    last = got[-1][1]
    assert last["error"]["code"] == "stream_broken"
    assert "[DONE]" not in [form for _, form in got]
    service = settled(server)
    assert service.cascades["support"].learner.evidence().seen[0, 1] == 0
    sums = service.rounds.sums("support")
    assert sums["failed:1"] == 1
    assert sums["unanswered"] == 1
    # A part of the answer was made, and will be on the bill.
    assert sums["cost:1"] > 0


def leave(server: Any, upstream: FakeUpstream, body: dict[str, Any]) -> None:
    """Ask, and leave as soon as the large model has heard of it."""

    async def ask_and_leave() -> None:
        async with aiohttp.ClientSession() as session:
            url = f"{server.url}/v1/chat/completions"
            asking = asyncio.ensure_future(session.post(url, json=body))
            await asyncio.to_thread(eventually, lambda: "large" in upstream.models())
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(ask_and_leave())


def test_a_client_that_leaves(live: Live, upstream: FakeUpstream) -> None:
    server = live(mode="shadow", sample=1.0)
    upstream.pause = 0.1
    upstream.answer = lambda model, body: "words " * 1000
    events(server.url, leave_after=3)
    eventually(lambda: "large" in upstream.cancelled)  # the upstream is not paid to go on
    service = settled(server)
    assert service.cascades["support"].learner.evidence().seen[0, 1] == 0
    sums = service.rounds.sums("support")
    assert sums["failed:1"] == 1
    assert sums["calls:0"] == 1
    assert sums["abandoned"] == 1
    assert "unanswered" not in sums  # it was answered with no error
    alone = RequestDecision("a", "support", "", "shadow", 1, 1.0, uncounted="not sampled")
    assert sums_of(Finished(alone, (), None, abandoned=True), None, 1, 2)["abandoned"] == 1
    form = service.rounds.rounds("support", service.cascades["support"].epoch)[0].form
    assert form["failed"] == {"1": "client gone"}


def test_a_client_that_leaves_a_plain_request(live: Live, upstream: FakeUpstream) -> None:
    server = live(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: {"hang": 60} if model == "large" else "quick"
    leave(server, upstream, {**ASK, "stream": False})
    eventually(lambda: "large" in upstream.cancelled)
    sums = settled(server).rounds.sums("support")
    assert sums["failed:1"] == 1
    assert sums["abandoned"] == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_leaves_while_another_stage_stands_in(
    live: Live, upstream: FakeUpstream, streamed: bool
) -> None:
    server = live(mode="enforce", policy="fixed:stage=0", full_run_rate=0.0)
    upstream.answer = lambda model, body: {"status": 500} if model == "small" else {"hang": 60}
    leave(server, upstream, {**ASK, "stream": streamed})
    eventually(lambda: "large" in upstream.cancelled)  # nobody waits for it, so nobody pays for it
    service = settled(server)
    sums = service.rounds.sums("support")
    assert "unanswered" not in sums
    assert sums["abandoned"] == 1
    form = service.rounds.rounds("support", service.cascades["support"].epoch)[0].form
    assert form["failed"] == {"0": "status 500", "1": "client gone"}


def test_stopping_answers_what_is_under_way(live: Live, upstream: FakeUpstream) -> None:
    server = live(mode="shadow", sample=1.0)
    upstream.pause = 0.1
    upstream.answer = lambda model, body: "a b c d e f g h"

    async def both() -> list[Any]:
        stream = asyncio.create_task(_events(server.url, ASK))
        await asyncio.to_thread(eventually, lambda: "large" in upstream.models())
        await asyncio.to_thread(server.stop)
        return await stream

    got = asyncio.run(both())
    assert text(got) == "a b c d e f g h"
    assert got[-1][1] == "[DONE]"
    # And what it learned was written before the process ended.
    assert server.service.recorder.waiting == 0
    assert server.service.recorder.written == 1


def test_a_stream_that_is_sent_whole_has_all_that_a_plain_answer_has(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, _ = make(mode="enforce", policy="fixed:stage=0", full_run_rate=0.0)
    message = {"content": "no", "refusal": "not this", "reasoning_content": "as I see it"}
    logprobs = {"content": [{"token": "no", "logprob": -0.1}]}
    answer = {"message": message, "logprobs": logprobs}
    upstream.answer = lambda model, body: {"status": 500} if body.get("stream") else answer
    response = ask(client, {**ASK, "stream": True, "n": 2, "logprobs": True})
    events = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    assert [choice["index"] for choice in choices] == [0, 0, 1, 1]
    for said, ended in (choices[:2], choices[2:]):
        assert said["delta"] == {"role": "assistant", **message}
        assert said["logprobs"] == logprobs
        assert ended["finish_reason"] == "stop"
