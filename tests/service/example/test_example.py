"""The example: three real stages, a stream of texts, the truth at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from typing import Any

import pytest

from stopwise.service.core import Service
from stopwise.service.example import running
from stopwise.service.example.detectors import make_detectors
from stopwise.service.example.feeder import truth_of
from stopwise.service.example.running import run_example
from stopwise.service.example.texts import read_texts


def test_the_stages_are_real() -> None:
    known, asked = read_texts()
    truth = truth_of(asked[::3], make_detectors(known))
    letters, pairs, groups = truth.errors
    assert letters > 0.25
    assert 0.15 < pairs < 0.2
    assert groups < pairs - 0.01
    assert truth.best == "pairs"
    assert not {row.text for row in known} & {row.text for row in asked}


def test_it_learns_and_then_reveals_the_truth(
    free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, Any] = {}
    known, asked = read_texts()
    monkeypatch.setattr(running, "read_texts", lambda: (known, asked[:120]))

    async def play() -> None:
        stop = asyncio.Event()

        async def watch(service: Service) -> None:
            assert service.example is not None
            assert service.example.truth is None
            while service.example.sent < 40:
                await asyncio.sleep(0.01)
            # Somebody makes the first key: the texts go on, under a key of their own.
            _, text = await asyncio.to_thread(service.keys.create, "me", ["admin"])
            await asyncio.to_thread(service.keys.renew)
            while service.example.truth is None:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)  # nothing is sent a second time
            found["keys"] = {key.name: key.scopes for key in service.keys.all()}
            service.recorder.drain()
            found["rounds"] = service.cascades["language"].learner.rounds
            found["truth"] = service.example.truth
            async with asyncio.timeout(10):
                url = f"http://127.0.0.1:{free_port}/ui/"
                found["page"] = await asyncio.to_thread(_get, url, text)
            stop.set()

        await run_example(
            f"127.0.0.1:{free_port}",
            pace=500.0,
            stop=stop,
            on_ready=lambda service: found.update(task=asyncio.create_task(watch(service))),
        )
        await found["task"]

    asyncio.run(play())
    # Every text once, also after the key was made; then no more.
    assert found["rounds"] == found["truth"].texts == 120
    assert found["keys"] == {"me": ("admin",), "texts of the example": ("infer",)}
    assert "The truth, revealed" in found["page"]
    assert "language" in found["page"]


def _get(url: str, key: str = "") -> str:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
        return str(response.read().decode())


def test_one_command(free_port: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "stopwise", "serve", "--example", "--listen",
         f"127.0.0.1:{free_port}"],
        stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "/ui/ shows" in process.stderr.readline()
        end = time.monotonic() + 20
        rounds = 0
        while rounds < 5 and time.monotonic() < end:
            time.sleep(0.05)
            body = _get(f"http://127.0.0.1:{free_port}/api/v1/cascades/language/evidence")
            rounds = json.loads(body)["rounds"]
        assert rounds >= 5
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
