"""What a client asks besides chat completions: models, embeddings, decisions; and what is kept."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from front_requests import ASK, ask, seen, settled
from service_helpers import Maker

from stopwise.checks import StopwiseError


def test_models_embeddings_and_responses(make: Maker, upstream: FakeUpstream) -> None:
    embed = {"embed": {"base_url": upstream.url, "model": "e5", "cost": 0.0}}
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


def test_embeddings_are_charged_to_their_key(make: Maker, upstream: FakeUpstream) -> None:
    embed = {"base_url": upstream.url, "model": "e5", "price": {"input": 10.0}}
    client, service = make(embeddings={"embed": embed})
    cost = 3 * 10.0 / 1e6  # three tokens
    key, text = service.keys.create("app", ["infer"], budget=1.5 * cost)
    service.keys.renew()
    headers = {"authorization": f"Bearer {text}"}
    codes = []
    for _ in range(3):
        answer = client.post(
            "/v1/embeddings", json={"model": "embed", "input": "x"}, headers=headers
        )
        codes.append(answer.status_code)
        if answer.status_code == 200:
            assert answer.json()["usage"]["cost"] == pytest.approx(cost)
    assert codes == [200, 200, 429]
    assert service.recorder.drain()
    assert service.spending.spent(f"key:{key.id}") == pytest.approx(2 * cost)
    assert service.rounds.sums("embed")[f"key:{key.id}"] == pytest.approx(2 * cost)


def test_embeddings_without_a_price_are_refused(upstream: FakeUpstream, make: Maker) -> None:
    with pytest.raises(StopwiseError, match=r"embeddings.embed.price: .*'e5' is not known"):
        make(embeddings={"embed": {"base_url": upstream.url, "model": "e5"}})
