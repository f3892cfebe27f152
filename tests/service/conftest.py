"""A service for tests, with small upstreams of its own on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from service_helpers import BASE, Maker, cascade_form
from starlette.testclient import TestClient

from stopwise.service.app import make_app
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.serving import serve_until


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread, for servers that tests talk to."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


@contextmanager
def running_upstream(loop: asyncio.AbstractEventLoop) -> Iterator[FakeUpstream]:
    fake = FakeUpstream()
    asyncio.run_coroutine_threadsafe(fake.start(), loop).result(60)
    yield fake
    asyncio.run_coroutine_threadsafe(fake.stop(), loop).result(60)


@pytest.fixture
def upstream(loop_thread: asyncio.AbstractEventLoop) -> Iterator[FakeUpstream]:
    with running_upstream(loop_thread) as fake:
        yield fake


@pytest.fixture(scope="module")
def shared_upstream(loop_thread: asyncio.AbstractEventLoop) -> Iterator[FakeUpstream]:
    """One for all tests of a file."""
    with running_upstream(loop_thread) as fake:
        yield fake


@pytest.fixture
def make(tmp_path: Path, upstream: FakeUpstream) -> Iterator[Maker]:
    """Makes a client and its service: `make(mode="enforce", models=[...], server={...})`."""
    clients: list[TestClient] = []

    def maker(
        models: list[str] | None = None,
        server: dict[str, Any] | None = None,
        api_only: bool = False,
        embeddings: dict[str, Any] | None = None,
        **more: Any,
    ) -> tuple[TestClient, Service]:
        url = None if api_only else upstream.url
        form = {
            "server": {"store": "sqlite:///test.db", "listen": "127.0.0.1:8600", **(server or {})},
            "cascades": {"support": cascade_form(url, models or ["small", "large"], **more)},
            "embeddings": embeddings or {},
        }
        service = Service(config_of(form, tmp_path))
        client = TestClient(make_app(service), base_url=BASE, raise_server_exceptions=False)
        client.__enter__()
        clients.append(client)
        return client, service

    yield maker
    for client in clients:
        client.__exit__(None, None, None)


def any_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def free_port() -> int:
    return any_port()


class LiveServer:
    """A service behind its real server, in a thread."""

    def __init__(self, service: Service, url: str, stop: Callable[[], None]) -> None:
        self.service = service
        self.url = url
        self.stop = stop


LiveMaker = Callable[..., LiveServer]


@contextmanager
def live_servers(
    folder: Path, upstream: FakeUpstream, loop: asyncio.AbstractEventLoop, port: int
) -> Iterator[LiveMaker]:
    stops: list[Callable[[], None]] = []

    def maker(
        models: list[str] | None = None,
        server: dict[str, Any] | None = None,
        name: str = "support",
        **more: Any,
    ) -> LiveServer:
        listen = f"127.0.0.1:{port}"
        form = {
            "server": {"store": "sqlite:///live.db", "listen": listen, **(server or {})},
            "cascades": {name: cascade_form(upstream.url, models or ["small", "large"], **more)},
        }
        service = Service(config_of(form, folder))
        stop, ready = asyncio.Event(), threading.Event()
        done = asyncio.run_coroutine_threadsafe(
            serve_until(service, stop, lambda service: ready.set()), loop
        )
        assert ready.wait(60)

        def end() -> None:
            loop.call_soon_threadsafe(stop.set)
            done.result(60)

        stops.append(end)
        return LiveServer(service, f"http://{listen}", end)

    yield maker
    for end in stops:
        end()


@pytest.fixture
def live(
    tmp_path: Path,
    upstream: FakeUpstream,
    loop_thread: asyncio.AbstractEventLoop,
    free_port: int,
) -> Iterator[LiveMaker]:
    """Starts the real server: `live(mode="enforce", server={...})`."""
    with live_servers(tmp_path, upstream, loop_thread, free_port) as maker:
        yield maker


@pytest.fixture(scope="module")
def shared_live(
    tmp_path_factory: pytest.TempPathFactory,
    shared_upstream: FakeUpstream,
    loop_thread: asyncio.AbstractEventLoop,
) -> Iterator[LiveMaker]:
    """The same, for all tests of a file."""
    folder = tmp_path_factory.mktemp("live")
    with live_servers(folder, shared_upstream, loop_thread, any_port()) as maker:
        yield maker
