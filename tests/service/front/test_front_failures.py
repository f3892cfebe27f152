"""Chat completions: upstreams that fail, come too late or point elsewhere; errors."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from front_requests import ASK, ask, seen, settled
from service_helpers import Maker

from stopwise.service.database.connection import SqliteDatabase


@pytest.mark.parametrize("way", ["deeper", "shallower"])
def test_a_failure_is_replaced_by_another_stage(
    make: Maker, upstream: FakeUpstream, way: str
) -> None:
    client, service = make(
        models=["small", "middle", "large"], mode="enforce", policy="fixed:stage=1",
        full_run_rate=0.0, on_failure=way,
    )  # fmt: skip
    upstream.answer = lambda model, body: {"status": 500} if model == "middle" else model
    response = ask(client)
    assert response.status_code == 200
    expected = "large" if way == "deeper" else "small"
    assert response.json()["choices"][0]["message"]["content"] == expected
    assert response.headers["x-stopwise-stage"] == expected
    settled(client, service)
    evidence = service.cascades["support"].learner.evidence()
    assert evidence.seen[0, 1] == 0  # a failure is never an agreement
    assert evidence.seen[0, 2] == (1 if way == "deeper" else 0)
    assert service.rounds.sums("support")["failed:1"] == 1


def test_no_stage_answers(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: {"status": 500}
    response = ask(client)
    assert response.status_code == 502
    assert "secret words of upstream" not in response.text
    assert response.json()["error"]["code"] == "no_answer"
    upstream.answer = lambda model, body: {
        "status": 400, "error": {"message": "bad schema", "type": "invalid_request_error"}
    }  # fmt: skip
    response = ask(client)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "bad schema"
    upstream.answer = lambda model, body: {"drop": True}
    assert ask(client).status_code == 502
    # Our own key being wrong is not the client's business.
    upstream.answer = lambda model, body: {"status": 401}
    assert ask(client).status_code == 502
    settled(client, service)
    assert seen(service) == (0, 0)
    assert service.rounds.sums("support")["unanswered"] == 4


def refusal(model: str, code: str = "context_length_exceeded") -> dict[str, Any]:
    error = {"message": f"not by {model}", "type": "invalid_request_error", "code": code}
    return {"status": 400, "error": error}


@pytest.mark.parametrize("stream", [False, True])
def test_what_one_model_refuses_another_may_answer(
    make: Maker, upstream: FakeUpstream, stream: bool
) -> None:
    client, service = make(
        models=["small", "middle", "large"], mode="enforce", policy="fixed:stage=0",
        full_run_rate=0.0,
    )  # fmt: skip
    asked = {**ASK, "stream": stream}
    upstream.answer = lambda model, body: model if model == "large" else refusal(model)
    response = ask(client, asked)
    assert response.status_code == 200
    assert response.headers["x-stopwise-stage"] == "large"
    # What all refuse is refused, in the words of the last stage, after one call of each.
    upstream.requests.clear()
    upstream.answer = lambda model, body: refusal(model)
    response = ask(client, asked)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert response.json()["error"]["message"] == "not by large"
    assert upstream.models() == ["small", "middle", "large"]
    # A stage that is down might have answered: this is not the client's mistake.
    upstream.answer = lambda model, body: {"status": 500} if model == "middle" else refusal(model)
    assert ask(client, asked).status_code == 502
    # A filter is not gone around.
    upstream.requests.clear()
    upstream.answer = lambda model, body: refusal(model, "content_filter")
    assert ask(client, asked).json()["error"]["code"] == "content_filter"
    assert upstream.models() == ["small"]
    settled(client, service)
    assert seen(service) == (0, 0)


def test_redirects_are_never_followed(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(mode="shadow", sample=0.0)
    upstream.answer = lambda model, body: {"status": 302}
    assert ask(client).status_code == 502
    assert "ELSEWHERE" not in upstream.models()


def test_timeouts(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=0.0)
    for stage in service.cascades["support"].config.stages:
        object.__setattr__(stage.upstream, "timeout", 0.2)
    upstream.answer = lambda model, body: {"hang": 5}
    response = ask(client)
    assert response.status_code == 504


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"{", 400, None),
        (b"[]", 400, None),
        (b'{"messages": [{}]}', 400, "model"),
        (b'{"model": 3, "messages": [{}]}', 400, "model"),
        (b'{"model": "support"}', 400, "messages"),
        (b'{"model": "support", "messages": []}', 400, "messages"),
        (b'{"model": "support", "messages": ["x"]}', 400, "messages"),
        (b'{"model": "nobody", "messages": [{}]}', 404, "model"),
        (b'{"model": "support", "messages": [{}], "n": 0}', 400, "n"),
        (b'{"model": "support", "messages": [{}], "stream": 1}', 400, "stream"),
        (b'{"model": "support", "messages": [{}], "stream": "yes"}', 400, "stream"),
        (b"[" * 100_000, 400, None),
        (b'{"model": "support", "messages": [{"x": NaN}]}', 400, None),
    ],
)
def test_errors_have_the_protocols_form(
    make: Maker, upstream: FakeUpstream, body: bytes, status: int, param: str | None
) -> None:
    client, _ = make()
    response = client.post("/v1/chat/completions", content=body)
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert upstream.requests == []


def test_a_client_cannot_name_its_own_upstream(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(mode="shadow", sample=0.0)
    body = {**ASK, "base_url": "http://evil.example", "api_base": "http://evil.example"}
    ask(client, body, x_base_url="http://evil.example")
    assert upstream.models() == ["large"]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("streamed", [False, True])
def test_when_to_try_again_is_passed_on(
    make: Maker, upstream: FakeUpstream, status: int, streamed: bool
) -> None:
    client, _ = make(mode="shadow", sample=0.0)
    busy = {"status": status, "headers": {"retry-after": "17"}}
    upstream.answer = lambda model, body: busy
    response = ask(client, {**ASK, "stream": streamed})
    assert (response.status_code, response.headers["retry-after"]) == (status, "17")
    assert ("secret words" in response.text) == (status == 429)


def test_a_comparison_waits_until_it_is_welcome(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    asked: list[str] = []

    def answer(model: str, body: Any) -> Any:
        asked.append(model)
        busy = {"status": 429, "headers": {"retry-after": "0.05"}}
        return busy if asked.count("small") < 3 and model == "small" else "yes"

    upstream.answer = answer
    assert ask(client).status_code == 200
    settled(client, service)
    assert asked.count("small") == 3
    assert seen(service) == (1, 0)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("busy", "retry_seconds", "answered"),
    [(1, 1.0, "large"), (2, 1.0, "small"), (1, 0.0, "small"), (1, 0.05, "small")],
)
def test_a_stage_that_is_waited_for_is_asked_once_more(
    make: Maker,
    upstream: FakeUpstream,
    streamed: bool,
    busy: int,
    retry_seconds: float,
    answered: str,
) -> None:
    """If the upstream says when, within `retry_seconds`; else another stage answers."""
    price = {"input": 1.0, "output": 1.0}
    stages = [
        {"name": name, "base_url": upstream.url, "model": name, "price": price,
         "retry_seconds": retry_seconds}
        for name in ("small", "large")
    ]  # fmt: skip
    client, service = make(mode="shadow", sample=0.0, stages=stages)

    def answer(model: str, body: Any) -> Any:
        refused = {"status": 503, "headers": {"retry-after": "0.1"}}
        if model == "small":
            return "I am small"
        return refused if upstream.models().count("large") <= busy else "yes"

    upstream.answer = answer
    response = ask(client, {**ASK, "stream": streamed})
    assert response.status_code == 200
    assert response.headers["x-stopwise-stage"] == answered
    assert upstream.models().count("large") == (2 if retry_seconds == 1.0 else 1)
    settled(client, service)
    # A try that was refused costs nothing and is no failure if the next one is not.
    assert service.rounds.sums("support").get("failed:1", 0) == (answered != "large")


def test_a_comparison_that_a_client_comes_to_wait_for_waits_no_longer(
    make: Maker, upstream: FakeUpstream
) -> None:
    """It was only compared; then the stage that answers fails and it is to stand in."""
    client, service = make(mode="shadow", sample=1.0)
    # Within its timeout (60), and longer than a client is to wait (10).
    busy = {"status": 503, "headers": {"retry-after": "30"}}
    upstream.answer = lambda model, body: busy if model == "small" else {"status": 500}
    assert ask(client).status_code == 502
    settled(client, service)
    assert upstream.models().count("small") == 1
    assert service.rounds.sums("support")["failed:0"] == 1


def test_all_tries_of_a_stream_have_the_time_of_one(make: Maker, upstream: FakeUpstream) -> None:
    price = {"input": 1.0, "output": 1.0}
    stages = [
        {"name": name, "base_url": upstream.url, "model": name, "price": price, "timeout": 1.0}
        for name in ("small", "large")
    ]
    client, _ = make(mode="shadow", sample=0.0, stages=stages)

    def answer(model: str, body: Any) -> Any:
        if model == "small":
            return "I am small"
        if upstream.models().count("large") == 1:
            return {"status": 503, "headers": {"retry-after": "0.6"}}
        return {"hang": 0.7}  # in time for one try, and too late for the second

    upstream.answer = answer
    response = ask(client, {**ASK, "stream": True})
    assert response.headers["x-stopwise-stage"] == "small"


def test_a_comparison_does_not_wait_beyond_its_time(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    busy = {"status": 503, "headers": {"retry-after": "61"}}
    upstream.answer = lambda model, body: busy if model == "small" else "yes"
    assert ask(client).status_code == 200
    settled(client, service)
    assert upstream.models().count("small") == 1
    assert service.rounds.sums("support")["missing:failed"] == 1


def test_a_spent_budget_says_when_there_is_another(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=0.0)
    _, text = service.keys.create("app", ["infer"], budget=1e-9)
    service.keys.renew()
    assert ask(client, authorization=f"Bearer {text}").status_code == 200
    refused = ask(client, authorization=f"Bearer {text}")
    left = 86400 - time.time() % 86400
    assert refused.status_code == 429
    assert abs(int(refused.headers["retry-after"]) - left) < 60 or left < 60


def test_a_call_that_failed_is_not_charged_more_than_it_can_cost(
    make: Maker, upstream: FakeUpstream
) -> None:
    """A budget would be passed by requests that state what they may cost."""
    client, service = make(mode="shadow", sample=0.0, run_to="small")
    for stage in service.cascades["support"].config.stages:
        object.__setattr__(stage.upstream, "timeout", 0.1)
    key, text = service.keys.create("app", ["infer"], budget=2e-4)
    service.keys.renew()
    upstream.answer = lambda model, body: {"hang": 5}
    response = ask(client, {**ASK, "max_tokens": 5}, authorization=f"Bearer {text}")
    assert response.status_code in (429, 502, 504)
    settled(client, service)
    assert 0 < service.spending.spent(f"key:{key.id}") <= 2e-4


def stored_rounds(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rounds that a service has left behind."""
    database = SqliteDatabase(folder / name)
    try:
        return [json.loads(form) for (form,) in database.rows("SELECT form FROM rounds")]
    finally:
        database.close()


