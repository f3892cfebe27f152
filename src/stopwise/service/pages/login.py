"""Logging in with a key: the session's number goes into a cookie that no script can read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from stopwise.openai.errors import ProtocolError
from stopwise.service.config.tables import STORABLE_ACCEPTED, storable
from stopwise.service.database.sessions import LIFETIME, close_session, open_session
from stopwise.service.http.access import COOKIE, refuse_other_sites
from stopwise.service.pages.rendering import render

if TYPE_CHECKING:
    from stopwise.service.core import Service


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, each once."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qs(body, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise ProtocolError(400, "form: need at most 100 fields", code="invalid_value") from None
    form = {name: values[-1] for name, values in fields.items()}
    for name, value in form.items():
        if not storable(name + value):
            message = f"{name[:100]!r}: need {STORABLE_ACCEPTED}"
            raise ProtocolError(400, message, param=name[:100], code="invalid_value")
    return form


async def login_page(request: Request) -> Response:
    """Ask for a key."""
    return render(request, "login.html", None, then=_then(request.query_params.get("then")), bad="")


async def log_in(request: Request) -> Response:
    """Open a session, if the key is one."""
    refuse_other_sites(request)
    service: Service = request.app.state.service
    form = await form_of(request)
    then = _then(form.get("then"))
    if service.keys.stale:
        await asyncio.to_thread(service.keys.renew)
    key = service.keys.find(form.get("key", "").strip())
    if key is None:
        await asyncio.sleep(0.3)
        bad = "This is not a key of this service, or it was revoked."
        return render(request, "login.html", None, 401, then=then, bad=bad)
    token = await asyncio.to_thread(open_session, service.database, key.id)
    response = RedirectResponse(then, status_code=303)
    public = service.config.server.public_url or ""
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(LIFETIME),
        path="/ui",
        secure=public.startswith("https:"),
        httponly=True,
        samesite="strict",
    )
    return response


async def log_out(request: Request) -> Response:
    """End the session."""
    refuse_other_sites(request)
    service: Service = request.app.state.service
    if token := request.cookies.get(COOKIE):
        await asyncio.to_thread(close_session, service.database, token)
    response = RedirectResponse("/ui/login", status_code=303)
    response.delete_cookie(COOKIE, path="/ui")
    return response


def _then(path: str | None) -> str:
    """Only ever back to one of our own pages."""
    if path and path.startswith("/ui/") and "//" not in path and "\\" not in path:
        return path if path.isprintable() else "/ui/"
    return "/ui/"
