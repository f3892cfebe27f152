"""Who asks, and may they? A key in the header, a session, or this machine while no key exists."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request

from stopwise.openai.errors import ProtocolError
from stopwise.service.config.reading import is_loopback
from stopwise.service.database.keys import Key
from stopwise.service.database.sessions import session_key
from stopwise.service.http.incoming import KNOWN

if TYPE_CHECKING:
    from stopwise.service.core import Service

COOKIE = "stopwise_session"
LOCAL = Key("", "this machine", ("admin",), 0.0)


async def who(request: Request, scope: str) -> Key:
    """The key of a request, which must have the scope; raises the protocol's error if not."""
    key = await find_key(request)
    if key is None:
        raise ProtocolError(
            401,
            "this needs a key: send the header Authorization: Bearer sk-sw-..."
            " (`stopwise keys create` makes one)",
            code="invalid_api_key",
        )
    if not key.may(scope):
        message = f"this key lacks the scope {scope!r}; it has {', '.join(key.scopes)}"
        raise ProtocolError(403, message, code="missing_scope")
    return key


async def find_key(request: Request) -> Key | None:
    """The key in the header, of the session, or of this machine; None where there is none."""
    key = await _find_key(request)
    if key is not None:
        request.scope["state"][KNOWN] = True  # its body may be longer than a stranger's
    return key


async def _find_key(request: Request) -> Key | None:
    service: Service = request.app.state.service
    keys = service.keys
    if not keys.any_made() and is_loopback(service.config.server.host):
        # No key was ever made (revoking the last one opens nothing) and nobody else can reach the
        # port. A page of another site that had its name point here still sends its own name.
        if not is_loopback(_host(request)):
            raise ProtocolError(403, "host: need localhost while no key exists", code="bad_host")
        return LOCAL
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    text = text.strip()
    if kind.lower() == "bearer" and text:
        found = keys.find(text)
        if found is None and keys.stale:
            await asyncio.to_thread(keys.renew)
            found = keys.find(text)
        return found
    cookie = request.cookies.get(COOKIE)
    if cookie and request.url.path.startswith("/ui"):
        key_id = await asyncio.to_thread(session_key, service.database, cookie)
        return keys.by_id(key_id) if key_id is not None else None
    return None


def refuse_other_sites(request: Request) -> None:
    """Whatever changes something must come from our own page or from a program.

    A browser says with every request where it comes from, in `Sec-Fetch-Site` or `Origin`.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    site = request.headers.get("sec-fetch-site", "none")
    origin = request.headers.get("origin")
    if site != "none":
        own = site == "same-origin"
    elif origin is None:
        own = not request.url.path.startswith("/ui")
    else:  # an older browser, or an extension of one
        own = _is_of(origin, request.headers.get("host", ""))
    if not own:
        raise ProtocolError(403, "this request comes from another site", code="cross_site")


def _is_of(origin: str, host: str) -> bool:
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:  # such as "http://[": an address that never ends
        return False


def _host(request: Request) -> str:
    host = request.headers.get("host", "")
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # such as "[": an address that never ends
        return ""
