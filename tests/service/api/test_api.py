"""Rounds over HTTP, what was learned, labels, the log that `analyze` reads, the client."""

from __future__ import annotations

import asyncio
import io
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import given as given_case
from hypothesis.errors import Unsatisfiable
from service_helpers import Maker
from starlette.testclient import TestClient

import stopwise as sw
from stopwise.evidence import Evidence
from stopwise.service.api.openapi import document
from stopwise.service.api.routes import API
from stopwise.service.client import AsyncClient, Client, ServiceError
from stopwise.service.core import Service

C = "/api/v1/cascades/support"
Live = Callable[..., Any]


def begin(client: TestClient, **body: Any) -> Any:
    response = client.post(f"{C}/rounds", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def run(client: TestClient, outputs: list[Any], order: list[int] | None = None) -> Any:
    made = begin(client)
    stages = made["stages"]
    for at in order if order is not None else range(len(stages)):
        if at < len(stages):
            body: dict[str, Any] = {"stage": stages[at]}
            body |= {"abstained": True} if outputs[at] is None else {"output": outputs[at]}
            done = client.post(f"{C}/rounds/{made['round']}/outputs", json=body)
            assert done.status_code == 200, done.text
    ended = client.post(f"{C}/rounds/{made['round']}/end")
    assert ended.status_code == 200, ended.text
    return made, ended.json()


@pytest.fixture
def api(make: Maker) -> tuple[TestClient, Service]:
    return make(models=["rule", "model", "person"], api_only=True, mode="advise")


def test_outputs_in_any_order_count_the_same(api: tuple[TestClient, Service]) -> None:
    client, service = api
    rng = random.Random(1)
    expected = Evidence(3)
    for _ in range(40):
        outputs = [rng.choice(["a", "b", None]) for _ in range(3)]
        order = [0, 1, 2]
        rng.shuffle(order)
        run(client, outputs, order)
        expected.merge(Evidence.from_codes([[-1 if o is None else ord(o) for o in outputs]]))
    found = service.cascades["support"].learner.evidence()
    assert (found.seen == expected.seen).all()
    assert (found.disagreed == expected.disagreed).all()
    told = client.get(f"{C}/evidence").json()
    assert told["seen"] == found.seen.tolist()
    assert told["rounds"] == 40


def test_the_answer_is_the_deepest_one_given(api: tuple[TestClient, Service]) -> None:
    client, _ = api
    made, ended = run(client, ["a", {"deep": [1]}, None])
    assert made["stages"] == ["rule", "model", "person"]
    assert ended["answer"] == {"deep": [1]}
    assert ended["stage"] == "model"
    assert ended["cost"] == 111.0
    assert ended["abandoned"] is False


def test_retries_count_once(api: tuple[TestClient, Service]) -> None:
    client, service = api
    headers = {"idempotency-key": "one"}
    first = client.post(f"{C}/rounds", json={"segment": "en"}, headers=headers)
    again = client.post(f"{C}/rounds", json={"segment": "en"}, headers=headers)
    assert first.json() == again.json()
    assert again.status_code == 201
    other = client.post(f"{C}/rounds", json={"segment": "de"}, headers=headers)
    assert other.status_code == 422
    path = f"{C}/rounds/{first.json()['round']}"
    body = {"stage": "rule", "output": "a"}
    for _ in range(2):
        assert client.post(f"{path}/outputs", json=body).status_code == 200
    changed = client.post(f"{path}/outputs", json={"stage": "rule", "output": "b"})
    assert changed.status_code == 409
    client.post(f"{path}/outputs", json={"stage": 1, "output": "a", "cost": 2.5})
    client.post(f"{path}/outputs", json={"stage": 2, "failed": "asleep"})
    ended = [client.post(f"{path}/end").json() for _ in range(3)]
    assert ended[0] == ended[1] == ended[2]
    assert ended[0]["cost"] == pytest.approx(1 + 2.5 + 100)
    assert service.cascades["support"].learner.rounds == 1
    assert client.post(f"{path}/outputs", json=body).json()["error"]["code"] == "round_ended"
    assert client.get(path).json()["state"] == "ended"


def test_gaps_and_abandoned_rounds(api: tuple[TestClient, Service]) -> None:
    client, service = api
    made = begin(client)
    path = f"{C}/rounds/{made['round']}"
    client.post(f"{path}/outputs", json={"stage": "model", "output": "a"})
    ended = client.post(f"{path}/abandon").json()
    assert ended["abandoned"] is True
    assert ended["answer"] == "a"
    evidence = service.cascades["support"].learner.evidence()
    assert evidence.seen.sum() == 0  # the stage that nobody told of is a failure
    nothing = begin(client)
    ended = client.post(f"{C}/rounds/{nothing['round']}/end").json()
    assert ended["stage"] is None
    assert ended["abandoned"] is True


def test_rounds_that_nobody_ends_are_given_up(api: tuple[TestClient, Service]) -> None:
    client, service = api
    made = begin(client)
    path = f"{C}/rounds/{made['round']}"
    client.post(f"{path}/outputs", json={"stage": "rule", "output": "a"})
    service.give_up_rounds(time.time())
    assert client.get(path).json()["state"] == "open"
    service.give_up_rounds(time.time() + 25 * 3600)
    assert service.recorder.drain()
    assert client.get(path).json()["abandoned"] is True
    assert service.cascades["support"].learner.rounds == 1


def test_going_deeper(make: Maker) -> None:
    client, service = make(
        models=["rule", "model", "person"], api_only=True, mode="enforce",
        policy="fixed:stage=0", full_run_rate=0.0,
    )  # fmt: skip
    made = begin(client)
    assert made["stages"] == ["rule"]
    path = f"{C}/rounds/{made['round']}"
    refused = client.post(f"{path}/outputs", json={"stage": "model", "output": "a"})
    assert refused.json()["error"]["code"] == "stage_not_called"
    client.post(f"{path}/outputs", json={"stage": "rule", "failed": "broken"})
    assert client.post(f"{path}/deeper").json()["stages"] == ["rule", "model"]
    client.post(f"{path}/outputs", json={"stage": "model", "output": "a"})
    assert client.post(f"{path}/end").json()["stage"] == "model"
    assert service.cascades["support"].learner.rounds == 1
    assert client.post(f"{path}/deeper").status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {}, {"stage": "rule"}, {"stage": "nobody", "output": 1}, {"stage": True, "output": 1},
        {"stage": 9, "output": 1}, {"stage": 0, "output": None}, {"stage": 0, "abstained": False},
        {"stage": 0, "output": 1, "failed": "x"}, {"stage": 0, "output": 1, "cost": -1},
        {"stage": 0, "output": 1, "cost": "2"}, {"stage": 0, "output": 1, "costs": 2},
    ],
)  # fmt: skip
def test_bad_outputs(api: tuple[TestClient, Service], body: dict[str, Any]) -> None:
    client, _ = api
    made = begin(client)
    response = client.post(f"{C}/rounds/{made['round']}/outputs", json=body)
    assert response.status_code == 422
    assert response.json()["error"]["message"]


