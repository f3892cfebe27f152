"""Attacks: nothing gets through, nothing leaks, the service goes on."""

from __future__ import annotations

import asyncio
import io
import itertools
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

from stopwise.checks import StopwiseError
from stopwise.service.config.reading import config_of
from stopwise.service.http.logs import JsonLines

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}
Live = Callable[..., Any]

# Connections are cut on purpose here: Python may complain of one when it frees it, at any moment.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


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
    """What a client sends as its id or segment never becomes a header of the response."""
    server = live(segment_by="header:x-segment", mode="shadow", sample=0.0)
    body = json.dumps(ASK).encode()
    names = (b"x-request-id", b"x-segment", b"x-stopwise-conversation")
    ends = (b"\r\n", b"\n", b"\r", b"\r\n ", b"\0", b"%0d%0a")
    for name, end in itertools.product(names, ends):
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        head += b"content-length: %d\r\n" % len(body)
        got, _ = raw(server.url, head + name + b": a" + end + b"set-cookie: x=1\r\n\r\n" + body)
        headers = got.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
        assert not [line for line in headers if line.startswith(b"set-cookie")], (name, got)
        assert not [line for line in headers if b"x=1" in line], (name, got)
    assert alive(server.url)


def test_hundreds_of_half_sent_headers_leave_room_for_others(live: Live) -> None:
    server = live(server={"header_seconds": 2.0})
    host, port = server.url.removeprefix("http://").split(":")
    half = []
    try:
        for _ in range(300):
            one = socket.create_connection((host, int(port)), timeout=5)
            one.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-a: ")
            half.append(one)
        assert alive(server.url)
        end = time.monotonic() + 60
        left = half[:]
        while left and time.monotonic() < end:
            left = [one for one in left if not _closed(one)]
        assert not left  # cut off, every one
    finally:
        for one in half:
            one.close()
    assert alive(server.url)


def _closed(one: socket.socket) -> bool:
    one.settimeout(0.02)
    try:
        return one.recv(4096) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_a_body_that_drips_is_cut_off(live: Live) -> None:
    """A byte now and then does not start the time again."""
    server = live(server={"body_seconds": 1.0})
    host, port = server.url.removeprefix("http://").split(":")
    began, got = time.monotonic(), b""
    with socket.create_connection((host, int(port)), timeout=0.2) as one:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        one.sendall(head + b"content-length: 500\r\n\r\n")
        while time.monotonic() - began < 6 and b"slow_body" not in got:
            try:
                one.sendall(b" ")
                got += one.recv(4096)
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
    assert b" 408 " in got.split(b"\r\n")[0]
    assert time.monotonic() - began < 5
    assert alive(server.url)


def test_script_in_answers_and_names_is_text(make: Maker, upstream: FakeUpstream) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: evil + model
    body = {"model": "support", "messages": [{"role": "user", "content": evil}]}
    client.post("/v1/chat/completions", json=body)
    service.keys._known.clear()
    end = time.monotonic() + 30
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


def test_script_in_names_is_text_or_refused(make: Maker, upstream: FakeUpstream) -> None:
    """The name of a key may be any text; those of segments, conversations, cascades are checked."""
    evil = "<script>alert(1)</script>"
    client, service = make(segment_by="header:x-segment", mode="shadow", sample=1.0)
    service.keys.create(evil, ["read"])
    _, admin = service.keys.create("boss", ["admin"])
    service.keys.renew()
    client.headers["authorization"] = f"Bearer {admin}"
    shown = client.get("/ui/keys", headers={"sec-fetch-site": "same-origin"})
    assert "&lt;script&gt;alert(1)" in shown.text
    assert evil not in shown.text
    refused = client.post("/v1/chat/completions", json=ASK, headers={"x-segment": evil})
    assert refused.status_code == 400
    begun = client.post("/api/v1/cascades/support/rounds", json={"segment": evil})
    assert begun.status_code == 422
    for path in (f"/ui/c/{evil}", "/ui/c/support?segment=" + evil):
        assert evil not in client.get(path).text
    with pytest.raises(StopwiseError, match="cascades"):
        config_of({"cascades": {evil: {}}})


