"""The command itself, as a process: starts, answers, stops without losing anything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

CONFIG = """
[server]
listen = "{listen}"
store = "sqlite:///s.db"
[cascades.c]
mistake_cost = 1
stages = [{{ name = "a", cost = 1 }}, {{ name = "b", cost = 2 }}]
"""


def start(tmp_path: Path, listen: str) -> subprocess.Popen[str]:
    path = tmp_path / "c.toml"
    path.write_text(CONFIG.format(listen=listen))
    return subprocess.Popen(
        [sys.executable, "-m", "stopwise", "serve", str(path)],
        stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"},
    )  # fmt: skip


def test_serve_starts_answers_and_stops(tmp_path: Path, free_port: int) -> None:
    process = start(tmp_path, f"127.0.0.1:{free_port}")
    try:
        assert process.stderr is not None
        assert f"http://127.0.0.1:{free_port}/v1 answers" in process.stderr.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/healthz") as response:
            assert json.load(response) == {"status": "ok"}
            assert response.headers["x-request-id"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert [line["message"] for line in lines] == ["request", "stopping"]
        assert lines[0]["path"] == "/healthz"
    finally:
        process.kill()
        process.communicate()


def test_serve_refuses_the_open_door(tmp_path: Path, free_port: int) -> None:
    process = start(tmp_path, f"0.0.0.0:{free_port}")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "no key exists" in error
