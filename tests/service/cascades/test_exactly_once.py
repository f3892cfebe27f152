"""A round is written with its evidence or not at all, and ended once wherever it is ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import postgres_server
import pytest
from psycopg.conninfo import conninfo_to_dict
from service_helpers import BASE, Maker, cascade_form
from starlette.testclient import TestClient

from stopwise.live.stores.databases.sqlite_connection import SqliteConnection
from stopwise.service.app import make_app
from stopwise.service.cascades.forms import Call, Finished
from stopwise.service.cascades.reported_rounds import finished_of
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service

ROUNDS = "/api/v1/cascades/support/rounds"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with postgres_server.server() as server:
        yield server


@pytest.fixture
def replicas(server: Any) -> Iterator[list[tuple[TestClient, Service]]]:
    """Two services on one database, in this process."""
    parts = conninfo_to_dict(server.new_database())
    store = f"postgresql:///{parts.pop('dbname')}?{urlencode(parts)}"
    made = []
    for _ in range(2):
        cascade = cascade_form(None, ["small", "large"], mode="enforce")
        service = Service(config_of({"server": {"store": store}, "cascades": {"support": cascade}}))
        client = TestClient(make_app(service), base_url=BASE, raise_server_exceptions=False)
        client.__enter__()
        made.append((client, service))
    yield made
    for client, _ in made:
        client.__exit__(None, None, None)


def open_round(client: TestClient, outputs: tuple[str, ...] = ("a", "b")) -> str:
    """A round that goes through all its stages."""
    begun = client.post(ROUNDS, json={}).json()
    for stage, output in zip(begun["stages"], outputs, strict=False):
        told = client.post(
            f"{ROUNDS}/{begun['round']}/outputs", json={"stage": stage, "output": output}
        )
        assert told.status_code == 200, told.text
    return str(begun["round"])


def counts(service: Service) -> tuple[int, int, int]:
    """Rounds by the evidence, by the rows and by the sums."""
    cascade = service.cascades["support"]
    cascade.learner.refresh()
    rows = service.rounds.rounds("support", cascade.epoch, limit=100_000)
    return cascade.learner.rounds, len(rows), int(service.rounds.sums("support").get("rounds", 0))


def test_the_same_end_at_two_replicas_at_once(
    replicas: list[tuple[TestClient, Service]],
) -> None:
    clients = [client for client, _ in replicas]
    ends = 40
    with ThreadPoolExecutor(4) as pool:
        for _ in range(ends):
            name = open_round(clients[0])
            path = f"{ROUNDS}/{name}/end"
            told = list(
                pool.map(lambda at, path=path: clients[at % 2].post(path, json={}), range(4))
            )
            assert {answer.status_code for answer in told} == {200}
            assert len({answer.text for answer in told}) == 1
    for _, service in replicas:
        assert counts(service) == (ends, ends, ends)


def test_two_replicas_that_both_count_a_round_count_it_once(
    replicas: list[tuple[TestClient, Service]],
) -> None:
    """The worst order: both have read the open round before either has written it."""
    name = open_round(replicas[0][0])
    waiting = []
    for _, service in replicas:
        form = service.open_rounds.close("support", name, "end")
        assert form is not None
        finished = finished_of(service.cascades["support"], name, form, "", abandoned=False)
        waiting.append((service, finished))
    for service, finished in waiting:
        service.recorder.put_and_wait(finished).result(10)
    for _, service in replicas:
        assert counts(service) == (1, 1, 1)
        evidence = service.cascades["support"].learner.evidence()
        assert evidence.seen[0, 1] <= 1


def test_a_round_that_is_being_ended_is_told_nothing_more(make: Maker) -> None:
    client, service = make(api_only=True, mode="enforce")
    name = open_round(client, ())
    service.open_rounds.close("support", name, "end")
    told = client.post(f"{ROUNDS}/{name}/outputs", json={"stage": "small", "output": "a"})
    assert (told.status_code, told.json()["error"]["code"]) == (409, "round_ended")
    # Whoever was to count it is gone: the next end does.
    assert client.post(f"{ROUNDS}/{name}/end", json={}).status_code == 200
    assert counts(service) == (1, 1, 1)


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_a_round_without_outputs_is_found_again(make: Maker, mode: str) -> None:
    client, service = make(api_only=True, mode=mode, sample=0.0)
    name = open_round(client, ())
    ended = client.post(f"{ROUNDS}/{name}/end", json={})
    assert (ended.status_code, ended.json()["stage"]) == (200, None)
    shown = client.get(f"{ROUNDS}/{name}")
    assert (shown.status_code, shown.json()["state"]) == (200, "ended")
    assert client.post(f"{ROUNDS}/{name}/end", json={}).text == ended.text
    assert counts(service) == ((1, 1, 1) if mode == "enforce" else (0, 0, 0))


def test_evidence_and_rows_are_one_transaction(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever statement fails, neither is written; tried again, both are, once."""
    client, service = make(api_only=True, mode="enforce")
    plain, calls, fails_at = SqliteConnection.many, 0, 0

    def many(self: SqliteConnection, sql: str, rows: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise sqlite3.OperationalError("disk I/O error")
        plain(self, sql, rows)

    monkeypatch.setattr(SqliteConnection, "many", many)
    for fails_at in range(1, 9):
        name = open_round(client)
        assert counts(service) == (fails_at - 1,) * 3
        calls = 0
        assert client.post(f"{ROUNDS}/{name}/end", json={}).status_code == 200
        assert counts(service) == (fails_at,) * 3
    assert service.recorder.dropped == 0


def test_an_answer_to_commit_that_was_lost(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    client, service = make(api_only=True, mode="enforce")
    store = service.cascades["support"].learner._books.queue.store  # type: ignore[union-attr]
    plain, lost = store.append, [True, False, True, False]

    def append(first: int, records: Any) -> Any:
        found = plain(first, records)
        if lost and lost.pop(0):
            raise ConnectionError("the answer was lost")
        return found

    monkeypatch.setattr(store, "append", append)
    for _ in range(3):
        assert client.post(f"{ROUNDS}/{open_round(client)}/end", json={}).status_code == 200
    assert counts(service) == (3, 3, 3)


def test_alarms_are_seen_at_every_replica(replicas: list[tuple[TestClient, Service]]) -> None:
    service = replicas[0][1]
    for at in range(160):  # the stages agree, then never again
        decision = service.cascades["support"].decide()
        calls = (Call(0, "a"), Call(1, "a" if at < 80 else "b"))[: decision.depth + 1]
        service.recorder.put(Finished(decision, calls, decision.depth))
        if at % 10 == 9:  # depths are drawn from what was counted
            assert service.recorder.drain()
    for other, _ in replicas:
        report = other.get("/api/v1/cascades/support/report").json()
        assert [alarm["deep"] for alarm in report["health"]["alarms"]] == ["large"]
