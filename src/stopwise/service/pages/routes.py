"""The pages and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from stopwise.service.pages.login import log_in, log_out, login_page
from stopwise.service.pages.rendering import HERE, page
from stopwise.service.pages.views.cascades import cascade_lines

if TYPE_CHECKING:
    from stopwise.service.core import Service


async def home(request: Request) -> Response:
    """From the root to the pages."""
    return RedirectResponse("/ui/", status_code=303)


async def cascades(request: Request) -> Response:
    """Page 1."""
    service: Service = request.app.state.service
    return await page(request, "cascades.html", lambda: cascade_lines(service))


class _Files(StaticFiles):
    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers["cache-control"] = "max-age=3600"
        return response


PAGES = [
    Route("/", home),
    Route("/ui", home),
    Route("/ui/", cascades),
    Route("/ui/login", login_page, methods=["GET"]),
    Route("/ui/login", log_in, methods=["POST"]),
    Route("/ui/logout", log_out, methods=["POST"]),
    Mount("/ui/static", _Files(directory=HERE / "static")),
]
