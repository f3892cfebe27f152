"""From a view to a page: scope, thread, template."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from stopwise.logs.formatting import amount, share
from stopwise.openai.errors import ProtocolError
from stopwise.service.database.keys import Key
from stopwise.service.http.access import find_key
from stopwise.service.pages import drawing
from stopwise.service.views.over_time import OverTime

HERE = Path(__file__).parent


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


def _code(text: str) -> Markup:
    """A sentence in which `commands` are shown as such; everything else is escaped."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _pairs_of(found: OverTime) -> list[tuple[str, str]]:
    """The pairs that occur, each once, in order."""
    pairs = (pair for one in found.slices for pair in one.pairs)
    return list(dict.fromkeys((pair.shallow, pair.deep) for pair in pairs))


def _shares_of(numbers: Sequence[int]) -> list[float]:
    """Each number's share of their sum, which is not 0."""
    return [number / sum(numbers) for number in numbers]


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(amount=amount, share=share, when=_when, code=_code)
    environment.globals.update(
        pair_intervals=drawing.pair_intervals,
        shares_over_time=drawing.shares_over_time,
        depth_law=drawing.depth_law,
        share_bar=drawing.share_bar,
        disagreement_over_time=drawing.disagreement_over_time,
        pairs_of=_pairs_of,
        shares_of=_shares_of,
    )
    return environment


TEMPLATES = _environment()


async def page_key(request: Request, scope: str) -> Key | Response:
    """The key of who looks, or the way to the login."""
    key = await find_key(request)
    if key is None:
        after = quote(request.url.path)
        return RedirectResponse(f"/ui/login?then={after}", status_code=303)
    if not key.may(scope):
        raise ProtocolError(403, f"this key lacks the scope {scope!r}", code="missing_scope")
    return key


async def page(
    request: Request,
    template: str,
    read: Callable[[], Any],
    *,
    scope: str = "read",
    **more: Any,
) -> Response:
    """A page: `read` gives the view, in a thread, which the template knows as `view`."""
    key = await page_key(request, scope)
    if isinstance(key, Response):
        return key
    view = await asyncio.to_thread(read)
    return render(request, template, key, view=view, **more)


def render(
    request: Request, template: str, key: Key | None, status: int = 200, **given: Any
) -> HTMLResponse:
    """Fill a template."""
    service = request.app.state.service
    text = TEMPLATES.get_template(template).render(
        key=key,
        cascade_names=list(service.cascades) if key is not None else [],
        path=request.url.path,
        example=service.example if key is not None else None,
        **given,
    )
    # Half a letter (a lone surrogate) can stand in JSON, so in a text that was kept, but not here.
    content = text.encode("utf-8", "replace")
    return HTMLResponse(content, status, headers={"cache-control": "no-store"})
