"""Bodies that do not come: they keep nobody else waiting."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from service_helpers import Maker

from stopwise.openai.errors import ProtocolError
from stopwise.service.http import incoming
from stopwise.service.http.incoming import KNOWN, IncomingBodies

# Connections are cut on purpose here: Python may complain of one when it frees it, at any moment.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


def status_of(url: str, data: bytes) -> int:
    """The status of what comes back for these bytes."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as one:
        one.sendall(data)
        return int(one.recv(65536).split(b" ")[1])


def post(path: str, body: bytes, length: int, *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {length}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


@contextmanager
def begun(url: str, number: int, data: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent this and send nothing more."""
    host, port = url.removeprefix("http://").split(":")
    held = []
    try:
        for _ in range(number):
            held.append(socket.create_connection((host, int(port)), timeout=10))
            held[-1].sendall(data)
        yield held
    finally:
        for one in held:
            one.close()


def asked(*lines: str) -> bytes:
    body = json.dumps(ASK).encode()
    return post("/v1/chat/completions", body, len(body), "connection: close", *lines)


def wait_until_open(server: Any, number: int) -> None:
    end = time.monotonic() + 20
    while server.service.metrics.open._value.get() < number and time.monotonic() < end:
        time.sleep(0.01)


def test_bodies_that_do_not_come_leave_room_for_those_that_do(
    live: Any, upstream: FakeUpstream
) -> None:
    server = live(server={"max_requests": 8}, mode="shadow", sample=0.0)
    slow = post("/v1/chat/completions", b"{", 500)
    with begun(server.url, 12, slow) as held:
        wait_until_open(server, 8)
        assert status_of(server.url, HEALTH) == 200
        end = time.monotonic() + 20
        # After a second the one that waits for longest makes room.
        while (found := status_of(server.url, asked())) != 200 and time.monotonic() < end:
            assert found == 503
        assert found == 200
        assert b" 408 " in held[0].recv(4096).split(b"\r\n")[0]


def test_strangers_hold_few_places(live: Any, upstream: FakeUpstream) -> None:
    """The login is the one form that can be sent without a key."""
    server = live(server={"max_requests": 60}, mode="shadow", sample=0.0)
    _, text = server.service.keys.create("app", ["infer"])
    server.service.keys.renew()
    form = post("/ui/login", b"key=", 500, "sec-fetch-site: same-origin")
    with begun(server.url, 70, form) as held:
        assert b" 408 " in held[0].recv(4096).split(b"\r\n")[0]
        assert status_of(server.url, HEALTH) == 200
        assert status_of(server.url, asked(f"authorization: Bearer {text}")) == 200
        # Without a key a body is not waited for at all.
        assert status_of(server.url, post("/v1/chat/completions", b"{", 500)) == 401


def test_more_half_sent_headers_than_requests_are_taken_leave_room_for_others(live: Any) -> None:
    server = live(server={"header_seconds": 20.0})
    with begun(server.url, 2200, b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-a: "):
        assert status_of(server.url, HEALTH) == 200


def test_a_strangers_body_is_short(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=0.0)
    long = {**ASK, "messages": [{"role": "user", "content": "x" * 20_000}]}
    assert client.post("/v1/chat/completions", json=long).status_code == 200
    service.keys.create("app", ["infer"])
    service.keys.renew()
    own = {"sec-fetch-site": "same-origin"}
    refused = client.post("/ui/login", data={"key": "x" * 20_000}, headers=own)
    assert refused.status_code == 413


def test_a_body_that_drips_is_the_oldest_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_PATIENCE", 0.0)

    async def never() -> Any:
        await asyncio.Event().wait()

    async def run() -> list[str]:
        bodies = IncomingBodies(1000, 100.0)
        scope: Any = {"headers": [], "state": {KNOWN: True}}
        drops = asyncio.Queue[dict[str, Any]]()
        ended: list[str] = []

        async def read(name: str, receive: Any) -> None:
            limited = bodies.limited(scope, receive)
            try:
                while (await limited()).get("more_body"):
                    pass
            except ProtocolError as error:
                ended.append(f"{name} {error.status}")

        tasks = [asyncio.create_task(read("drips", drops.get))]
        await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(read("waits", never)))
        await asyncio.sleep(0.01)
        drops.put_nowait({"body": b" ", "more_body": True})
        await asyncio.sleep(0.01)
        assert bodies.make_room()
        await asyncio.sleep(0.01)
        assert bodies.make_room()
        await asyncio.gather(*tasks)
        assert not bodies.make_room()
        return ended

    assert asyncio.run(run()) == ["drips 408", "waits 408"]
