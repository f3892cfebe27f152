"""Attacks: nothing gets through, nothing leaks, the service goes on."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from fake_upstream import FakeUpstream
from service_helpers import Maker

from stopwise.service.http.logs import JsonLines

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}
Live = Callable[..., Any]


def raw(url: str, data: bytes, *, wait: float = 10.0) -> tuple[bytes, float]:
    """Send bytes, then read until the other side closes; the seconds that took."""
    host, port = url.removeprefix("http://").split(":")
    began = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=wait) as one:
        one.sendall(data)
        got = b""
        try:
            while part := one.recv(65536):
                got += part
        except (TimeoutError, ConnectionResetError):
            pass
    return got, time.monotonic() - began


def alive(url: str) -> bool:
    got, _ = raw(url, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    return b'"ok"' in got


def test_half_sent_headers_are_cut_off(live: Live) -> None:
    server = live(server={"header_seconds": 1.0})
    got, seconds = raw(server.url, b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-a:")
    assert got in (b"",) or got.startswith(b"HTTP/1.1 4")
    assert seconds < 5
    assert alive(server.url)


def test_slow_bodies_are_cut_off(live: Live) -> None:
    server = live(server={"body_seconds": 0.5})
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 500\r\n"
    got, seconds = raw(server.url, head + b"connection: close\r\n\r\n{")
    assert b" 408 " in got.split(b"\r\n")[0]
    assert b"slow_body" in got
    assert seconds < 5
    assert alive(server.url)


@pytest.mark.parametrize("declared", [True, False])
def test_bodies_of_100_mb_are_refused(live: Live, declared: bool) -> None:
    server = live(server={"max_body": 100_000})

    async def send() -> int:
        async def endless() -> Any:
            for _ in range(1600):
                yield b"x" * 65536

        async with aiohttp.ClientSession() as session:
            data = io.BytesIO(b"x" * 100_000_000) if declared else endless()
            try:
                async with session.post(f"{server.url}/v1/chat/completions", data=data) as answer:
                    return answer.status
            except (aiohttp.ClientError, ConnectionError):
                return 413  # closed while we were still sending

    began = time.monotonic()
    assert asyncio.run(send()) == 413
    assert time.monotonic() - began < 20
    assert alive(server.url)


def test_too_many_at_once(live: Live, upstream: FakeUpstream) -> None:
    server = live(server={"max_requests": 5})
    upstream.answer = lambda model, body: {"hang": 0.5}

    async def many() -> list[int]:
        async with aiohttp.ClientSession() as session:

            async def one() -> int:
                async with session.post(f"{server.url}/v1/chat/completions", json=ASK) as answer:
                    return answer.status

            return await asyncio.gather(*(one() for _ in range(20)))

    codes = asyncio.run(many())
    assert set(codes) == {200, 503}
    assert alive(server.url)


def test_header_injection(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(segment_by="header:x-segment", mode="shadow", sample=0.0)
    for value in ("a\tb", "a b", "é".encode("latin-1").decode("latin-1"), "a" * 101):
        answer = client.post(
            "/v1/chat/completions", json=ASK, headers={"x-segment": value.encode("latin-1")}
        )
        assert answer.status_code == 400
    # An id of our own where the client's is not one.
    echoed = client.get("/healthz", headers={"x-request-id": "a b<script>"})
    assert echoed.headers["x-request-id"] != "a b<script>"
    assert client.get("/healthz", headers={"x-request-id": "abc-1"}).headers[
        "x-request-id"
    ] == "abc-1"  # fmt: skip


def test_raw_header_injection(live: Live) -> None:
    server = live()
    got, _ = raw(
        server.url,
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-request-id: a\r\n set-cookie: x=1\r\n"
        b"connection: close\r\n\r\n",
    )
    assert b"set-cookie" not in got.lower().split(b"\r\n\r\n")[0].replace(b"x-request-id", b"")
    assert alive(server.url)


def test_script_in_answers_and_names_is_text(make: Maker, upstream: FakeUpstream) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: evil + model
    body = {"model": "support", "messages": [{"role": "user", "content": evil}]}
    client.post("/v1/chat/completions", json=body)
    service.keys._known.clear()
    end = time.monotonic() + 5
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    service.recorder.drain()
    own = {"sec-fetch-site": "same-origin"}
    pages = [route.path for route in client.app.routes if route.path.startswith("/ui")]  # type: ignore[attr-defined]
    for path in pages:
        if "{" in path.replace("{cascade}", "") or path == "/ui/static":
            continue
        page = client.get(path.replace("{cascade}", "support"), headers=own)
        assert evil not in page.text, path
        assert "<img src=x" not in page.text, path
        assert "default-src 'self'" in page.headers["content-security-policy"]
    missing = client.post("/v1/chat/completions", json={**ASK, "model": evil})
    assert missing.headers["content-type"] == "application/json"
    assert missing.headers["x-content-type-options"] == "nosniff"


def test_other_sites_change_nothing(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make()
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
    ):
        for path in ("/v1/chat/completions", "/api/v1/cascades/support/rounds"):
            assert client.post(path, json=ASK, headers=headers).status_code == 403
        mode = {"mode": "enforce", "reason": "x"}
        switched = client.put("/api/v1/cascades/support/mode", json=mode, headers=headers)
        assert switched.status_code == 403
    assert service.cascades["support"].mode == "shadow"
    assert upstream.requests == []


def test_logs_hold_neither_bodies_nor_keys(
    make: Maker, upstream: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    client, service = make(mode="shadow", sample=1.0)
    _, text = service.keys.create("app", ["admin"])
    service.keys.renew()
    caplog.set_level(logging.DEBUG)
    upstream.answer = lambda model, body: "marmalade answer"
    body = {"model": "support", "messages": [{"role": "user", "content": "marmalade question"}]}
    headers = {"authorization": f"Bearer {text}"}
    client.post("/v1/chat/completions", json=body, headers=headers)
    client.post("/v1/chat/completions", content=b"{marmalade", headers=headers)
    client.get(f"/marmalade/{text}", headers=headers)
    upstream.answer = lambda model, body: {"status": 500, "error": {"message": "marmalade"}}
    client.post("/v1/chat/completions", json=body, headers=headers)
    service.cascades["support"].learner.close()  # now counting fails, loudly
    client.post("/v1/chat/completions", json=body, headers=headers)
    service.recorder.drain()
    lines = [
        JsonLines().format(record)
        for record in caplog.records
        if record.name.startswith("stopwise")
    ]
    assert len(lines) >= 5
    whole = "\n".join(lines)
    assert "marmalade" not in whole
    assert text not in whole
    assert text.rsplit("-", 1)[1] not in whole
    first = json.loads(lines[0])
    assert first["message"] == "request"
    assert first["status"] == 200
    assert first["cascade"] == "support"
    assert len(first["round"]) == 32


def test_a_fault_tells_the_client_nothing(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    client, service = make()

    def broken(*args: Any) -> Any:
        raise RuntimeError("password hunter2")

    monkeypatch.setattr(service.rounds, "sums", broken)
    answer = client.get("/api/v1/cascades/support/report")
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.json()["error"]["type"] == "server_error"
