"""Several replicas on one PostgreSQL: killed, cut off from the database, and exact all the same."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import postgres_server
import pytest
import replicas
from fake_upstream import FakeUpstream
from front_requests import settled
from replicas import Replica, new_store
from service_helpers import BASE
from starlette.testclient import TestClient

from patience import eventually
from stopwise.service.app import make_app
from stopwise.service.cascades.spending import today
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.database.connection import PostgresDatabase
from stopwise.service.database.grants import Grants
from stopwise.service.database.keys import Keys
from stopwise.service.database.rounds import Rounds
from stopwise.service.database.writing import Entry

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}
LIMITED = {**ASK, "max_tokens": 50}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    with postgres_server.server() as server:
        yield server


def test_what_both_databases_do_the_same(postgres: Any) -> None:
    database = PostgresDatabase(postgres.new_database())
    keys = Keys(database)
    key, text = keys.create("app", ["read", "infer"], budget=2.0)
    keys.renew()
    assert keys.find(text) == key
    rounds = Rounds(database)
    entry = Entry("r1", "c", "e", "s", time.time(), {"requests": 1, "key:a": 0.5}, True,
                  True, True, {"codes": [0, 1]}, ("asked", ["x", "y"]))  # fmt: skip
    for _ in range(3):  # an answer to COMMIT that was lost: the same batch again
        rounds.write("batch", [entry])
    assert rounds.sums("c") == {"requests": 1, "key:a": 0.5}
    assert rounds.spent_today(int(time.time() // 86400)) == {"key:a": 0.5}
    assert [item.request for item in rounds.items("c", "e")] == ["asked"]
    database.close()


def test_replicas_take_parts_of_a_budget(postgres: Any) -> None:
    """What all hold and have written never passes it; who died holds nothing."""
    database = PostgresDatabase(postgres.new_database())
    one, two, dead = Grants(database), Grants(database), Grants(database, seconds=-1.0)
    day, name = today(), "comparison:c"
    assert dead.take(name, day, 9.0, 10.0, whole=True) == 9.0
    assert dead.lapsed
    assert one.take(name, day, 1.0, 10.0, whole=True) == 1.25  # an eighth of what is left
    assert two.take(name, day, 8.0, 10.0, whole=True) == 8.0
    assert two.take("key:b", day, 8.0, 10.0, whole=True) == 8.0  # another budget
    assert one.take(name, day, 1.0, 10.0, whole=True) == 0.0
    assert one.take(name, day, 1.0, 10.0, whole=False) == 1.0  # the last one may pass it
    assert one.take(name, day, 1.0, 10.0, whole=False) == 0.0
    # What is written is no longer held, once: here a little more than was taken.
    sums = {"comparison": 8.5, "key:a": 3.0}
    entry = Entry("r", "c", "e", "s", time.time(), sums, counted=False, holder=two.holder)
    for _ in range(2):
        Rounds(database).write("batch", [entry])
    held = "SELECT replica, held FROM grants WHERE name = ? AND held <> 0 ORDER BY held"
    assert database.rows(held, (name,)) == [
        (two.holder, -0.5), (one.holder, 2.25), (dead.holder, 9.0)
    ]  # fmt: skip
    one.give_back(day, {name: 1.25})
    # 0.5 is left. Another 0.5 that is missing here is written already, and not asked for again.
    assert two.take(name, day, 1.0, 10.0, whole=True) == 1.0
    one.give_back(day, {name: None})
    assert one.take(name, day, 1.0, 10.0, whole=True) == 1.0
    assert one.take(name, day + 1, 1.0, 10.0, whole=True) == 1.25  # another day
    database.close()


def test_taking_and_writing_at_the_same_time_never_wait_for_each_other(postgres: Any) -> None:
    """Requests of two budgets are written while a part of the second one is taken."""
    database = PostgresDatabase(postgres.new_database())
    grants, day = Grants(database), today()
    for name in ("key:a", "key:b"):
        assert grants.take(name, day, 1.0, 10.0, whole=True)
    charge = "UPDATE grants SET held = held - 0.5 WHERE name = ? AND replica = ?"
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )

    def take() -> None:
        assert grants.take("key:b", day, 1.0, 10.0, whole=True)

    for ask in (take, lambda: grants.give_back(day, {"key:b": 0.5})):
        with ThreadPoolExecutor(1) as pool:
            # The order in which `write_entries` charges them.
            with database.transaction() as work:
                work.run(charge, ("key:a", grants.holder))
                asked = pool.submit(ask)
                while database.rows(waiting)[0][0] == 0:
                    assert not asked.done()
                work.run(charge, ("key:b", grants.holder))
            asked.result(30)
    database.close()


def test_requests_at_several_replicas_do_not_pass_a_budget_together(
    postgres: Any, upstream: FakeUpstream
) -> None:
    store = new_store(postgres)
    most = (len(json.dumps(LIMITED, separators=(",", ":"))) * 10 + 50 * 40) / 1e6
    with ExitStack() as stack:
        services = [fresh_service(store, upstream, sample=0.0) for _ in range(2)]
        clients = [
            stack.enter_context(TestClient(make_app(service), base_url=BASE))
            for service in services
        ]
        key, text = services[0].keys.create("app", ["infer"], budget=3.5 * most)
        for service in services:
            service.keys.renew()
        decided = threading.Event()
        upstream.answer = lambda model, body: {"until": decided}

        def ask(at: int) -> int:
            return clients[at % 2].post(
                "/v1/chat/completions", json=LIMITED, headers={"authorization": f"Bearer {text}"}
            ).status_code  # fmt: skip

        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(ask, at) for at in range(8)]
            eventually(lambda: sum(one.done() for one in asked) + len(upstream.requests) == 8, 30.0)
            decided.set()
            codes = [one.result() for one in asked]
        assert sorted(codes) == 3 * [200] + 5 * [429]
        for client, service in zip(clients, services, strict=True):
            settled(client, service)
            service.spending.settle()
        # They cost less than they might have: what is left is there for whoever asks.
        assert services[0].database.rows("SELECT * FROM grants") == []
        spent = services[0].rounds.spent_today(today())[f"key:{key.id}"]
        assert spent == pytest.approx(3 * 1800 / 1e6)
        for service in services:
            service.spending.renew(lambda: services[0].rounds.spent_today(today()))
        assert ask(0) == 200


def test_the_service_goes_on_while_the_database_is_away(
    postgres: Any, tmp_path: Path, upstream: FakeUpstream
) -> None:
    store = new_store(postgres)
    replica = Replica(tmp_path, store, upstream.url)

    async def ask(count: int) -> list[int]:
        async with aiohttp.ClientSession() as session:

            async def one() -> int:
                async with session.post(f"{replica.url}/v1/chat/completions", json=ASK) as answer:
                    return answer.status

            return await asyncio.gather(*(one() for _ in range(count)))

    async def post(path: str) -> tuple[int, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{replica.url}{path}", json={}) as answer,
        ):
            return answer.status, await answer.json()

    try:
        assert set(asyncio.run(ask(10))) == {200}
        postgres.stop("immediate")
        try:
            # Models are asked and answered; what needs the store says so.
            assert set(asyncio.run(ask(10))) == {200}
            status, body = asyncio.run(post("/api/v1/cascades/support/rounds"))
            assert (status, body["error"]["code"]) == (503, "store_unavailable")
        finally:
            postgres.start()
        assert set(asyncio.run(ask(10))) == {200}
    finally:
        replica.stop()
    service = fresh_service(store, upstream)
    # What was answered while it was away was written later, once.
    assert service.rounds.sums("support")["rounds"] == 30
    assert service.cascades["support"].learner.rounds == 30
    close(service)


def test_rounds_per_item_are_walked_at_two_replicas_and_counted_once(postgres: Any) -> None:
    """Begun at one, reported at the other, ended at both at once: transitions count every one."""
    store = new_store(postgres)
    stages = [{"name": "s0", "cost": 0.2}, {"name": "s1", "cost": 2.0}]
    cascade = {"policy": "per-item", "mode": "enforce", "mistake_cost": 20.0, "stages": stages}
    form = {"server": {"store": store}, "cascades": {"support": cascade}}
    path, count = "/api/v1/cascades/support/rounds", 60
    with ExitStack() as stack:
        services = [Service(config_of(form)) for _ in range(2)]
        one, two = (
            stack.enter_context(TestClient(make_app(service), base_url=BASE))
            for service in services
        )
        pool = stack.enter_context(ThreadPoolExecutor(8))

        def play(number: int) -> str:
            here, there = (one, two) if number % 2 else (two, one)
            found = here.post(path, json={}).json()
            while found["next"]:
                at = int(found["next"][0][1:])
                output = "yes" if number % 3 or at else "no"
                body = {"stage": f"s{at}", "output": output, "confidence": float(number % 3)}
                found = there.post(f"{path}/{found['round']}/outputs", json=body).json()
                here, there = there, here
            ends = [
                pool.submit(client.post, f"{path}/{found['round']}/end") for client in (one, two)
            ]
            replies = {end.result().text for end in ends}
            assert len(replies) == 1
            return replies.pop()

        with ThreadPoolExecutor(6) as players:
            assert len(set(players.map(play, range(count)))) == count
        for service in services:
            service.cascades["support"].learner.refresh()
            learner = service.cascades["support"].learner
            sums = service.rounds.sums("support")
            assert learner.transitions is not None
            assert learner.rounds == learner.transitions.rounds == sums["rounds"] == count
            assert learner.evidence().seen[0, 1] == sums["seen:0:1"] == sums["full_runs"]
            assert sums["full_runs"] + sums.get("decided", 0) == count


def fresh_service(store: str, upstream: FakeUpstream, **more: Any) -> Service:
    """The same cascade, to look at what is in the store."""
    stages = [
        {"name": name, "base_url": upstream.url, "model": name,
         "price": {"input": price, "output": 4 * price}}
        for name, price in (("small", 1), ("large", 10))
    ]  # fmt: skip
    cascade = {"mistake_cost": 0.01, "stages": stages, **more}
    return Service(config_of({"server": {"store": store}, "cascades": {"support": cascade}}))


def close(service: Service) -> None:
    for cascade in service.cascades.values():
        cascade.close()
    service.database.close()


def test_three_replicas_killed_and_cut_off_count_every_round_once() -> None:
    """The small form of `benchmarks/replicas.py`, which docs/service/deployment.md has figures of.

    Rows, sums and evidence never differ; an end that was acknowledged is never lost; answers whose
    rounds are lost in a kill were given within one flush interval, a tenth of a second, also where
    the database was stopped at that time. The clock is that of the clients, whose turn comes much
    later on a machine that is busy with other tests: the interval itself is tested in
    `test_held_answers.py`.
    """
    found = replicas.run(450, replicas.Plan(kills=1, stops=1, both=1), concurrency=12)
    assert found.problems == ()
    assert found.answered + found.ended == 450
    assert found.ended > 0 == found.ended_lost
    assert found.rows == found.summed == found.counted
    assert found.answered + found.ended - found.rows <= found.lost
    assert found.window_lost <= 1.0
    assert found.window_while_stopped <= 1.0
