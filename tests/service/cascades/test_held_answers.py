"""A killed process loses the answers of one flush interval at most, however slow the store is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import numpy as np
import pytest
from fake_upstream import FakeUpstream
from service_helpers import Maker

from patience import in_some_run
from stopwise.service.cascades import holding
from stopwise.service.cascades.holding import HeldAnswers
from stopwise.service.database.connection import StoreUnavailableError

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}
Live = Callable[..., Any]


class SlowWriter:
    """Stands before the writing of a recorder: holds it up, or lets it fail."""

    def __init__(self, recorder: Any) -> None:
        self._write = recorder._write
        recorder._write = self
        self.open = threading.Event()
        self.open.set()
        self.fails = False

    def __call__(self, batch: Any) -> None:
        if self.fails:
            raise OSError("the store is away")
        self.open.wait(20)
        self._write(batch)


async def answers(url: str, seconds: float, body: dict[str, Any], at_once: int = 4) -> list[float]:
    """When each answer came, asked one after the other by a few clients for some time."""
    found: list[float] = []
    end = time.monotonic() + seconds

    async def ask(session: aiohttp.ClientSession) -> None:
        while True:
            async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
                assert reply.status == 200
                await reply.read()
            found.append(time.monotonic())
            if time.monotonic() >= end:
                return

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(ask(session) for _ in range(at_once)))
    return sorted(found)


@pytest.mark.parametrize("streamed", [False, True])
def test_answers_wait_while_what_was_answered_before_is_not_written(
    live: Live, streamed: bool
) -> None:
    server = live(mode="shadow", sample=1.0, server={"flush_seconds": 0.2})
    writer = SlowWriter(server.service.recorder)
    body = {**ASK, "stream": streamed}
    asyncio.run(answers(server.url, 0.3, body))
    held = server.service.recorder.held
    let_go: list[float] = []
    wait = held.wait

    async def noted() -> None:
        await wait()
        let_go.append(time.monotonic())

    held.wait = noted

    def check() -> None:
        assert server.service.recorder.drain()
        let_go.clear()
        writer.open.clear()
        opening = threading.Timer(0.8, writer.open.set)
        began = time.monotonic()
        opening.start()
        times = asyncio.run(answers(server.url, 0.7, body))
        opening.join()
        # Whatever left before the store wrote again left within one interval. The clock is that of
        # the service: clients of a busy machine may hear of it later.
        lost = sorted(at for at in let_go if at < began + 0.75)
        assert lost
        assert lost[-1] - lost[0] <= 0.2 + 0.05
        assert times[-1] - began >= 0.8  # the others had to wait, and came
        assert server.service.recorder.drain()
        assert server.service.cascades["support"].learner.rounds >= len(times)

    in_some_run(check)


def test_answers_leave_while_the_store_is_away(live: Live) -> None:
    server = live(mode="shadow", sample=1.0)
    writer = SlowWriter(server.service.recorder)
    writer.fails = True
    assert asyncio.run(answers(server.url, 0.5, ASK))  # it fails now, and is known to
    held = server.service.recorder.held
    waited: list[float] = []
    wait = held.wait

    async def timed() -> None:
        began = time.monotonic()
        await wait()
        waited.append(time.monotonic() - began)

    held.wait = timed
    assert len(asyncio.run(answers(server.url, 0.3, ASK))) >= 4
    assert np.median(waited) < 0.5  # one that is held waits for a second
    writer.fails = False
    assert server.service.recorder.drain()


def test_answers_are_refused_while_the_store_is_away_if_the_file_says_so(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = make(mode="shadow", sample=1.0, server={"store_away": "refuse"})
    writer = SlowWriter(service.recorder)
    assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    writer.fails = True
    client.post("/v1/chat/completions", json=ASK)
    end = time.monotonic() + 30
    while service.store_error is None and time.monotonic() < end:
        time.sleep(0.01)
    while service._tasks and time.monotonic() < end:  # what is compared is asked for a little later
        client.get("/healthz")
    asked = len(upstream.requests)
    for path, body in (
        ("/v1/chat/completions", ASK),
        ("/v1/chat/completions", {**ASK, "stream": True}),
        ("/v1/decisions", {"model": "support", "kind": "predicate", "input": "is it so?"}),
    ):
        refused = client.post(path, json=body)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "store_unavailable"
        assert refused.headers["retry-after"] == "1"
    assert len(upstream.requests) == asked  # no model was paid for nothing
    writer.fails = False
    assert service.recorder.drain()
    assert client.post("/v1/chat/completions", json=ASK).status_code == 200


def test_how_long_an_answer_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = 0.5
    for limit in ("LATE", "PATIENCE"):
        monkeypatch.setattr(holding, limit, 60.0)  # so that stalls are told from waiting

    async def waited(held: HeldAnswers) -> float:
        began = time.monotonic()
        await held.wait()
        return time.monotonic() - began

    def now() -> float:
        return behind

    assert asyncio.run(waited(HeldAnswers(1.0, now, now, lambda: False))) < 30
    assert asyncio.run(waited(HeldAnswers(0.1, now, now, lambda: True))) < 30  # the store is away

    async def released() -> float:
        nonlocal behind
        held = HeldAnswers(0.1, now, now, lambda: False)
        began = time.monotonic()
        waiting = asyncio.create_task(held.wait())
        await asyncio.sleep(0.01)
        behind = 0.0
        held.release()
        await waiting
        return time.monotonic() - began

    assert asyncio.run(released()) < 30
    monkeypatch.setattr(holding, "LATE", 1.0)
    asked = time.monotonic()

    def since() -> float:
        return 0.2 + time.monotonic() - asked

    assert asyncio.run(waited(HeldAnswers(0.1, since, since, lambda: False))) < 30
    assert since() > 1.0
    behind = 0.5
    monkeypatch.setattr(holding, "PATIENCE", 0.1)
    strict = HeldAnswers(0.1, now, now, lambda: True, "refuse")
    with pytest.raises(StoreUnavailableError, match="cannot be counted now"):
        asyncio.run(waited(strict))


def test_answers_wait_for_a_store_that_is_far_behind_but_goes_on_writing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a kill costs answers of more than one interval: the store is behind, not away."""
    monkeypatch.setattr(holding, "PATIENCE", 0.3)

    async def waited(behind: float, silent: float) -> float:
        began = time.monotonic()
        await HeldAnswers(0.1, lambda: behind, lambda: silent, lambda: False).wait()
        return time.monotonic() - began

    assert asyncio.run(waited(behind=3.0, silent=0.02)) >= 0.3
    monkeypatch.setattr(holding, "PATIENCE", 60.0)
    assert asyncio.run(waited(behind=3.0, silent=3.0)) < 30


def test_a_recorder_that_writes_is_not_silent(make: Maker) -> None:
    client, service = make(mode="shadow", sample=1.0)
    writer = SlowWriter(service.recorder)
    recorder = service.recorder
    recorder._answered = time.monotonic() - 60
    writer.open.clear()
    client.post("/v1/chat/completions", json=ASK)
    end = time.monotonic() + 20
    while not recorder.waiting and time.monotonic() < end:
        client.get("/healthz")
    assert 0 < recorder.silent <= recorder.behind < 60  # nothing waited before
    writer.open.set()
    assert recorder.drain()
    recorder._oldest = time.monotonic() - 60  # far behind, but something was just written
    assert recorder.silent < 30 < recorder.behind
    recorder._oldest = None
