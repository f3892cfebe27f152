"""What it means that a stage gives no answer: as in a live cascade, over HTTP."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_upstream import FakeUpstream
from front_requests import ASK, ask, settled
from service_helpers import Maker, cascade_form
from starlette.testclient import TestClient

import stopwise as sw
from stopwise.abstentions import Abstentions
from stopwise.checks import StopwiseError
from stopwise.live import Cascade, Stage
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service

API = "/api/v1/cascades/support"
COSTS = {"s0": 0.1, "s1": 1.0, "s2": 8.0}
STAGES = [{"name": name, "cost": cost} for name, cost in COSTS.items()]
CUT = {"message": {"content": "I was cut"}, "finish": "length"}
Learned = tuple[TestClient, Service]


def outputs_of(number: int) -> list[str | None]:
    """The first stage often gives no answer, the second now and then, the last hardly ever."""
    draw = random.Random(number)
    truth = draw.choice("abc")
    said: list[str | None] = []
    for silent, wrong in ((0.3, 0.3), (0.1, 0.15), (0.02, 0.05)):
        guess = draw.choice("abc") if draw.random() < wrong else truth
        said.append(None if draw.random() < silent else guess)
    return said


def drawing(service: Service, seed: int = 3) -> None:
    """Let depths be drawn by fixed numbers."""
    service.cascades["support"]._draws.fresh = random.Random(seed).random  # type: ignore[method-assign]


def play(client: TestClient, number: int) -> dict[str, Any]:
    """One round over HTTP; what its end said, and which stages it called."""
    form = client.post(f"{API}/rounds", json={}).json()
    said, called, drawn = outputs_of(number), [], form["depth"]
    while form["next"]:
        name = form["next"][0]
        called.append(name)
        output = said[int(name[1:])]
        way = {"abstained": True} if output is None else {"output": output}
        form = client.post(
            f"{API}/rounds/{form['round']}/outputs", json={"stage": name, **way}
        ).json()
    ended: dict[str, Any] = client.post(f"{API}/rounds/{form['round']}/end").json()
    return ended | {"called": called, "drawn": drawn, "number": number}


def enforcing(make: Maker, abstentions: Abstentions) -> Learned:
    client, service = make(
        api_only=True,
        stages=STAGES,
        mode="enforce",
        mistake_cost=12.0,
        full_run_rate=0.3,
        abstentions=abstentions,
    )
    drawing(service)
    return client, service


def rounds(make: Maker, abstentions: Abstentions, number: int = 50) -> Learned:
    client, service = enforcing(make, abstentions)
    for at in range(number):
        play(client, at)
    return client, settled(client, service)


@pytest.mark.parametrize("abstentions", ["leave out", "mistake", "go on"])
def test_rounds_count_as_in_a_live_cascade(make: Maker, abstentions: Abstentions) -> None:
    """The same items to the same depths through `Cascade`: the same evidence, costs, answers."""
    client, service = enforcing(make, abstentions)
    live = Cascade(
        [
            Stage(name, lambda number, at=at: outputs_of(number)[at], cost=cost)
            for at, (name, cost) in enumerate(COSTS.items())
        ],
        mistake_cost=12.0,
        abstentions=abstentions,
    )
    learner = live.learner
    for number in range(40):
        told = play(client, number)
        round = learner.begin_drawn(told["drawn"], 0.5)
        said = outputs_of(number)
        while len(round.outputs) <= round.depth or learner.goes_on(round):
            round.observe(said[len(round.outputs)])
        outcome = round.end()
        assert [f"s{at}" for at in range(len(round.outputs))] == told["called"]
        assert outcome.answer == told["answer"]
        assert outcome.cost == pytest.approx(told["cost"])
    cascade = settled(client, service).cascades["support"]
    assert cascade.learner.evidence() == learner.evidence()
    assert np.allclose(cascade.learner.costs.cumulative, learner.costs.cumulative)
    # The sums of the pages say the same as the evidence.
    sums, evidence = service.rounds.sums("support"), cascade.learner.evidence()
    for i in range(3):
        for j in range(i + 1, 3):
            assert sums.get(f"seen:{i}:{j}", 0) == evidence.seen[i, j]
            assert sums.get(f"disagreed:{i}:{j}", 0) == evidence.disagreed[i, j]


@pytest.mark.parametrize("abstentions", ["mistake", "go on"])
def test_the_log_is_read_as_it_was_counted(
    make: Maker, tmp_path: Path, abstentions: Abstentions
) -> None:
    client, service = rounds(make, abstentions)
    path = tmp_path / "rounds.csv"
    path.write_bytes(client.get(f"{API}/log").content)
    analysis = sw.analyze(
        path,
        stages=list(COSTS),
        costs=list(COSTS.values()),
        mistake_cost=12,
        abstentions=abstentions,
    )
    found = analysis.evidence
    evidence = service.cascades["support"].learner.evidence()
    if abstentions == "mistake":
        assert found == evidence
    else:
        # Rows that were drawn to go through all stages: a fair sample, and no larger than all.
        forms = [
            json.loads(line) for line in client.get(f"{API}/log?format=jsonl").text.splitlines()
        ]
        assert found.seen[0, 2] == sum(form["depth"] == 2 for form in forms)
        assert found.seen[0, 2] == evidence.seen[0, 2]
        assert found.disagreed[0, 2] == evidence.disagreed[0, 2]
        assert found.seen[0, 1] <= evidence.seen[0, 1]


def test_the_verdict_rests_on_what_going_on_costs(make: Maker) -> None:
    client, service = rounds(make, "go on")
    cascade = service.cascades["support"]
    own, stopping = cascade.learner.own_costs.cumulative, cascade.learner.costs.cumulative
    assert stopping[0] > own[0]  # three in ten are paid for twice
    shown = client.get(f"{API}/explain").json()
    assert shown["costs"] == pytest.approx(list(COSTS.values()))
    verdict = client.get(f"{API}/verdict").json()
    pair = next(p for p in verdict["pairs"] if (p["shallow"], p["deep"]) == ("s0", "s1"))
    assert pair["threshold"] == pytest.approx((stopping[1] - stopping[0]) / 12.0)
    assert verdict["readings"]["estimated"] is not None  # patterns and evidence agree
    for page in ("", "/savings", "/disagreements?pair=0-1", "/labels", "/health", "/mode"):
        assert client.get(f"/ui/c/support{page}").status_code == 200
    assert "the next one is called" in client.get("/ui/c/support/mode").text


def test_labels_settle_what_no_answer_costs(make: Maker) -> None:
    """A round in which a stage gave no answer is audited too: no answer is a wrong one."""
    client, _ = rounds(make, "mistake")
    audit = client.get(f"{API}/audit").json()
    for _ in range(200):
        if audit["settled"]:
            break
        for name in audit["to_label"]:
            form = client.get(f"{API}/rounds/{name}").json()
            last = [2] if form["codes"][2] >= 0 else []
            told = {"round": name, "correct": last}
            assert client.post(f"{API}/labels", json=told).status_code == 201
        audit = client.get(f"{API}/audit").json()
    assert audit["settled"]
    forms = [json.loads(line) for line in client.get(f"{API}/log?format=jsonl").text.splitlines()]
    assert audit["items"] == sum(len(form["codes"]) == 3 for form in forms)
    assert any(-1 in form["codes"] for form in forms if "correct" in form)


# ---- language models ------------------------------------------------------------------------


def first_only(make: Maker, abstentions: str, **more: Any) -> Learned:
    """A cascade that stops at the first of three models."""
    return make(
        models=["small", "middle", "large"],
        mode="enforce",
        policy="fixed:stage=0",
        full_run_rate=0.0,
        abstentions=abstentions,
        **more,
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("abstentions", "stage", "called"),
    [("leave-out", "small", 1), ("mistake", "small", 1), ("go-on", "large", 3)],
)
def test_a_cut_answer(
    make: Maker, upstream: FakeUpstream, streamed: bool, abstentions: str, stage: str, called: int
) -> None:
    upstream.answer = lambda model, body: "whole" if model == "large" else CUT
    client, service = first_only(make, abstentions)
    reply = ask(client, ASK | {"stream": streamed})
    assert reply.status_code == 200
    assert reply.headers["x-stopwise-stage"] == stage
    assert reply.headers["x-stopwise-depth"] == "0"
    assert ("whole" in reply.text) == (stage == "large")
    assert len(upstream.requests) == called
    settled(client, service)
    form = client.get(f"{API}/rounds/{reply.headers['x-stopwise-round']}").json()
    assert (form["depth"], form["stage"], form["called"]) == (0, called - 1, called)
    evidence = service.cascades["support"].learner.evidence()
    assert evidence.seen.sum() == 0  # one stage to stop at: there is no pair


def test_the_stage_that_nothing_follows_is_streamed_at_once(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = make(
        models=["small", "large"], mode="enforce", policy="fixed:stage=1", abstentions="go on"
    )
    upstream.answer = lambda model, body: "one two three"
    reply = ask(client, ASK | {"stream": True})
    assert reply.text.count("chat.completion.chunk") > 3  # chunk by chunk, as the upstream sent it
    settled(client, service)


def test_nobody_answers(make: Maker, upstream: FakeUpstream) -> None:
    """The client has what came back, and it counts as no answer."""
    upstream.answer = lambda model, body: CUT
    client, service = first_only(make, "go on")
    reply = ask(client)
    assert reply.headers["x-stopwise-stage"] == "large"
    assert reply.json()["choices"][0]["message"]["content"] == "I was cut"
    upstream.answer = lambda model, body: CUT if model == "small" else {"status": 500}
    reply = ask(client)
    assert reply.headers["x-stopwise-stage"] == "small"
    settled(client, service)


def test_an_answer_that_came_before_is_given(make: Maker, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: "yes" if model == "small" else CUT
    client, service = make(
        models=["small", "middle", "large"],
        mode="enforce",
        policy="fixed:stage=1",
        full_run_rate=0.0,
        abstentions="go on",
    )
    reply = ask(client)
    assert reply.headers["x-stopwise-stage"] == "small"
    settled(client, service)
    evidence = service.cascades["support"].learner.evidence()
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (1, 1)  # no answer differs from one


def test_what_the_comparator_cannot_read_is_no_answer(make: Maker, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: "I do not know" if model == "small" else "B"
    client, service = first_only(make, "go on", comparator="letter(ABCD)")
    assert ask(client).headers["x-stopwise-stage"] == "middle"
    question = {"model": "support", "kind": "predicate", "input": "Is it so?"}
    upstream.answer = lambda model, body: "maybe" if model == "small" else "true"
    reply = client.post("/v1/decisions", json=question)
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-stopwise-stage"] == "middle"
    settled(client, service)


def test_a_stage_that_is_asked_for_by_name_answers_itself(
    make: Maker, upstream: FakeUpstream
) -> None:
    upstream.answer = lambda model, body: CUT
    client, service = first_only(make, "go on")
    for body in (ASK | {"model": "support/small"}, ASK | {"n": 2}):
        ask(client, body)
    assert upstream.models().count("middle") == 0
    settled(client, service)


def test_shadow_answers_as_today(make: Maker, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: CUT if model == "large" else "yes"
    client, service = make(mode="shadow", sample=1.0, abstentions="go on")
    reply = ask(client)
    assert reply.headers["x-stopwise-stage"] == "large"
    settled(client, service)
    # The large one has no answer: stopping there is a mistake, and differs from the small one.
    evidence = service.cascades["support"].learner.evidence()
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (1, 1)


def test_that_a_client_left_is_no_mistake_of_a_stage(make: Maker, upstream: FakeUpstream) -> None:
    from stopwise.service.cascades.forms import CLIENT_GONE, Call, Finished

    client, service = make(mode="enforce", full_run_rate=1.0, abstentions="mistake")
    cascade = service.cascades["support"]
    for failed in (CLIENT_GONE, "timeout"):
        decision = cascade.decide()
        calls = (Call(0, "yes", shown="yes"), Call(1, failed=failed, cost=0.1))
        service.recorder.put(Finished(decision, calls, None, abandoned=failed == CLIENT_GONE))
    settled(client, service)
    evidence = cascade.learner.evidence()
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (1, 1)
    sums = service.rounds.sums("support")
    assert (sums["seen:0:1"], sums["rounds"], sums["failed:1"]) == (1, 2, 2)
    for page in ("", "/disagreements", "/labels"):
        assert client.get(f"/ui/c/support{page}").status_code == 200
    assert len(client.get(f"{API}/log").text.splitlines()) == 3


# ---- rounds over HTTP -----------------------------------------------------------------------


def test_a_round_that_is_ended_before_it_may_is_given_up(make: Maker) -> None:
    client, service = make(
        api_only=True, stages=STAGES, mode="enforce", policy="fixed:stage=0", full_run_rate=0.0,
        abstentions="go on", mistake_cost=12.0,
    )  # fmt: skip
    form = client.post(f"{API}/rounds", json={}).json()
    path = f"{API}/rounds/{form['round']}"
    for _ in range(2):  # sending again is safe
        told = client.post(f"{path}/outputs", json={"stage": "s0", "abstained": True}).json()
        assert (told["depth"], told["next"]) == (0, ["s1"])
    assert client.post(f"{path}/end").json()["abandoned"]
    # A failure is for the caller to decide.
    form = client.post(f"{API}/rounds", json={}).json()
    path = f"{API}/rounds/{form['round']}"
    told = client.post(f"{path}/outputs", json={"stage": "s0", "failed": "timeout"}).json()
    assert told["next"] == []
    assert client.post(f"{path}/deeper", json={}).json()["next"] == ["s1"]
    settled(client, service)


# ---- configuration --------------------------------------------------------------------------


def read(**more: Any) -> Any:
    form = {"cascades": {"support": cascade_form(None, ["a", "b", "c"], **more)}}
    return config_of(form, Path()).cascades["support"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"abstentions": "guess"}, "cascades.support.abstentions: got 'guess', but need 'go on',"),
        (
            {"abstentions": "go on", "policy": "per-item"},
            "cascades.support.abstentions: got 'go on', but need leave out with the policy",
        ),
        (
            {"abstentions": "go on", "run_to": "b"},
            "cascades.support.run_to: got 'b', but need c with abstentions = 'go on'",
        ),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(StopwiseError, match=said.replace(".", r"\.")):
        read(**given)


def test_another_meaning_is_another_epoch() -> None:
    from stopwise.service.cascades.evidence_stores import epoch_of

    names = [epoch_of(read(**given))[0] for given in
             ({}, {"abstentions": "leave-out"}, {"abstentions": "mistake"},
              {"abstentions": "go on"})]  # fmt: skip
    assert names[0] == names[1]
    assert len(set(names)) == 3
