"""Whatever goes wrong is answered in the protocol's form; what is our fault is logged."""

from __future__ import annotations

import logging
import math

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route

from stopwise.checks import StopwiseError
from stopwise.openai.errors import ProtocolError
from stopwise.service.database.connection import StoreUnavailableError
from stopwise.service.http.json import Json

LOG = logging.getLogger("stopwise.service.http")


def _respond(error: ProtocolError) -> Response:
    headers = {}
    if error.status in (429, 503):
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after or 1.0)))
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Json(error.form, error.status, headers)


async def on_protocol_error(request: Request, error: Exception) -> Response:
    """An error that was meant for the client."""
    assert isinstance(error, ProtocolError)
    return _respond(error)


async def on_no_store(request: Request, error: Exception) -> Response:
    """The database is away; answers of stages go on, whatever needs it waits."""
    return _respond(ProtocolError(503, str(error), code="store_unavailable"))


async def on_refusal(request: Request, error: Exception) -> Response:
    """A value that a user gave and that cannot be used."""
    return _respond(ProtocolError(400, str(error), code="invalid_value"))


async def on_http_error(request: Request, error: Exception) -> Response:
    """No such path, or not with this method."""
    assert isinstance(error, HTTPException)
    said = {
        404: ("there is no such path", "not_found"),
        405: ("this method is not accepted here", "method_not_allowed"),
    }
    message, code = said.get(error.status_code, (error.detail, None))
    response = _respond(ProtocolError(error.status_code, message, code=code))
    response.headers.update(error.headers or {})
    if error.status_code == 405:
        response.headers["allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """What a path accepts: a path may have several routes, each with methods of its own."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return methods


async def on_gone(request: Request, error: Exception) -> Response:
    """The client left before its body was in: nobody reads this."""
    return Response(status_code=400)


async def on_fault(request: Request, error: Exception) -> Response:
    """Our own fault: the client learns no more than that, the log says where."""
    LOG.error("fault", exc_info=error, extra={"id": request.state.request_id})
    return _respond(ProtocolError(500, "internal error; the log of the service has more"))


HANDLERS = {
    ProtocolError: on_protocol_error,
    StoreUnavailableError: on_no_store,
    StopwiseError: on_refusal,
    HTTPException: on_http_error,
    ClientDisconnect: on_gone,
    Exception: on_fault,
}
