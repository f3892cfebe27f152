"""The pages that only show: each checks the scope, reads a view and fills a template."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from stopwise.checks import StopwiseError
from stopwise.openai.errors import ProtocolError
from stopwise.service.api.bodies import query_name
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.connection import StoreUnavailableError
from stopwise.service.pages.rendering import page, render
from stopwise.service.views.cascade import cascade_view
from stopwise.service.views.cascades import cascade_lines
from stopwise.service.views.disagreements import disagreements_view
from stopwise.service.views.health import health_view
from stopwise.service.views.keys import keys_view
from stopwise.service.views.labels import FEWEST, labels_view
from stopwise.service.views.modes import mode_view
from stopwise.service.views.savings import savings_view

if TYPE_CHECKING:
    from stopwise.service.core import Service

Page = Callable[[Request], Awaitable[Response]]


def shown(handler: Page) -> Page:
    """A person gets an error as a page, where a program gets it in the protocol's form."""

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        try:
            return await handler(request)
        except ProtocolError as error:
            return render(request, "error.html", None, error.status, message=str(error))
        except StoreUnavailableError as error:
            return render(request, "error.html", None, 503, message=str(error))
        except StopwiseError as error:
            return render(request, "error.html", None, 400, message=str(error))

    return wrapped


def find(request: Request) -> tuple[Service, RunningCascade]:
    """The service, and the cascade that the path names."""
    service: Service = request.app.state.service
    return service, service.cascade(request.path_params["cascade"])


@shown
async def cascades(request: Request) -> Response:
    """Page 1: all cascades."""
    service: Service = request.app.state.service
    return await page(request, "cascades.html", lambda: cascade_lines(service))


@shown
async def cascade(request: Request) -> Response:
    """Page 2: one cascade."""
    service, found = find(request)
    segment = _segment(request)
    return await page(request, "cascade.html", lambda: cascade_view(service, found, segment))


@shown
async def savings(request: Request) -> Response:
    """Page 3: savings."""
    service, found = find(request)
    return await page(request, "savings.html", lambda: savings_view(service, found))


@shown
async def disagreements(request: Request) -> Response:
    """Page 4: answers side by side."""
    service, found = find(request)
    asked = request.query_params
    pair = _pair(asked.get("pair"), len(found.config.stages))
    before = _time(asked.get("before"))
    segment = _segment(request)
    return await page(
        request,
        "disagreements.html",
        lambda: disagreements_view(service, found, pair=pair, segment=segment, before=before),
    )


@shown
async def labels(request: Request) -> Response:
    """Page 5: the next item to label."""
    service, found = find(request)
    blind = request.query_params.get("blind", "1") != "0"
    return await page(
        request, "labels.html", lambda: labels_view(service, found, blind=blind), fewest=FEWEST
    )


@shown
async def health(request: Request) -> Response:
    """Page 6: drift and failures."""
    service, found = find(request)
    return await page(request, "health.html", lambda: health_view(service, found))


@shown
async def mode(request: Request) -> Response:
    """Page 7: the mode."""
    service, found = find(request)
    return await page(request, "mode.html", lambda: mode_view(service, found))


@shown
async def keys(request: Request) -> Response:
    """Page 8: keys, settings, epochs."""
    service: Service = request.app.state.service
    return await page(request, "keys.html", lambda: keys_view(service), scope="admin", made=None)


def _segment(request: Request) -> str | None:
    """The segment that a page shows; None for all together, which a form says as `*`."""
    given = request.query_params.get("segment")
    return None if given == "*" else query_name(request, "segment")


def _pair(text: str | None, stages: int) -> tuple[int, int] | None:
    """Two stages written as 0-1; anything else shows all pairs.

    >>> _pair("0-2", 3), _pair("2-0", 3), _pair("x", 3)
    ((0, 2), None, None)
    """
    first, _, second = (text or "").partition("-")
    if not (first.isdecimal() and second.isdecimal() and len(first + second) < 8):
        return None
    pair = int(first), int(second)
    return pair if pair[0] < pair[1] < stages else None


def _time(text: str | None) -> float | None:
    """Seconds since 1970; anything else is no time.

    >>> _time("12.5"), _time("nan"), _time("x"), _time(None)
    (12.5, None, None, None)
    """
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
