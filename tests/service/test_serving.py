"""The command itself, as a process: starts, answers, stops without losing anything."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stopwise.checks import StopwiseError
from stopwise.cli import build_app
from stopwise.service.example import running
from stopwise.service.example.texts import read_texts
from stopwise.service.serving import until_signal

CONFIG = """
[server]
listen = "{listen}"
store = "sqlite:///s.db"
[cascades.c]
mistake_cost = 1
stages = [{{ name = "a", cost = 1 }}, {{ name = "b", cost = 2 }}]
"""


def config(tmp_path: Path, listen: str) -> str:
    path = tmp_path / "c.toml"
    path.write_text(CONFIG.format(listen=listen))
    return str(path)


def refused(tmp_path: Path, listen: str) -> str:
    """What the command says that does not begin to serve."""
    command = ["serve", config(tmp_path, listen)]
    with pytest.raises(StopwiseError) as error:
        CliRunner().invoke(build_app(), command, catch_exceptions=False)
    return str(error.value)


def start(tmp_path: Path, listen: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "stopwise", "serve", config(tmp_path, listen)],
        stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"},
    )  # fmt: skip


def test_the_first_stream_loads_nothing(tmp_path: Path) -> None:
    """A module that is loaded while requests wait holds all of them up."""
    code = f"""
import asyncio, sys
from pathlib import Path
from starlette.responses import StreamingResponse
from stopwise.service.app import make_app
from stopwise.service.config.reading import read_config
from stopwise.service.core import Service

async def chunks():
    yield b"one"

async def nothing(*message):
    await asyncio.sleep(0)
    return {{"type": "http.disconnect"}}

async def main():
    app = make_app(Service(read_config(Path({config(tmp_path, "127.0.0.1:1")!r}))))
    async with app.router.lifespan_context(app):
        before = set(sys.modules)
        await StreamingResponse(chunks())({{"type": "http"}}, nothing, nothing)
        print(sorted(set(sys.modules) - before))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_serve_starts_answers_and_stops(tmp_path: Path, free_port: int) -> None:
    process = start(tmp_path, f"127.0.0.1:{free_port}")
    try:
        assert process.stderr is not None
        assert f"http://127.0.0.1:{free_port}/v1 answers" in process.stderr.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/healthz") as response:
            assert json.load(response) == {"status": "ok"}
            assert response.headers["x-request-id"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert [line["message"] for line in lines] == ["request", "stopping"]
        assert lines[0]["path"] == "/healthz"
    finally:
        process.kill()
        process.communicate()


def test_serve_refuses_the_open_door(tmp_path: Path, free_port: int) -> None:
    assert "no key exists" in refused(tmp_path, f"0.0.0.0:{free_port}")


def test_a_port_that_another_service_has_is_refused(tmp_path: Path, free_port: int) -> None:
    # Both would listen with SO_REUSEPORT and share the requests, unseen.
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", free_port))
        other.listen()
        error = refused(tmp_path, f"127.0.0.1:{free_port}")
    assert f"server.listen: got 127.0.0.1:{free_port}, but need" in error
    assert "port that is free" in error


def test_the_example_opens_no_door_either(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = read_texts()
    monkeypatch.setattr(running, "read_texts", lambda: (known[:100], asked[:1]))
    with pytest.raises(StopwiseError, match="no key exists"):
        asyncio.run(running.run_example(f"0.0.0.0:{free_port}", stop=asyncio.Event()))


def test_a_signal_is_heard_while_the_loop_has_no_room_for_its_byte() -> None:
    """As when a thousand connections close at once: each wakes the loop from another thread."""
    before = signal.getsignal(signal.SIGTERM)

    async def stopped() -> None:
        loop = asyncio.get_running_loop()
        async with until_signal() as stop:
            for _ in range(20_000):
                loop.call_soon_threadsafe(int)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stop.wait(), 30)

    asyncio.run(stopped())
    assert signal.getsignal(signal.SIGTERM) is before


def test_handlers_of_signals_are_those_from_before() -> None:
    def own(number: int, frame: object) -> None: ...

    async def nothing() -> None:
        async with until_signal():
            pass

    before = signal.signal(signal.SIGTERM, own)
    try:
        asyncio.run(nothing())
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
