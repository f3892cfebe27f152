"""An async cascade over HTTP endpoints: a cheap one, a better one, and one that is sometimes down.

python examples/http_cascade.py

The endpoints are served here, on this machine, so that the example runs anywhere; put the addresses
of real ones in their place. Each answers a POST of a text with JSON: a label and its price.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stopwise.live import Answer, Cascade, Reported, Stage


class Endpoint(BaseHTTPRequestHandler):
    """Three models behind three paths."""

    protocol_version = "HTTP/1.0"

    def do_POST(self) -> None:
        """Answer one text; the name is what http.server asks for."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        words = text.split()
        if self.path == "/large" and "outage" in words:
            self.send_error(503)
            return
        label = "good" if "good" in words else "bad"
        if self.path != "/small" and "not" in words:
            label = "bad" if label == "good" else "good"
        price = {"/small": 0.1, "/medium": 1.0, "/large": 5.0}[self.path]
        body = json.dumps({"label": label, "price": price}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Threads that end with the process, and room for many connections at once."""

    daemon_threads = True
    request_queue_size = 128


@contextmanager
def served() -> Iterator[int]:
    """Serve the endpoints on a free port."""
    server = Server(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def ask(port: int, path: str, text: str) -> Reported:
    """A POST with nothing but the standard library."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        body = text.encode()
        head = f"POST {path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        status = (await reader.readline()).split()[1]
        if status != b"200":
            raise ConnectionError(f"{path} answered {status.decode()}")
        while (await reader.readline()).strip():
            pass
        answer = json.loads(await reader.read())
    finally:
        writer.close()
        await writer.wait_closed()
    return Reported(answer["label"], cost=answer["price"])


def build(port: int) -> Cascade:
    """Three endpoints from cheap to expensive; they report their prices."""

    def endpoint(name: str, guess: float) -> Stage:
        async def call(text: str) -> Reported:
            return await ask(port, f"/{name}", text)

        return Stage(name, call, guess, timeout=10)

    return Cascade(
        [endpoint("small", 0.1), endpoint("medium", 1.0), endpoint("large", 5.0)],
        mistake_cost=20,
        seed=0,
        costs="reported",
        on_failure="stop",
    )


async def answer_all(cascade: Cascade, texts: list[str]) -> list[Answer]:
    """Up to sixteen items on their way at once."""
    gate = asyncio.Semaphore(16)

    async def one(text: str) -> Answer:
        async with gate:
            return await cascade.answer_async(text)

    return await asyncio.gather(*(one(text) for text in texts))


def main(number: int = 300) -> tuple[Cascade, list[Answer]]:
    """Serve, ask, print."""
    kinds = ["good film", "not good", "dull", "good but long", "not dull at all", "good outage"]
    texts = [kinds[at % len(kinds)] for at in range(number)]
    with served() as port:
        cascade = build(port)
        answers = asyncio.run(answer_all(cascade, texts))
    report = cascade.learner.report()
    print(f"best stage: {cascade.learner.stages[cascade.learner.best_stage()]}")
    for name, calls, failures in zip(report.stages, report.calls, report.failures, strict=True):
        print(f"  {name}: {calls} calls, {failures} failures")
    print(f"spent {report.spent:.1f}; always going to the end: {6.1 * number:.1f}")
    return cascade, answers


if __name__ == "__main__":
    main()
