"""Asking the front a question in tests."""

from __future__ import annotations

import time
from typing import Any

from starlette.testclient import TestClient

from stopwise.service.core import Service

ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}


def ask(client: TestClient, body: dict[str, Any] | None = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/v1/chat/completions", json=ASK if body is None else body, headers=named)


def settled(client: TestClient, service: Service) -> Service:
    """Wait until what requests left behind is counted and written."""
    end = time.monotonic() + 60
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    assert service.recorder.drain()
    return service


def seen(service: Service, segment: str = "") -> tuple[int, int]:
    evidence = service.cascades["support"].learner.evidence(segment)
    return int(evidence.seen[0, 1]), int(evidence.disagreed[0, 1])
