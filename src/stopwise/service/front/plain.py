"""A plain answer: returned as soon as the answering stage is in."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.errors import ProtocolError
from stopwise.service.front.asking import Asked, decision_headers
from stopwise.service.front.exchange import Came, Exchange
from stopwise.service.http.json import Json
from stopwise.service.upstream.calls import UpstreamError


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
    return Json(body, headers=decision_headers(exchange.asked, stage))


async def answering(request: Request, exchange: Exchange) -> Came | None:
    """The answer that the client gets; None if the client is gone.

    Raises the protocol's error where no stage answered.
    """
    asked = exchange.asked
    depth = asked.decision.depth
    exchange.start_shallow()
    began = time.perf_counter()
    task = exchange.start(depth)
    gone = asyncio.create_task(until_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            exchange.cancel(depth, "client gone", began)
            exchange.finish(None, abandoned=True)
            return None
        came = task.result()
        if came.error is None:
            return came
        second = asyncio.create_task(exchange.fall_back(depth, came.error))
        await asyncio.wait({second, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not second.done():
            second.cancel()
            exchange.finish(None, abandoned=True)
            return None
        found = second.result()
        if found is not None:
            return found
        exchange.finish(None)
        raise no_answer(came.error)
    except asyncio.CancelledError:
        exchange.finish(None, abandoned=True)
        raise
    finally:
        gone.cancel()


async def until_gone(request: Request) -> None:
    """Returns when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def no_answer(error: UpstreamError) -> ProtocolError:
    """What the client gets when no stage answered; the upstream's words if they are for it."""
    if isinstance(error.body, dict):
        said: Any = error.body["error"]
        message, kind = said.get("message"), said.get("type")
        code, param = said.get("code"), said.get("param")
        return ProtocolError(
            error.status,
            message if isinstance(message, str) else "the upstream refused this request",
            code=code if isinstance(code, str) else None,
            param=param if isinstance(param, str) else None,
            kind=kind if isinstance(kind, str) else None,
        )
    return ProtocolError(
        error.status if error.status in (429, 504) else 502,
        f"no stage could answer ({error.word})",
        code="no_answer",
    )


def renamed_body(asked: Asked, body: dict[str, Any], cost: float) -> dict[str, Any]:
    """The upstream's response under our names, with what it cost."""
    usage = body.get("usage")
    renamed = {**body, "id": f"chatcmpl-{asked.decision.id}", "model": asked.cascade.name}
    if isinstance(usage, dict):
        renamed["usage"] = {**usage, "cost": cost}
    return renamed
