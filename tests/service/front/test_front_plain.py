"""Chat completions, plain: modes, what is touched, abstentions, failures, budgets."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fake_upstream import USAGE, FakeUpstream
from front_requests import ASK, ask, seen, settled
from service_helpers import Maker
from starlette.testclient import TestClient

from patience import eventually


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


def at_once(client: TestClient, upstream: FakeUpstream, number: int, **headers: str) -> list[int]:
    """The statuses of requests of which none is answered before all were sent or refused."""
    sent, decided = upstream.models().count("large"), threading.Event()
    upstream.answer = lambda model, body: {"until": decided}
    with ThreadPoolExecutor(number) as pool:
        asked = [pool.submit(ask, client, **headers) for _ in range(number)]

        def all_decided() -> bool:
            refused = sum(one.done() for one in asked)
            return refused + upstream.models().count("large") - sent == number

        eventually(all_decided, 30.0)
        decided.set()
        codes = [one.result().status_code for one in asked]
    assert upstream.models().count("large") > sent
    return codes


def test_requests_at_once_do_not_pass_a_budget_together(
    make: Maker, upstream: FakeUpstream
) -> None:
    one = (100 + 20 * 4) / 1e6
    client, service = make(mode="shadow", sample=1.0, comparison_budget=2.5 * one)
    assert set(at_once(client, upstream, 6)) == {200}
    settled(client, service)
    # What the first may cost is held back, at the price of a typical call.
    assert upstream.models().count("small") == 1
    settled(client, service)
    ask(client)
    settled(client, service)
    assert upstream.models().count("small") == 2  # it cost less: there is room again
    key, text = service.keys.create("app", ["infer"], budget=1.5 * (1000 + 800) / 1e6)
    service.keys.renew()
    codes = at_once(client, upstream, 6, authorization=f"Bearer {text}")
    assert sorted(codes) == [200] + 5 * [429]
    settled(client, service)
    assert service.spending.spent(f"key:{key.id}") == pytest.approx((1800 + 180) / 1e6)


def test_what_a_request_may_cost_is_held_back(make: Maker, upstream: FakeUpstream) -> None:
    """By its length, where that makes it more than usual."""
    client, service = make(mode="shadow", sample=0.0)
    key, text = service.keys.create("app", ["infer"], budget=1000.0)
    service.keys.renew()
    held: list[float] = []

    def answer(model: str, body: Any) -> str:
        held.append(service.spending.spent(f"key:{key.id}"))
        return "yes"

    upstream.answer = answer
    long = {**ASK, "messages": [{"role": "user", "content": "x" * 4_000_000}]}
    for body in (ASK, long):
        assert ask(client, body, authorization=f"Bearer {text}").status_code == 200
        settled(client, service)
    assert held[0] == pytest.approx((500 * 10 + 200 * 40) / 1e6)
    assert held[1] == pytest.approx(10.0 + 1800 / 1e6, rel=1e-2)
    assert service.spending.spent(f"key:{key.id}") == pytest.approx(2 * 1800 / 1e6)


@pytest.mark.parametrize("streamed", [False, True])
def test_what_a_request_can_cost_has_to_be_left(
    make: Maker, upstream: FakeUpstream, streamed: bool
) -> None:
    """Where it says how long its answer may be, it is refused before a model is called."""
    client, service = make(mode="shadow", sample=0.0)
    most = (100 * 10 + 100 * 40) / 1e6
    key, text = service.keys.create("app", ["infer"], budget=most)
    service.keys.renew()

    def status(**more: Any) -> Any:
        body = {**ASK, "stream": streamed, **more}
        body["pad"] = ""
        size = len(json.dumps(body, separators=(",", ":"), ensure_ascii=False))
        body["pad"] = "x" * (150 - size)
        response = ask(client, body, authorization=f"Bearer {text}")
        settled(client, service)
        return response

    for limit in ({"max_tokens": 90}, {"max_completion_tokens": 90}, {"max_tokens": 45, "n": 2}):
        refused = status(**limit)
        assert refused.status_code == 429
        assert "can cost 0.0051, more than is left" in refused.json()["error"]["message"]
    assert "can cost 4e+10" in ask(
        client, {**ASK, "max_tokens": 10**400}, authorization=f"Bearer {text}"
    ).text  # fmt: skip
    assert upstream.requests == []
    assert status(max_tokens=50).status_code == 200
    assert status(max_tokens=50).status_code == 429  # it would fit alone
    # Nobody knows what pictures cost: as without a limit, the request that reaches it is the last.
    picture = {"type": "image_url", "image_url": {"url": "http://x"}}
    look = [{"role": "user", "content": [picture]}]
    assert status(messages=look, max_tokens=90).status_code == 200
    assert service.spending.spent(f"key:{key.id}") == pytest.approx(2 * 1800 / 1e6)


def test_a_stage_in_the_place_of_another_has_to_be_paid_too(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = make(mode="shadow", sample=0.0, run_to="small")
    _, text = service.keys.create("app", ["infer"], budget=5e-3)
    service.keys.renew()
    upstream.answer = lambda model, body: {"status": 500} if model == "small" else "yes"
    codes = [
        ask(client, {**ASK, "max_tokens": limit}, authorization=f"Bearer {text}").status_code
        for limit in (150, 50)
    ]
    assert codes == [502, 200]
    assert upstream.models() == ["small", "small", "large"]
    settled(client, service)
    assert service.rounds.sums("support")["spent"] == pytest.approx(1800 / 1e6)


def test_long_bodies_are_passed_on(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(mode="shadow", sample=0.0)
    long = "x" * 3_000_000
    assert ask(client, {**ASK, "messages": [{"role": "user", "content": long}]}).status_code == 200
    assert upstream.requests[0][1]["messages"][0]["content"] == long
