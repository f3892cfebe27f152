"""Running the service: a server with a header timeout, signals, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from stopwise.checks import StopwiseError
from stopwise.service.app import make_app
from stopwise.service.config.forms import Config
from stopwise.service.config.reading import is_loopback
from stopwise.service.core import Service

LOG = logging.getLogger("stopwise.service")
Ready = Callable[[Service], None]


def refuse_open_door(service: Service) -> None:
    """Nothing listens beyond this machine while no key exists."""
    server = service.config.server
    if not is_loopback(server.host) and not service.keys.any_active():
        raise StopwiseError(
            f"server.listen: {server.host} can be reached from other machines, but no key exists;"
            " make one with `stopwise keys create`, or listen on 127.0.0.1"
        )


def refuse_taken_address(service: Service) -> None:
    """Nothing listens where something else does: the two would share the requests."""
    # The server binds with SO_REUSEPORT, which a second service would too; this one does not.
    server = service.config.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((server.host, server.port))
        except OSError as error:
            raise StopwiseError(
                f"server.listen: got {server.host}:{server.port}, but need an address of this"
                f" machine and a port that is free ({error.strerror or error})"
            ) from None


def room_for_connections(most: int = 20_000) -> int:
    """How many connections may be open at once, after this process may open as many files.

    Half of the files: upstreams need some too. Connections beyond are not accepted, so those that
    send nothing would keep all others out until their time for headers is over.

    >>> room_for_connections() <= 10_000
    True
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        soft = most if hard == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return most // 2 if soft == resource.RLIM_INFINITY else max(64, min(soft, most) // 2)


async def serve(config: Config, on_ready: Ready = lambda service: None) -> None:
    """Serve until a signal comes; requests under way are answered before it returns."""
    service = Service(config)
    async with until_signal() as stop:
        await serve_until(service, stop, on_ready)


@asynccontextmanager
async def until_signal() -> AsyncIterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}

    def heard(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop.set)

    for name in before:
        # The loop's own handler wakes it whichever thread the signal reaches. But its callback
        # comes by a byte in a socket, lost where that is full: many connections close at once.
        loop.add_signal_handler(name, stop.set)
        signal.signal(name, heard)
    # A full socket wakes the loop as well: nothing to warn of.
    signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
    try:
        yield stop
    finally:
        for name, handler in before.items():
            loop.remove_signal_handler(name)
            if handler is not None:  # None: not set by Python, which cannot set it again
                signal.signal(name, handler)


async def serve_until(
    service: Service, stop: asyncio.Event, on_ready: Ready = lambda service: None
) -> None:
    """Serve until the event is set; then answer what is under way and write what is queued."""
    try:
        refuse_open_door(service)
        refuse_taken_address(service)
    except StopwiseError:
        await service.stop()
        raise
    limits = service.config.server
    server = Server(
        make_app(service),
        address=limits.host,
        port=limits.port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        websockets=False,
        backlog=1024,
        backpressure=room_for_connections(),
        http1_settings=HTTP1Settings(header_read_timeout=int(limits.header_seconds * 1000)),
        log_enabled=False,
    )
    running = asyncio.create_task(server.serve())
    stopped = asyncio.create_task(stop.wait())
    try:
        # The server starts the service before it listens: a client that comes at once is refused.
        while not (running.done() or stop.is_set()):
            if service.serving and await _listens(limits.host, limits.port):
                break
            await asyncio.sleep(0.01)
        if service.serving:
            on_ready(service)
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            LOG.info("stopping")
            service.begin_to_stop()
            server.stop()  # type: ignore[no-untyped-call]
            await asyncio.wait({running}, timeout=limits.drain_seconds)
            if not running.done():
                # A request hangs, or what is behind is still being written: that is waited for.
                await service.stop()
    finally:
        stopped.cancel()
    if running.done():
        running.result()


async def _listens(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True