def test_verdict_and_report_use_the_words_of_analyze(api: tuple[TestClient, Service]) -> None:
    client, service = api
    assert "Nothing can be said yet" in client.get(f"{C}/verdict").json()["sentence"]
    counts = [[0, 4000, 4000], [0, 0, 4000], [0, 0, 0]]
    differ = [[0, 8, 8], [0, 0, 4], [0, 0, 0]]
    service.cascades["support"].learner.add_evidence(Evidence.from_counts(counts, differ))
    verdict = client.get(f"{C}/verdict").json()
    assert (verdict["headline_stage"], verdict["headline_reading"]) == ("rule", "certain")
    assert verdict["nothing_deeper_pays"] is True
    assert {pair["verdict"] for pair in verdict["pairs"]} <= {"certain", "not knowable"}
    run(client, ["a", "a", "b"])
    report = client.get(f"{C}/report").json()
    assert report["sums"]["rounds"] == 1
    assert report["sums"]["disagreed:1:2"] == 1
    explained = client.get(f"{C}/explain?hours=2").json()
    assert sum(explained["law"]) == pytest.approx(1)
    assert explained["over_time"]["slices"][0]["requests"] == 1


def filled(client: TestClient, count: int = 60) -> list[tuple[str, list[str]]]:
    """Rounds in which `person` is always right, the others often."""
    rng = random.Random(2)
    made = []
    for _ in range(count):
        truth = rng.choice("ab")
        wrong = "a" if truth == "b" else "b"
        outputs = [truth if rng.random() < p else wrong for p in (0.6, 0.9)] + [truth]
        begun, _ = run(client, outputs)
        made.append((begun["round"], outputs))
    return made


