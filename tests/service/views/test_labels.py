"""The audit of a running cascade: of which rounds it is, and when it begins again."""

from __future__ import annotations

import random

import pytest
from service_helpers import Maker

from stopwise.service.cascades.forms import Call, Finished
from stopwise.service.core import Service
from stopwise.service.database.rounds import StoredRound
from stopwise.service.views import labels as page
from stopwise.service.views.labels import current_audit, labels_view

STAGES = ["rule", "model", "person"]


def play(service: Service, rounds: int) -> None:
    cascade, dice = service.cascades["support"], random.Random(3)
    for _ in range(rounds):
        truth = dice.randrange(3)
        calls = tuple(
            Call(at, str(truth if dice.random() > error else dice.randrange(3)), shown="x")
            for at, error in enumerate((0.3, 0.2, 0.1))
        )
        service.recorder.put(Finished(cascade.decide(), calls, 2, request="x"))
    assert service.recorder.drain(60)


def label_one(service: Service) -> None:
    cascade = service.cascades["support"]
    audit = current_audit(service, cascade)
    assert audit is not None
    stored = service.rounds.round("support", audit.to_label[0])
    assert stored is not None
    codes = stored.form["codes"]
    right = [stage for stage in range(3) if codes[stage] == codes[2]]
    service.labels.put("support", stored.id, "me", right, "")


def items(service: Service) -> int:
    audit = current_audit(service, service.cascades["support"])
    assert audit is not None
    return audit.items


def test_what_is_settled_of_a_few_rounds_is_not_said_of_those_that_follow(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "FEWEST", 30)
    client, service = make(models=STAGES, api_only=True, mode="advise", mistake_cost=150.0)
    play(service, 8)
    label_one(service)
    assert items(service) == 8
    play(service, 32)
    assert items(service) == 40
    view = labels_view(service, service.cascades["support"])
    assert (view.settled, view.rounds) == (False, 40)
    text = " ".join(client.get("/ui/c/support/labels").text.split())
    assert "The audit is of 40 rounds that all stages answered" in text
    label_one(service)  # there are enough now: this one fixes them
    play(service, 10)
    assert items(service) == 40


def test_an_audit_whose_texts_are_gone_begins_again(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "FEWEST", 30)
    _, service = make(
        models=STAGES, api_only=True, mode="advise", mistake_cost=150.0, server={"keep": "all"}
    )
    play(service, 40)
    label_one(service)
    with service.database.transaction() as work:  # long ago
        work.run("UPDATE rounds SET at = at - 100000", ())
        work.run("UPDATE labels SET at = at - 100000", ())
    play(service, 50)
    assert items(service) == 40
    service.rounds.keep_seconds = 50_000.0
    assert items(service) == 50
    label_one(service)
    play(service, 5)
    assert items(service) == 50


def test_the_last_rounds_are_read_in_parts(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    _, service = make(models=STAGES, api_only=True, mode="advise")
    play(service, 23)
    epoch = service.cascades["support"].epoch
    every = service.rounds.rounds("support", epoch)
    monkeypatch.setattr("stopwise.service.database.rounds._PART", 5)

    def before(at: StoredRound, limit: int, since: float = 0.0) -> list[StoredRound]:
        return service.rounds.before("support", epoch, at.at, since=since, limit=limit)

    assert before(every[-1], 100) == every
    assert before(every[-1], 7) == every[-7:]
    assert before(every[12], 100) == every[:13]
    assert before(every[12], 100, since=every[4].at) == every[4:13]
    assert service.rounds.complete_at("support", epoch, 23) == every[-1].at
    assert service.rounds.complete_at("support", epoch, 24) is None
