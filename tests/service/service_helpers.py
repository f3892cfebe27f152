"""What the tests of the service share: a configuration, and the type of `make`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.testclient import TestClient

from stopwise.service.core import Service

BASE = "http://127.0.0.1:8600"


def cascade_form(url: str | None, models: list[str], **more: Any) -> dict[str, Any]:
    stages: list[dict[str, Any]] = []
    for at, model in enumerate(models):
        stage: dict[str, Any] = {"name": model}
        if url is None:
            stage["cost"] = 10.0**at
        else:
            stage |= {"base_url": url, "model": model}
            stage["price"] = {"input": 10.0**at, "output": 4 * 10.0**at}
        stages.append(stage)
    return {"mistake_cost": 0.01 if url else 1000.0, "stages": stages, **more}


Maker = Callable[..., tuple[TestClient, Service]]
