"""Putting the example together: stages, service, feeder; nothing is left behind."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

from stopwise.service.config.forms import Config
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.example.detectors import COSTS, MISTAKE_COST, make_detectors
from stopwise.service.example.feeder import PACE, Feeder
from stopwise.service.example.texts import read_texts
from stopwise.service.example.upstream import DetectorServer
from stopwise.service.serving import Ready, serve_until, until_signal


def example_config(upstream: str, folder: Path, listen: str = "127.0.0.1:8600") -> Config:
    """The configuration of the example, as a file would say it."""
    stages = [
        {"name": name, "base_url": upstream, "model": name, "cost": cost}
        for name, cost in COSTS.items()
    ]
    return config_of(
        {
            "server": {"listen": listen, "store": "sqlite:///example.db"},
            "cascades": {
                "language": {
                    "mode": "shadow",
                    "sample": 1.0,
                    "run_to": "groups",
                    "mistake_cost": MISTAKE_COST,
                    "comparator": "folded",
                    "full_run_rate": 0.05,
                    "stages": stages,
                }
            },
        },
        folder,
    )


async def run_example(
    listen: str = "127.0.0.1:8600",
    *,
    pace: float = PACE,
    on_ready: Ready = lambda service: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve the example until a signal comes, or until the event is set."""
    known, asked = read_texts()
    detectors = await asyncio.to_thread(make_detectors, known)
    server = DetectorServer(detectors)
    await server.start()
    with tempfile.TemporaryDirectory(prefix="stopwise-example-") as folder:
        service = Service(example_config(server.url, Path(folder), listen))

        def make_key() -> str:
            _, text = service.keys.create("texts of the example", ["infer"])
            service.keys.renew()
            return text

        feeder = Feeder(f"http://{listen}", asked, detectors, make_key, pace=pace)
        service.example = feeder
        feeding: list[asyncio.Task[None]] = []

        def ready(service: Service) -> None:
            feeding.append(asyncio.create_task(feeder.run()))
            on_ready(service)

        try:
            if stop is not None:
                await serve_until(service, stop, ready)
            else:
                async with until_signal() as event:
                    await serve_until(service, event, ready)
        finally:
            for task in feeding:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await server.stop()