def test_the_log_is_what_analyze_replay_and_audit_read(
    api: tuple[TestClient, Service], tmp_path: Path
) -> None:
    client, service = api
    made = filled(client)
    for round_id, outputs in made[:3]:
        right = [at for at in range(3) if outputs[at] == outputs[2]]
        done = client.post(f"{C}/labels", json={"round": round_id, "correct": right})
        assert done.status_code == 201
    data = client.get(f"{C}/log").content
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    frame = polars.read_csv(io.BytesIO(data), infer_schema=False)
    assert len(frame) == 60
    assert frame["truth"].is_not_null().sum() == 3
    given: Any = {"stages": ["rule", "model", "person"], "mistake_cost": 1000.0}
    analysis = sw.analyze(path, **given, costs=[1, 10, 100])
    found = service.cascades["support"].learner.evidence()
    assert (analysis.evidence.seen == found.seen).all()
    assert (analysis.evidence.disagreed == found.disagreed).all()
    # What calls cost is in the log too.
    assert sw.analyze(path, **given).verdict.costs.per_stage.tolist() == [1, 10, 100]
    assert sw.replay(path, **given, costs=[1, 10, 100]) is not None
    assert len(client.get(f"{C}/log?format=jsonl").text.splitlines()) == 60


def test_labels_settle_the_audit(api: tuple[TestClient, Service]) -> None:
    client, _ = api
    made = dict(filled(client, 120))
    given = 0
    while True:
        audit = client.get(f"{C}/audit").json()
        if audit["settled"] or not audit["to_label"] or given > 120:
            break
        for round_id in audit["to_label"][:3]:
            outputs = made[round_id]
            right = [at for at in range(3) if outputs[at] == outputs[2]]
            client.post(f"{C}/labels", json={"round": round_id, "correct": right})
            given += 1
    assert audit["settled"] is True
    # As `stopwise audit` settles it, and says what that rests on.
    words = {
        "posterior": "a posterior probability of 99 % or more",
        "guarantee": "a guarantee of 99 %",
    }
    said = words[audit["settled_by"]]  # by which of the two rests on the order, which is random
    assert audit["level"] == 0.99
    page = " ".join(client.get("/ui/c/support/labels").text.split())
    assert f"settled after {given} labels, with {said}" in page
    assert "of these 120 rounds." in page
    assert "by its posterior</td>" in page or audit["settled_by"] == "guarantee"
    assert audit["best"] in ("model", "person")
    assert audit["labels"] == given
    assert 0 < given < 120