def test_stopping_writes_what_was_answered_while_a_comparison_hangs(
    make: Maker, upstream: FakeUpstream, tmp_path: Path
) -> None:
    models = ["small", "middle", "large"]
    client, _ = make(models=models, mode="shadow", sample=1.0, server={"drain_seconds": 0.1})
    upstream.answer = lambda model, body: {"hang": 60} if model == "middle" else "yes"
    assert ask(client).status_code == 200
    client.__exit__(None, None, None)
    (form,) = stored_rounds(tmp_path, "test.db")
    assert form["stage"] == 2
    assert form["codes"] == [0, -1, 0]  # what agrees is known of those that were in
    assert form["failed"] == {"1": "stopping"}
    assert upstream.cancelled == ["middle"]


@pytest.mark.parametrize("streamed", [False, True])
def test_stopping_writes_what_is_under_way_when_its_time_is_over(
    live: Any, upstream: FakeUpstream, tmp_path: Path, streamed: bool
) -> None:
    server = live(mode="shadow", sample=1.0, server={"drain_seconds": 0.1})
    upstream.answer = lambda model, body: {"hang": 60} if model == "large" else "yes"
    body = json.dumps({**ASK, "stream": streamed}).encode()
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as one:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}"
        )
        one.sendall(f"{head}\r\n\r\n".encode() + body)
        end = time.monotonic() + 20
        while len(upstream.requests) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        server.stop()
    (form,) = stored_rounds(tmp_path, "live.db")
    assert form["stage"] is None
    assert form["failed"]["1"] == "stopping"
