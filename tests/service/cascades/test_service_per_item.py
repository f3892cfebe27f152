"""Per item: each request goes on or stops by what the stages answered to it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from service_helpers import Maker
from starlette.testclient import TestClient

from stopwise.service.core import Service
from stopwise.service.http.access import LOCAL

ITEM = {"policy": "per-item", "mistake_cost": 20.0, "mode": "enforce", "full_run_rate": 0.02}
API = "/api/v1/cascades/support"


STAGES = [{"name": "s0", "cost": 0.2}, {"name": "s1", "cost": 2.0}]


def outputs_of(number: int) -> list[tuple[str, float]]:
    """The first stage is right when it is sure, and a coin when it is not."""
    draw = random.Random(number)
    truth = draw.choice(["yes", "no"])
    sure = draw.random() < 0.7
    guess = truth if sure else draw.choice(["yes", "no"])
    return [(guess, 0.9 if sure else 0.5), (truth, 0.99)]


def play(client: TestClient, number: int, **begin: Any) -> dict[str, Any]:
    """One round over HTTP, as a client plays it; what its end said, and which stages it called."""
    form = client.post(f"{API}/rounds", json=begin).json()
    said = outputs_of(number)
    called = []
    while form["next"]:
        name = form["next"][0]
        at = int(name[1:])
        body = {"stage": name, "output": said[at][0], "confidence": said[at][1]}
        form = client.post(f"{API}/rounds/{form['round']}/outputs", json=body).json()
        called.append(name)
    ended: dict[str, Any] = client.post(f"{API}/rounds/{form['round']}/end").json()
    return ended | {"called": called, "sure": said[0][1] > 0.6}


@pytest.fixture
def learned(make: Maker) -> tuple[TestClient, Service]:
    client, service = make(api_only=True, stages=STAGES, **ITEM)
    service.cascades["support"]._draws.fresh = random.Random(5).random  # type: ignore[method-assign]
    for number in range(150):
        play(client, number)
    return client, service


def test_rounds_over_http_stop_where_the_rule_says(learned: tuple[TestClient, Service]) -> None:
    client, service = learned
    cascade = service.cascades["support"]
    played = [play(client, number) for number in range(1000, 1100)]
    walked = [
        one
        for one in played
        if not client.get(f"{API}/rounds/{one['round']}").json().get("full_run")
    ]
    assert len(walked) > 50
    for one in walked:
        assert one["called"] == (["s0"] if one["sure"] else ["s0", "s1"])
        assert one["stage"] == one["called"][-1]
        assert not one["abandoned"]
    # All of it is counted, once: rounds, transitions, sums, and pairs from full runs alone.
    sums = service.rounds.sums("support", epoch=cascade.epoch)
    counts = cascade.learner.transitions
    assert counts is not None
    assert cascade.learner.rounds == counts.rounds == sums["rounds"] == 250
    evidence = cascade.learner.evidence()
    assert evidence.seen[0, 1] == sums["seen:0:1"] == sums["full_runs"]
    assert sums["decided"] == 250 - sums["full_runs"]


def test_what_a_round_says_of_itself(learned: tuple[TestClient, Service]) -> None:
    client, service = learned
    decided = next(
        form
        for number in range(2000, 2100)
        if "item" in (form := client.get(f"{API}/rounds/{play(client, number)['round']}").json())
        and form.get("decided")
        and form["depth"] == 0
    )
    item = decided["item"]
    assert item["stop"] == 0
    assert decided["probability"] == pytest.approx(1 - item["chance"])
    stop, risk, here, deeper, rows = item["steps"][0]
    assert stop is True
    assert here <= deeper
    assert 0 <= risk < 0.2
    assert rows > 0
    # No text in what is kept for good.
    assert "yes" not in json.dumps(decided)
    counts = service.cascades["support"].learner.transitions
    assert counts is not None
    assert "yes" not in json.dumps(counts.to_dict())


def test_the_log_for_analyze_holds_fair_rows_alone(learned: tuple[TestClient, Service]) -> None:
    client, service = learned
    sums = service.rounds.sums("support")
    rows = client.get(f"{API}/log").text.splitlines()[1:]
    lines = client.get(f"{API}/log?format=jsonl").text.splitlines()
    assert len(rows) == sums["full_runs"]
    assert len(lines) == 150
    forms = [json.loads(line) for line in lines]
    # Each line names its round, and says apart what the rule said of it.
    assert [form["item"] for form in forms] == [
        stored.id for stored in service.rounds.rounds("support", service.cascades["support"].epoch)
    ]
    assert all(0 < form["rule"]["chance"] <= 1 for form in forms)
    audit = client.get(f"{API}/audit").json()
    assert audit["items"] <= sums["full_runs"]


def test_a_restart_goes_on_with_the_rule(make: Maker) -> None:
    settings = {"api_only": True, "stages": STAGES, **ITEM}
    client, first = make(**settings)
    for number in range(100):
        play(client, number)
    client.__exit__(None, None, None)
    _, again = make(**settings)
    items = again.cascades["support"].items
    assert items is not None
    assert items.rule is not None
    assert items.full_chance(0.0) < 1
    assert again.cascades["support"].learner.rounds == 100
    assert first is not again


def test_outputs_of_walking_rounds_come_in_order_and_once(
    learned: tuple[TestClient, Service],
) -> None:
    client, service = learned
    service.cascades["support"]._draws.fresh = lambda: 0.999  # type: ignore[method-assign]
    form = client.post(f"{API}/rounds", json={}).json()
    assert (form["stages"], form["next"], form["depth"]) == (["s0"], ["s0"], 0)
    place = f"{API}/rounds/{form['round']}"
    early = client.post(f"{place}/outputs", json={"stage": "s1", "output": "yes"})
    assert (early.status_code, early.json()["error"]["code"]) == (409, "stage_not_called")
    unsure = {"stage": "s0", "output": "yes", "confidence": 0.5}
    form = client.post(f"{place}/outputs", json=unsure).json()
    assert (form["stages"], form["next"]) == (["s0", "s1"], ["s1"])
    assert client.post(f"{place}/outputs", json=unsure).json() == form  # sent again
    # The last stage fails: the answer is the one that is there.
    form = client.post(f"{place}/outputs", json={"stage": "s1", "failed": "timeout"}).json()
    assert form["next"] == []
    ended = client.post(f"{place}/end").json()
    assert (ended["answer"], ended["stage"], ended["abandoned"]) == ("yes", "s0", False)
    assert client.post(f"{place}/end").json() == ended
    # The first fails: with no answer yet the next one is called whatever the rule says.
    form = client.post(f"{API}/rounds", json={}).json()
    place = f"{API}/rounds/{form['round']}"
    form = client.post(f"{place}/outputs", json={"stage": "s0", "failed": "timeout"}).json()
    assert form["next"] == ["s1"]


def test_features_are_checked(learned: tuple[TestClient, Service], make: Maker) -> None:
    client, _ = learned
    assert play(client, 1, features={"length": 3})["stage"]
    for wrong in ([1], {"a": [1, 2]}, {"a": 1, "b": 2, "c": 3, "d": 4}):
        refused = client.post(f"{API}/rounds", json={"features": wrong})
        assert refused.status_code == 422, wrong
        assert refused.json()["error"]["param"] == "features"


# ---- chat ---------------------------------------------------------------------------------


def answer(model: str, body: dict[str, Any]) -> Any:
    """Both agree on even numbers; on odd ones the small model is cut off and has no answer."""
    number = int(body["messages"][-1]["content"])
    if model == "small" and number % 2:
        return {"message": {"content": "well"}, "finish": "length"}
    return "fine"


def ask(client: TestClient, number: int, **more: Any) -> Any:
    body = {"model": "support", "messages": [{"role": "user", "content": str(number)}], **more}
    return client.post("/v1/chat/completions", json=body)


@pytest.fixture
def chat(make: Maker, upstream: FakeUpstream) -> tuple[TestClient, Service]:
    upstream.answer = answer
    client, service = make(**{**ITEM, "mistake_cost": 0.02})
    for number in range(80):
        assert ask(client, number).status_code == 200
        if number % 16 == 0:
            assert service.recorder.drain()
    assert service.recorder.drain()
    service.cascades["support"]._draws.fresh = lambda: 0.999  # type: ignore[method-assign]
    return client, service


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_goes_on_where_the_first_has_no_answer(
    chat: tuple[TestClient, Service], upstream: FakeUpstream, streamed: bool
) -> None:
    client, service = chat
    upstream.requests.clear()
    easy = ask(client, 2, stream=streamed)
    assert upstream.models() == ["small"]
    assert easy.headers["x-stopwise-stage"] == "small"
    assert easy.headers["x-stopwise-depth"] == "0"
    assert float(easy.headers["x-stopwise-probability"]) < 1
    upstream.requests.clear()
    hard = ask(client, 3, stream=streamed)
    assert upstream.models() == ["small", "large"]
    assert hard.headers["x-stopwise-stage"] == "large"
    assert float(hard.headers["x-stopwise-probability"]) == 1
    for came in (easy, hard):
        if streamed:
            assert came.text.endswith("data: [DONE]\n\n")
            assert '"content":"fine"' in came.text.replace(": ", ":")
        else:
            assert came.json()["choices"][0]["message"]["content"] == "fine"
    assert service.recorder.drain()
    sums = service.rounds.sums("support")
    assert sums["decided"] >= 2
    assert service.cascades["support"].learner.rounds == 82


def test_a_failure_on_the_way_is_passed_by(
    chat: tuple[TestClient, Service], upstream: FakeUpstream
) -> None:
    client, service = chat
    upstream.answer = lambda model, body: {"status": 500} if model == "small" else "from large"
    found = ask(client, 2)
    assert found.json()["choices"][0]["message"]["content"] == "from large"
    upstream.answer = lambda model, body: {"status": 500}
    none = ask(client, 2)
    assert (none.status_code, none.json()["error"]["code"]) == (502, "no_answer")
    upstream.answer = lambda model, body: {"status": 400} if model == "small" else "from large"
    assert ask(client, 2).json()["choices"][0]["message"]["content"] == "from large"
    upstream.requests.clear()
    upstream.answer = lambda model, body: {"status": 400}
    refused = ask(client, 2)
    assert refused.status_code == 400
    assert upstream.models() == ["small", "large"]  # another model might have taken it
    assert service.recorder.drain()
    assert service.rounds.sums("support")["failed:0"] == 4


def test_full_runs_call_all_and_give_the_likeliest(
    chat: tuple[TestClient, Service], upstream: FakeUpstream
) -> None:
    client, service = chat
    service.cascades["support"]._draws.fresh = lambda: 0.0  # type: ignore[method-assign]
    upstream.requests.clear()
    found = ask(client, 2)
    assert sorted(upstream.models()) == ["large", "small"]
    assert found.headers["x-stopwise-depth"] == "1"
    # The rule would have stopped it: it is here by the coin, whose chance is known.
    assert float(found.headers["x-stopwise-probability"]) < 0.5


def test_shadow_and_advise_answer_as_today(
    chat: tuple[TestClient, Service], upstream: FakeUpstream
) -> None:
    client, service = chat
    cascade = service.cascades["support"]
    before = service.rounds.sums("support")
    service.set_mode(cascade, "advise", LOCAL, "to see")
    found = ask(client, 2, stream=True)
    assert found.headers["x-stopwise-stage"] == "large"
    assert "x-stopwise-advised" not in found.headers  # known only when all answers are
    assert service.recorder.drain()
    sums = service.rounds.sums("support")
    assert sums["advised:0"] == before.get("advised:0", 0) + 1
    assert sums["advised:same"] == before.get("advised:same", 0) + 1
    assert sums["seen:0:1"] == before["seen:0:1"] + 1


def test_confidence_from_log_probabilities(make: Maker, upstream: FakeUpstream) -> None:
    def sure(model: str, body: dict[str, Any]) -> Any:
        number = int(body["messages"][-1]["content"])
        odd = number % 2
        token = {"token": "x", "logprob": -2.0 if odd else -0.01}
        text = "wrong" if odd and model == "small" and number % 4 == 1 else "right"
        return {"message": {"content": text}, "logprobs": {"content": [token]}}

    upstream.answer = sure
    client, service = make(**{**ITEM, "mistake_cost": 0.02, "confidence": "mean"})
    for number in range(160):
        found = ask(client, number)
        # Asked for by the service alone, so not the client's.
        assert "logprobs" not in found.json()["choices"][0]
        if number % 16 == 0:
            assert service.recorder.drain()
    assert all(body["logprobs"] is True for _, body in upstream.requests)
    service.cascades["support"]._draws.fresh = lambda: 0.999  # type: ignore[method-assign]
    assert service.recorder.drain()
    assert ask(client, 2).headers["x-stopwise-stage"] == "small"
    assert ask(client, 5).headers["x-stopwise-stage"] == "large"
    assert "logprobs" in ask(client, 2, logprobs=True).json()["choices"][0]


def test_the_page_says_why(learned: tuple[TestClient, Service]) -> None:
    client, _ = learned
    page = client.get("/ui/c/support").text
    assert "Decided per item" in page
    assert "stop after s0 when" in page
    assert "of a full run" in page
    for tab in ("/savings", "/disagreements", "/labels", "/health", "/mode"):
        assert client.get(f"/ui/c/support{tab}").status_code == 200


def test_another_kind_of_policy_keeps_the_evidence_and_refuses_open_rounds(make: Maker) -> None:
    settings = {**ITEM, "api_only": True, "stages": STAGES}
    client, first = make(**settings)
    for number in range(5):
        play(client, number)
    left_open = client.post(f"{API}/rounds", json={}).json()["round"]
    client.__exit__(None, None, None)
    client, second = make(**{**settings, "policy": "uss-ts-jump"})
    cascade = second.cascades["support"]
    assert cascade.epoch == first.cascades["support"].epoch
    assert cascade.learner.evidence().seen[0, 1] == 5  # all of them full runs
    refused = client.post(f"{API}/rounds/{left_open}/end")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "another_epoch")
    second.give_up_rounds(2e10)
    assert second.recorder.drain()
    assert cascade.learner.rounds == 5