def test_labels_of_an_earlier_epoch_do_not_end_the_audit(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stopwise.service.views.labels.FEWEST", 60)
    stages = ["rule", "model", "person"]
    client, _ = make(models=stages, api_only=True, mode="advise")
    filled(client)
    first = client.get(f"{C}/audit").json()["to_label"][0]
    assert client.post(f"{C}/labels", json={"round": first, "correct": [2]}).status_code == 201
    client, _ = make(models=stages, api_only=True, mode="advise", comparator="exact")
    made = dict(filled(client))
    audit = client.get(f"{C}/audit").json()
    assert audit["labels"] == 0
    assert audit["items"] == 60
    assert set(audit["to_label"]) <= set(made)
    assert audit["to_label"]
    # A label of this epoch ends the sample as ever.
    first = audit["to_label"][0]
    assert client.post(f"{C}/labels", json={"round": first, "correct": [2]}).status_code == 201
    filled(client)
    audit = client.get(f"{C}/audit").json()
    assert audit["labels"] == 1
    assert audit["items"] == 60


def test_labels_are_checked(api: tuple[TestClient, Service]) -> None:
    client, _ = api
    made, _ = run(client, ["a", "b", None])
    post = lambda **body: client.post(f"{C}/labels", json=body)  # noqa: E731
    assert post(round="nobody", correct=[]).status_code == 404
    assert post(round=made["round"], correct=["rule", "model"]).status_code == 422
    assert post(round=made["round"], correct=["person"]).status_code == 422
    assert post(round=made["round"], correct="rule").status_code == 422
    assert post(round=made["round"], correct=["rule"]).status_code == 201
    assert post(round=made["round"], correct=[]).status_code == 201
    assert client.get(f"{C}/labels").json()["labels"][0]["correct"] == []


def test_the_document_and_the_routes_agree() -> None:
    described = {
        (method.upper(), path)
        for path, methods in document(["c"])["paths"].items()
        for method in methods
    }
    routed = {
        (method, route.path)
        for route in API
        for method in (route.methods or ())
        if method != "HEAD" and not route.path.endswith("openapi.json")
    }
    assert described == routed


def test_no_request_that_the_document_allows_is_a_fault(
    api: tuple[TestClient, Service],
) -> None:
    """schemathesis sends what the document allows and what it does not: never a 500."""
    client, _ = api
    made, _ = run(client, ["a", "b", "a"])
    schema = schemathesis.openapi.from_dict(document(["support"]))
    seen: list[int] = []

    def send(case: Any) -> None:
        parts = dict(case.path_parameters or {})
        if "round" in parts and len(seen) % 2:
            parts["round"] = made["round"]
        quoted = {name: quote(str(value), safe="") for name, value in parts.items()}
        given: dict[str, Any] = {"params": case.query or {}}
        if isinstance(case.body, (bytes, bytearray)):
            given["content"] = bytes(case.body)
        elif case.body is not schemathesis.core.NOT_SET:
            given["json"] = case.body
        if case.headers:
            given["headers"] = {k: v for k, v in case.headers.items() if v.isascii()}
        response = client.request(case.method, case.operation.path.format(**quoted), **given)
        seen.append(response.status_code)
        assert response.status_code < 500, (case.method, case.operation.path, response.text)

    modes = schemathesis.GenerationMode
    limits = settings(
        max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    for operation in schema.get_all_operations():
        for mode in (modes.POSITIVE, modes.NEGATIVE):
            try:
                cases = operation.ok().as_strategy(generation_mode=mode)
                limits(given_case(case=cases)(send))()
            except Unsatisfiable:
                assert mode is modes.NEGATIVE  # nothing can be wrong about it
    assert {200, 201} & set(seen)
    assert {404, 422} & set(seen)
    assert len(seen) > 100


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_client(live: Live, kind: str) -> None:
    server = live(mode="advise")
    if kind == "sync":
        client = Client(server.url)
        with client.begin("support", segment="en") as round:
            for stage in round.stages:
                round.observe(stage, "yes", cost=0.5)
        assert round.answer == "yes"
        assert round.cost == 1.0
        assert client.evidence("support", "en")["seen"][0][1] == 1
        assert client.cascades()[0]["name"] == "support"
        client.label("support", round.id, ["small", "large"])
        assert client.log("support").count(b"\n") == 2
        with pytest.raises(ServiceError, match="no cascade") as caught:
            client.verdict("nobody")
        assert caught.value.status == 404
        round = client.begin("support")
        with pytest.raises(ZeroDivisionError), round:
            round.observe("small", 1 / 0)
        assert round.ended
        assert client.set_mode("support", "enforce", "test")["old"] == "advise"
        return

    async def talk() -> None:
        client = AsyncClient(server.url)
        async with await client.begin("support") as round:
            await asyncio.gather(*(round.observe(stage, "yes") for stage in round.stages))
        assert (await client.evidence("support"))["seen"][0][1] == 1
        assert "sentence" in await client.verdict("support")

    asyncio.run(talk())


def test_a_service_that_is_not_there(free_port: int) -> None:
    client = Client(f"http://127.0.0.1:{free_port}", tries=2, timeout=1)
    with pytest.raises(ServiceError, match="cannot be reached"):
        client.cascades()
