"""Chat completions, plain: modes, what is touched, abstentions, failures, budgets."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from fake_upstream import USAGE, FakeUpstream
from service_helpers import Maker
from starlette.testclient import TestClient

from stopwise.service.core import Service

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}


def ask(client: TestClient, body: dict[str, Any] | None = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/v1/chat/completions", json=ASK if body is None else body, headers=named)


def settled(client: TestClient, service: Service) -> Service:
    """Wait until what requests left behind is counted and written."""
    end = time.monotonic() + 10
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    assert service.recorder.drain()
    return service


def seen(service: Service, segment: str = "") -> tuple[int, int]:
    evidence = service.cascades["support"].learner.evidence(segment)
    return int(evidence.seen[0, 1]), int(evidence.disagreed[0, 1])


def test_shadow_not_sampled_is_passed_through(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=0.0)
    response = ask(client)
    assert response.status_code == 200
    body = response.json()
    assert body["model"] == "support"
    assert body["choices"][0]["message"]["content"] == "I am large"
    assert body["usage"] == {**USAGE, "cost": pytest.approx((100 * 10 + 20 * 40) / 1e6)}
    assert response.headers["x-stopwise-stage"] == "large"
    assert response.headers["x-stopwise-compared"] == "false"
    assert body["id"] == f"chatcmpl-{response.headers['x-stopwise-round']}"
    settled(client, service)
    assert upstream.models() == ["large"]
    assert seen(service) == (0, 0)
    assert service.cascades["support"].learner.rounds == 0


def test_shadow_sampled_is_compared(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    response = ask(client)
    assert response.headers["x-stopwise-stage"] == "large"
    assert response.headers["x-stopwise-probability"] == "1"
    upstream.answer = lambda model, body: " SAME " if model == "small" else "same"
    ask(client)
    settled(client, service)
    assert sorted(upstream.models()) == ["large", "large", "small", "small"]
    assert seen(service) == (2, 1)
    sums = service.rounds.sums("support")
    assert sums["requests:shadow"] == 2
    assert sums["comparison"] == pytest.approx(2 * (100 + 20 * 4) / 1e6)
    assert sums["advised:known"] == 2


def test_advise_tells_what_enforcing_would_do(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(mode="advise", policy="fixed:stage=0", full_run_rate=0.0)
    response = ask(client)
    assert response.headers["x-stopwise-stage"] == "large"
    assert response.headers["x-stopwise-advised"] == "small"


def test_enforce_stops_where_it_was_drawn(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="enforce", policy="fixed:stage=0", full_run_rate=0.0)
    response = ask(client)
    assert response.json()["choices"][0]["message"]["content"] == "I am small"
    settled(client, service)
    assert upstream.models() == ["small"]
    assert service.cascades["support"].learner.rounds == 1


def test_the_body_is_passed_on_as_it_came(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    extra = {
        "temperature": 0.5, "tools": [{"type": "function", "function": {"name": "f"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x"}},
        "vendor_field": {"deep": [1, 2, None]}, "user": "u",
    }  # fmt: skip
    ask(client, {**ASK, **extra}, x_secret="1", cookie="a=b", authorization="Bearer sk-client")
    settled(client, service)
    for headers, body in upstream.requests:
        assert {name: body[name] for name in extra} == extra
        assert set(body) == {*ASK, *extra}
        # Nothing that the client sent as a header goes on.
        assert "x-secret" not in {name.lower() for name in headers}
        assert "cookie" not in {name.lower() for name in headers}
        assert "sk-client" not in str(headers)


def test_tool_calls_are_compared_by_name_and_arguments(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)

    def call(arguments: str) -> dict[str, Any]:
        function = {"name": "find", "arguments": arguments}
        return {"message": {"tool_calls": [{"id": "1", "type": "function", "function": function}]}}

    upstream.answer = lambda model, body: (
        call('{"b": 1, "a": "x"}') if model == "small" else call('{"a":"x","b":1}')
    )
    response = ask(client)
    assert response.json()["choices"][0]["finish_reason"] == "tool_calls"
    settled(client, service)
    assert seen(service) == (1, 0)
    upstream.answer = lambda model, body: call('{"a": "y"}') if model == "small" else "text"
    ask(client)
    settled(client, service)
    assert seen(service) == (2, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"message": {"content": "cut o"}, "finish": "length"},
        {"message": {"content": "no"}, "finish": "content_filter"},
        {"message": {"content": None, "refusal": "I will not"}},
        {"message": {"content": ""}},
    ],
)
def test_abstentions_are_neither_agreement_nor_disagreement(
    make: Maker, upstream: FakeUpstream, given: dict[str, Any]
) -> None:
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: given if model == "small" else "yes"
    assert ask(client).status_code == 200
    settled(client, service)
    assert seen(service) == (0, 0)
    sums = service.rounds.sums("support")
    assert sums["abstained:0"] == 1
    assert sums["half:0:1"] == 1


def test_many_choices_and_pinned_stages_are_served_and_not_counted(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = make(mode="enforce")
    two = ask(client, {**ASK, "n": 2})
    assert len(two.json()["choices"]) == 2
    pinned = ask(client, {**ASK, "model": "support/small"})
    assert pinned.headers["x-stopwise-stage"] == "small"
    settled(client, service)
    assert service.cascades["support"].learner.rounds == 0
    sums = service.rounds.sums("support")
    assert sums["uncounted:many choices"] == 1
    assert sums["uncounted:pinned"] == 1
    assert ask(client, {**ASK, "model": "support/none"}).status_code == 404


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


def test_segments(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(
        mode="shadow", sample=1.0, segment_by="header:x-stopwise-segment", max_segments=3
    )
    for name in ("en", "de", "en"):
        assert ask(client, x_stopwise_segment=name).status_code == 200
    settled(client, service)
    assert seen(service, "en") == (2, 2)
    assert ask(client, x_stopwise_segment="a b").status_code == 400
    assert ask(client, x_stopwise_segment="<script>").status_code == 400
    # A flood of segments ends in one.
    for at in range(20):
        ask(client, x_stopwise_segment=f"s{at}")
        settled(client, service)
    names = service.cascades["support"].learner.segments
    assert len(names) <= 4
    assert "other" in names


def test_the_budget_of_comparisons(make: Maker, upstream: FakeUpstream) -> None:
    one = (100 + 20 * 4) / 1e6
    client, service = make(mode="shadow", sample=1.0, comparison_budget=2.5 * one)
    for _ in range(6):
        assert ask(client).status_code == 200
        settled(client, service)
    assert upstream.models().count("small") == 3
    assert upstream.models().count("large") == 6
    # Missing comparisons are shown.
    assert service.rounds.sums("support")["missing:budget"] == 3


def test_the_budget_of_a_key(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=0.0)
    key, text = service.keys.create("app", ["infer"], budget=1.5 * (1000 + 800) / 1e6)
    service.keys.renew()
    codes = []
    for _ in range(4):
        codes.append(ask(client, authorization=f"Bearer {text}").status_code)
        settled(client, service)
    assert codes == [200, 200, 429, 429]
    refused = ask(client, authorization=f"Bearer {text}").json()["error"]
    assert refused["code"] == "insufficient_quota"
    assert service.rounds.sums("support")[f"key:{key.id}"] == pytest.approx(2 * 1800 / 1e6)


def test_models_embeddings_and_responses(make: Maker, upstream: FakeUpstream) -> None:
    embed = {"embed": {"base_url": upstream.url, "model": "e5"}}
    client, _ = make(embeddings=embed)
    names = [model["id"] for model in client.get("/v1/models").json()["data"]]
    assert names == ["support", "embed"]
    assert client.get("/v1/models/support").json()["object"] == "model"
    assert client.get("/v1/models/nobody").json()["error"]["code"] == "model_not_found"
    body = client.post("/v1/embeddings", json={"model": "embed", "input": "x"}).json()
    assert body["model"] == "embed"
    assert body["data"][0]["embedding"] == [0.5, 0.25]
    assert upstream.requests[-1][1] == {"model": "e5", "input": "x"}
    assert client.post("/v1/embeddings", json={"model": "x", "input": "x"}).status_code == 404
    assert client.post("/v1/responses", json={}).status_code == 404
    assert "chat/completions" in client.post("/v1/responses", json={}).json()["error"]["message"]
    assert client.get("/v1/nothing").json()["error"]["message"] == "there is no such path"


@pytest.mark.parametrize(
    ("question", "answers", "decision", "counts"),
    [
        ({"kind": "predicate"}, ('{"decision": true}', "yes"), True, (1, 0)),
        ({"kind": "predicate"}, ('{"decision": true}', "No."), False, (1, 1)),
        ({"kind": "choice", "choices": ["red", "blue"]}, ("red", "red"), "red", (1, 0)),
        ({"kind": "choice", "choices": ["red", "blue"]}, ("green", "blue"), "blue", (0, 0)),
        ({"kind": "score", "low": 1, "high": 5}, ('{"decision": 3}', "4"), 4, (1, 1)),
        ({"kind": "score", "low": 1, "high": 5}, ("3", "seven"), None, (0, 0)),
    ],
)  # fmt: skip
def test_decisions(
    make: Maker,
    upstream: FakeUpstream,
    question: dict[str, Any],
    answers: tuple[str, str],
    decision: Any,
    counts: tuple[int, int],
) -> None:
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: answers[model == "large"]
    response = client.post(
        "/v1/decisions", json={"model": "support", "input": "which?", **question}
    )
    assert response.status_code == 200
    assert response.json()["decision"] == decision
    assert response.json()["abstained"] is (decision is None)
    settled(client, service)
    assert seen(service, "decisions") == counts
    assert upstream.requests[0][1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "predicate"},
        {"model": "support", "kind": "maybe", "input": "x"},
        {"model": "support", "kind": "choice", "input": "x", "choices": ["a"]},
        {"model": "support", "kind": "choice", "input": "x", "choices": ["a", "A"]},
        {"model": "support", "kind": "score", "input": "x", "low": 5, "high": 1},
        {"model": "support", "kind": "predicate"},
        {"model": "support", "kind": "predicate", "input": "x", "stream": True},
    ],
)
def test_questions_are_checked(make: Maker, body: dict[str, Any]) -> None:
    client, _ = make()
    response = client.post("/v1/decisions", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_what_is_kept(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    ask(client)
    upstream.answer = lambda model, body: "same"
    ask(client)
    settled(client, service)
    epoch = service.cascades["support"].epoch
    (item,) = service.rounds.items("support", epoch)
    assert [output["content"] for output in item.outputs] == ["I am small", "I am large"]
    assert item.request == ASK["messages"]
    assert len(service.rounds.rounds("support", epoch)) == 2
    service.rounds.expire(time.time() + 31 * 86400)
    assert service.rounds.items("support", epoch) == []


def test_nothing_is_kept_if_nothing_is_wanted(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0, server={"keep": "nothing"})
    ask(client, {"model": "support", "messages": [{"role": "user", "content": "mothballs"}]})
    settled(client, service)
    rows = service.database.rows("SELECT count(*) FROM items")
    assert rows == [(0,)]
    for table in ("rounds", "sums", "trail"):
        assert "mothballs" not in json.dumps(service.database.rows(f"SELECT * FROM {table}"))


def test_evidence_is_there_after_a_restart(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=1.0)
    for _ in range(3):
        ask(client)
    settled(client, service).cascades["support"].learner.flush()
    _, second = make(mode="shadow", sample=1.0)
    assert seen(second) == (3, 3)
    # Another comparator is another epoch: its evidence starts from nothing.
    _, third = make(mode="shadow", sample=1.0, comparator="exact")
    assert seen(third) == (0, 0)
    assert third.cascades["support"].epoch != second.cascades["support"].epoch


def test_long_bodies_are_passed_on(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(mode="shadow", sample=0.0)
    long = "x" * 3_000_000
    assert ask(client, {**ASK, "messages": [{"role": "user", "content": long}]}).status_code == 200
    assert upstream.requests[0][1]["messages"][0]["content"] == long
