"""The answer that a client gets: that of the stage drawn, of one in its place, or per item."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from stopwise.openai.errors import ProtocolError
from stopwise.service.front.exchange import Came, Exchange
from stopwise.service.upstream.calls import UpstreamError

Found = TypeVar("Found")
_REFUSED = (400, 413, 422)
"""A stage refused the request: as wrong, or as too long or unsupported by its own model."""
_FILTERED = ("content_filter", "content_policy_violation")
"""Codes of an upstream that will not speak of this: no other stage is asked to do so instead."""


async def answering(request: Request, exchange: Exchange) -> Came | None:
    """The answer that the client gets; None if the client is gone.

    Raises the protocol's error where no stage answered.
    """
    work = _walked(exchange) if exchange.decision.walks else _drawn(exchange)
    return await unless_gone(request, exchange, work)


async def unless_gone(
    request: Request, exchange: Exchange, work: Coroutine[Any, Any, Found]
) -> Found | None:
    """What the work gives; None if the client leaves before, who then is not paid for any more."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_until_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return None
    finally:
        gone.cancel()
        task.cancel()
        # An answer ends the exchange when it is sent; without one, it ends here.
        if not task.done() or task.cancelled() or task.exception() is not None:
            exchange.leave()


async def _until_gone(request: Request) -> None:
    """Returns when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _drawn(exchange: Exchange) -> Came:
    """The answer of the stage that was drawn; the stages before it run beside it."""
    decision = exchange.decision
    exchange.start_shallow()
    came = await exchange.wait_for(decision.depth)
    if came.error is not None:
        return await in_its_place(exchange, decision.depth, came.error)
    if decision.chance is not None and decision.mode == "enforce" and not decision.uncounted:
        # A full run: all stages have been paid, so that the likeliest answer is given.
        for stage in range(decision.depth):
            await exchange.wait_for(stage)
        return await _likeliest(exchange)
    if exchange.goes_on and not await exchange.answers(came):
        return await _gone_on(exchange)
    return came


async def _gone_on(exchange: Exchange) -> Came:
    """The answer of the next stage that has one, where the one that was drawn has none.

    If no deeper one has, an answer that came before is given all the same, as a live cascade does.
    """
    decision = exchange.decision
    deeper = range(decision.depth + 1, len(exchange.asked.cascade.config.stages))
    before = range(decision.depth - 1, decision.first - 1, -1)
    for stage in (*deeper, *before):
        came = await exchange.wait_for(stage)
        if await exchange.answers(came):
            return came
    return _whatever_came(exchange)


async def in_its_place(exchange: Exchange, failed: int, error: UpstreamError) -> Came:
    """The answer of another stage in the place of one that failed.

    Upstreams have too many words for "too long for me" to tell it from "wrong": a request that is
    refused is tried at each other stage too, once. Where all refuse, the client is told why.
    """
    pinned = exchange.decision.uncounted == "pinned"
    if not _filtered(error) and not pinned:
        config = exchange.asked.cascade.config
        deeper = list(range(failed + 1, len(config.stages)))
        shallower = list(range(failed - 1, -1, -1))
        ways = (deeper, shallower) if config.on_failure == "deeper" else (shallower, deeper)
        for stage in (*ways[0], *ways[1]):
            came = await exchange.wait_for(stage)
            if came.error is None and (not exchange.goes_on or await exchange.answers(came)):
                return came
        if any(came.error is None for came in exchange.came.values()):
            return _whatever_came(exchange)
        if error.status in _REFUSED:
            error = _to_tell({failed: error, **_errors(exchange)})
    exchange.finish(None)
    raise no_answer(error)


def _filtered(error: UpstreamError) -> bool:
    """Whether a stage refused what the request speaks of."""
    said = error.body.get("error") if isinstance(error.body, dict) else None
    return error.status in _REFUSED and isinstance(said, dict) and said.get("code") in _FILTERED


def _errors(exchange: Exchange) -> dict[int, UpstreamError]:
    """Why stages failed that were waited for."""
    came = exchange.came.items()
    return {stage: one.error for stage, one in came if one.error is not None}


def _to_tell(errors: dict[int, UpstreamError]) -> UpstreamError:
    """Of the failures of all stages, the one that the client is told: the deepest.

    A refusal only if all refused: a stage that is down might have answered.
    """
    down = [stage for stage, error in errors.items() if error.status not in _REFUSED]
    return errors[max(down or errors)]


async def _walked(exchange: Exchange) -> Came:
    """Per item: one stage after the other, until the rule stops, or none is left."""
    last = len(exchange.asked.cascade.config.stages) - 1
    for stage in range(last + 1):
        came = await exchange.wait_for(stage)
        if came.error is not None and _filtered(came.error):
            exchange.finish(None)
            raise no_answer(came.error)
        if await exchange.stops():
            break
    return await _likeliest(exchange)


async def _likeliest(exchange: Exchange) -> Came:
    """Of the answers that are in, the one that is given."""
    served = await exchange.choose()
    if served is not None:
        return exchange.came[served]
    return _whatever_came(exchange)


def _whatever_came(exchange: Exchange) -> Came:
    """Where no stage has an answer: what came back without one is better than nothing."""
    for stage in sorted(exchange.came, reverse=True):
        if exchange.came[stage].error is None:
            return exchange.came[stage]
    exchange.finish(None)
    raise no_answer(_to_tell(_errors(exchange)))


def no_answer(error: UpstreamError) -> ProtocolError:
    """What the client gets when no stage answered; the upstream's words if they are for it."""
    after = error.retry_after
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
            retry_after=after,
        )
    return ProtocolError(
        error.status if error.status in (429, 503, 504) else 502,
        f"no stage could answer ({error.word})",
        code="no_answer",
        retry_after=after,
    )