def test_forged_keys_get_nothing(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="shadow", sample=0.0)  # nothing is compared
    key, text = service.keys.create("app", ["infer"])
    other, _ = service.keys.create("boss", ["admin"])
    service.keys.renew()
    secret = text.rsplit("-", 1)[1]
    forged = [
        "", "Bearer", "Bearer ", f"Bearer sk-sw-{other.id}-{secret}", f"Basic {text}",
        f"Bearer {text}0", f"Bearer {text[:-1]}", f"Bearer sk-sw-{key.id}-", f"Bearer {secret}",
        f"Bearer {text.upper()}", f"Bearer sk-sw--{secret}", f"Bearer sk-sw-' OR 1=1--{secret}",
    ]  # fmt: skip
    paths = ("/v1/models", "/metrics", "/api/v1/cascades/support/report")
    for value in forged:
        for path in paths:
            answer = client.get(path, headers={"authorization": value})
            assert answer.status_code == 401, (value, path)
        asked = client.post("/v1/chat/completions", json=ASK, headers={"authorization": value})
        assert asked.status_code == 401
    for cookie in ("", "x", secret, key.id, other.id):
        page = client.get(
            "/ui/", headers={"cookie": f"stopwise_session={cookie}"}, follow_redirects=False
        )
        assert page.status_code == 303
    # What a good key may not do stays shut too.
    good = {"authorization": f"Bearer {text}"}
    assert client.get("/metrics", headers=good).status_code == 403
    assert client.post("/v1/chat/completions", json=ASK, headers=good).status_code == 200
    assert len(upstream.requests) == 1


def test_a_flood_of_segments_ends_in_one(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(segment_by="header:x-segment", mode="shadow", sample=1.0, max_segments=3)
    for at in range(40):
        asked = client.post("/v1/chat/completions", json=ASK, headers={"x-segment": f"s{at}"})
        assert asked.status_code == 200
    end = time.monotonic() + 30
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    assert service.recorder.drain()
    cascade = service.cascades["support"]
    assert set(cascade.learner.segments) == {"s0", "s1", "s2", "other"}
    assert set(service.rounds.segments("support", cascade.epoch)) == {"s0", "s1", "s2", "other"}


def test_a_client_names_no_upstream_and_hands_on_no_header(
    make: Maker, upstream: FakeUpstream
) -> None:
    """Where a request goes and with which key stands in the file alone."""
    client, service = make(mode="shadow", sample=1.0)
    _, text = service.keys.create("app", ["infer"])
    service.keys.renew()
    evil = "http://evil.example/v1"
    named = {"base_url": evil, "api_base": evil, "api_key": "mine", "extra_headers": {"a": "b"}}
    headers = {
        "authorization": f"Bearer {text}", "x-base-url": evil, "x-forwarded-host": "evil.example",
        "forwarded": "host=evil.example", "cookie": "a=b", "x-api-key": "mine",
    }  # fmt: skip
    for body in ({**ASK, **named}, {**ASK, "stream": True}):
        assert client.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
    for model in (evil, f"support/{evil}", "support/../other", "large"):
        asked = client.post("/v1/chat/completions", json={**ASK, "model": model}, headers=headers)
        assert asked.status_code == 404, model
    assert set(upstream.models()) == {"small", "large"}
    refused = {"cookie", "x-base-url", "x-forwarded-host", "forwarded", "x-api-key"}
    for sent, _ in upstream.requests:
        assert not refused & {name.lower() for name in sent}
        assert text not in str(sent)


def test_other_sites_change_nothing(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make()
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},  # an address that never ends
        {"origin": "http://evil.example", "sec-fetch-site": "none"},  # an extension of a browser
    ):
        for path in ("/v1/chat/completions", "/api/v1/cascades/support/rounds"):
            assert client.post(path, json=ASK, headers=headers).status_code == 403
        mode = {"mode": "enforce", "reason": "x"}
        switched = client.put("/api/v1/cascades/support/mode", json=mode, headers=headers)
        assert switched.status_code == 403
        form = client.post("/ui/c/support/mode", data=mode, headers=headers)
        assert form.status_code == 403
    # A form comes from a page: what does not say which is refused.
    assert client.post("/ui/c/support/mode", data=mode).status_code == 403
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

    def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("password hunter2")

    monkeypatch.setattr(service.rounds, "sums", broken)
    answer = client.get("/api/v1/cascades/support/report")
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.json()["error"]["type"] == "server_error"
