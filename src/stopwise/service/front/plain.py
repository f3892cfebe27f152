"""A plain answer: returned as soon as the answering stage is in."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.service.front.answering import answering
from stopwise.service.front.asking import AskedRequest
from stopwise.service.front.exchange import Exchange
from stopwise.service.http.json import Json


async def answer_plain(request: Request, exchange: Exchange) -> Response:
    """Call the stages, answer the client, leave the comparing to later."""
    came = await answering(request, exchange)
    if came is None:
        return Response(status_code=499)
    assert came.body is not None
    stage = came.call.stage
    exchange.finish(stage)
    await exchange.asked.service.recorder.held.wait()
    body = renamed_body(exchange.asked, came.body, came.call.cost)
    return Json(body, headers=exchange.headers(stage))


def renamed_body(asked: AskedRequest, body: dict[str, Any], cost: float) -> dict[str, Any]:
    """The upstream's response under our names, with what it cost."""
    usage = body.get("usage")
    renamed = {**body, "id": f"chatcmpl-{asked.decision.id}", "model": asked.cascade.name}
    if isinstance(usage, dict):
        renamed["usage"] = {**usage, "cost": cost}
    return renamed
