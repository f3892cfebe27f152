"""The outermost layer: sizes and times, an id, security headers, a log line, metrics."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stopwise.openai.errors import ProtocolError
from stopwise.service.http.incoming import IncomingBodies

if TYPE_CHECKING:
    from stopwise.service.core import Service

LOG = logging.getLogger("stopwise.service.http")
_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,100}")
_HEADERS = [
    (b"content-security-policy",
     b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
     b" form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]  # fmt: skip


class Guard:
    """Wraps the application.

    Args:
        app: what answers.
        service: limits and metrics.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._open = 0
        limits = service.config.server
        self._bodies = IncomingBodies(limits.max_body, limits.body_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                known = {name for name, _ in headers}
                headers += [pair for pair in _HEADERS if pair[0] not in known]
                headers.append((b"x-request-id", request_id.encode()))
                message = {**message, "headers": headers}
            await send(message)

        metrics = self._service.metrics
        most = self._service.config.server.max_requests
        self._open += 1
        metrics.open.set(self._open)
        with self._service.telemetry.request(scope) as reported:
            try:
                # Whether the process lives is answered however much it has to do.
                full = self._open > most and scope["path"] not in _ALWAYS
                if full and not self._bodies.make_room():
                    error = ProtocolError(503, "too many requests at once", code="overloaded")
                    await _send_error(send_on, error)
                else:
                    await self._app(scope, self._bodies.limited(scope, receive), send_on)
            finally:
                self._open -= 1
                metrics.open.set(self._open)
                seconds = time.perf_counter() - started
                route = scope.get("route")
                path = getattr(route, "path", None) or "other"
                method = scope["method"] if scope["method"] in _METHODS else "other"
                log = scope["state"].get("log", {})
                reported.method, reported.path = method, path
                reported.status, reported.log = status, log
                metrics.requests.labels(path, method, str(status)).inc()
                metrics.seconds.labels(path).observe(seconds)
                LOG.info(
                    "request",
                    extra={
                        "id": request_id,
                        "method": method,
                        "path": path,
                        "status": status,
                        "seconds": round(seconds, 4),
                        **log,
                    },
                )


_ALWAYS = ("/healthz", "/readyz")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return str(value.decode())
    return uuid.uuid4().hex


async def _send_error(send: Send, error: ProtocolError) -> None:
    body = json.dumps(error.form).encode()
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
