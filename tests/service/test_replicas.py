"""Several replicas on one PostgreSQL: killed, cut off from the database, and exact all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from fake_upstream import FakeUpstream
from psycopg.conninfo import conninfo_to_dict

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import postgres_server

from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.database.connection import PostgresDatabase
from stopwise.service.database.keys import Keys
from stopwise.service.database.rounds import Rounds
from stopwise.service.database.writing import Entry

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}
CONFIG = """
[server]
listen = "127.0.0.1:{port}"
store = "{store}"
log_level = "error"
[cascades.support]
mode = "advise"
mistake_cost = 0.01
[[cascades.support.stages]]
name = "small"
base_url = "{url}"
model = "small"
price = {{ input = 1, output = 4 }}
[[cascades.support.stages]]
name = "large"
base_url = "{url}"
model = "large"
price = {{ input = 10, output = 40 }}
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    with postgres_server.server() as server:
        yield server


def new_store(postgres: Any) -> str:
    """A database of its own, as a configuration names it."""
    parts = conninfo_to_dict(postgres.new_database())
    name = parts.pop("dbname")
    return f"postgresql:///{name}?{urlencode(parts)}"


class Replica:
    """One process of the service."""

    def __init__(self, folder: Path, store: str, url: str) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        self._path = folder / f"{self.port}.toml"
        self._path.write_text(CONFIG.format(port=self.port, store=store, url=url))
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stopwise", "serve", str(self._path)],
            stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"},
        )  # fmt: skip
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "answers" in line, line

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                self.kill()


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


def fresh_service(store: str, upstream: FakeUpstream) -> Service:
    """The same cascade, to look at what is in the store."""
    stages = [
        {"name": name, "base_url": upstream.url, "model": name,
         "price": {"input": price, "output": 4 * price}}
        for name, price in (("small", 1), ("large", 10))
    ]  # fmt: skip
    cascade = {"mistake_cost": 0.01, "stages": stages}
    return Service(config_of({"server": {"store": store}, "cascades": {"support": cascade}}))


def close(service: Service) -> None:
    for cascade in service.cascades.values():
        cascade.close()
    service.database.close()


def test_three_replicas_share_what_they_learn(
    postgres: Any, tmp_path: Path, upstream: FakeUpstream
) -> None:
    """Requests over three replicas while one is killed and started again: nothing counts twice."""
    store = new_store(postgres)
    replicas = [Replica(tmp_path, store, upstream.url) for _ in range(3)]
    try:
        answered = asyncio.run(_load(replicas, 240))
    finally:
        for replica in replicas:
            replica.stop()
    service = fresh_service(store, upstream)
    learner = service.cascades["support"].learner
    rows = service.rounds.rounds("support", service.cascades["support"].epoch, limit=5000)
    sums = service.rounds.sums("support")
    # Every row once; sums, rows and evidence never differ, for they are written together. Missing
    # is at most what one flush interval of the killed replica holds.
    assert len({row.id for row in rows}) == len(rows) == sums["rounds"] == learner.rounds
    assert len(rows) <= answered["sent"]
    assert answered["ok"] - len(rows) <= answered["lost_at_most"]
    assert answered["improper"] == 0
    evidence = learner.evidence()
    assert evidence.seen[0, 1] == evidence.disagreed[0, 1] <= learner.rounds
    close(service)


async def _load(replicas: list[Replica], count: int) -> dict[str, int]:
    """Send requests to the replicas in turn; kill one in the middle and start it again."""
    found = {"sent": 0, "ok": 0, "improper": 0, "lost_at_most": 0}
    per_second: list[float] = []

    async def one(session: aiohttp.ClientSession, at: int) -> None:
        for attempt in range(4):
            replica = replicas[(at + attempt) % len(replicas)]
            try:
                found["sent"] += 1
                async with session.post(f"{replica.url}/v1/chat/completions", json=ASK) as answer:
                    body = await answer.json()
                    if answer.status == 200:
                        found["ok"] += 1
                        per_second.append(time.monotonic())
                        return
                    if "error" not in body:
                        found["improper"] += 1
            except (aiohttp.ClientError, ConnectionError):
                continue  # the killed one: a client tries another replica

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        half = count // 2
        for start in range(0, half, 12):
            await asyncio.gather(*(one(session, start + at) for at in range(12)))
        moment = time.monotonic()
        await asyncio.to_thread(replicas[0].kill)
        # The recorder's interval is a tenth of a second; on a machine that is busy with other
        # tests a thread may wait for its turn as long again.
        found["lost_at_most"] = sum(at > moment - 2.0 for at in per_second)
        for start in range(half, count, 12):
            await asyncio.gather(*(one(session, start + at) for at in range(12)))
        await asyncio.to_thread(replicas[0].start)
        await asyncio.gather(*(one(session, at) for at in range(12)))
    return found
