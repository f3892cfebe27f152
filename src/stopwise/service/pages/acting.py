"""The forms of the pages: each checks where it comes from and the scope, acts, and goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from stopwise.checks import StopwiseError, fail
from stopwise.service.api.changing import MODES_ACCEPTED, keep_label, mode_of
from stopwise.service.database.keys import SCOPES, Key
from stopwise.service.http.access import refuse_other_sites
from stopwise.service.pages.login import form_of
from stopwise.service.pages.looking import Page, find, shown
from stopwise.service.pages.rendering import page_key, render
from stopwise.service.views.keys import keys_view

if TYPE_CHECKING:
    from stopwise.service.core import Service

Act = Callable[[Request, Key], Awaitable[Response]]
NONE_RIGHT = "none"
"""What the labelling form sends where no answer is right."""


def acting(scope: str) -> Callable[[Act], Page]:
    """What a form of this site may do for whoever has a key of this scope; else the login."""

    def decorate(act: Act) -> Page:
        @wraps(act)
        async def checked(request: Request) -> Response:
            refuse_other_sites(request)
            key = await page_key(request, scope)
            return key if isinstance(key, Response) else await act(request, key)

        return shown(checked)

    return decorate


@acting("admin")
async def change_mode(request: Request, key: Key) -> Response:
    """Switch a cascade to another mode; the reason goes to the trail."""
    service, cascade = find(request)
    form = await form_of(request)
    mode = mode_of(form.get("mode"))
    if mode is None:
        raise fail("mode", form.get("mode"), MODES_ACCEPTED)
    reason = form.get("reason", "").strip()
    if not reason:
        raise fail("reason", reason, "a few words: why")
    await asyncio.to_thread(service.set_mode, cascade, mode, key, reason)
    return RedirectResponse(f"/ui/c/{quote(cascade.name)}/mode", status_code=303)


@acting("label")
async def give_label(request: Request, key: Key) -> Response:
    """Keep which answers of a round are right, and show the next round."""
    service, cascade = find(request)
    form = await form_of(request)
    round_id, choice = form.get("round", ""), form.get("right", "")
    stored = await asyncio.to_thread(service.rounds.round, cascade.name, round_id)
    if stored is None:
        raise fail("round", round_id[:100], "the id of a round of this cascade")
    codes = stored.form["codes"]
    right = [stage for stage, code in enumerate(codes) if choice == str(code) and code >= 0]
    if not right and choice != NONE_RIGHT:
        raise fail("right", choice[:100], "one of the answers, or none of them")
    await asyncio.to_thread(keep_label, service, cascade, round_id, key.name, right)
    blind = "" if form.get("blind", "1") == "1" else "?blind=0"
    return RedirectResponse(f"/ui/c/{quote(cascade.name)}/labels{blind}", status_code=303)


@acting("admin")
async def make_key(request: Request, key: Key) -> Response:
    """Make a key and show it once."""
    service: Service = request.app.state.service
    form = await form_of(request)
    scopes = [scope for scope in SCOPES if form.get(f"scope-{scope}")]
    if not key.id and "admin" not in scopes:
        # The first key ends the time in which this machine needs none.
        raise StopwiseError("scope: the first key needs the scope admin, to make others with")
    budget = None
    if form.get("budget", "").strip():
        budget = _number(form["budget"])
    made, text = await asyncio.to_thread(service.keys.create, form.get("name", ""), scopes, budget)
    await asyncio.to_thread(service.trail.note, key.name, "", "key made", "", made.name)
    view = await asyncio.to_thread(keys_view, service)
    return render(request, "keys.html", key, view=view, made=text)


@acting("admin")
async def revoke_key(request: Request, key: Key) -> Response:
    """Revoke a key."""
    service: Service = request.app.state.service
    form = await form_of(request)
    key_id = form.get("id", "")
    await asyncio.to_thread(service.keys.revoke, key_id)
    await asyncio.to_thread(service.trail.note, key.name, "", "key revoked", key_id[:100], "")
    return RedirectResponse("/ui/keys", status_code=303)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise fail("budget", text[:100], "a number above 0") from None
