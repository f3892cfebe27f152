"""A streamed answer: relayed as it comes, while shallower stages run beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from stopwise.openai.errors import ProtocolError
from stopwise.openai.streams import DONE, StreamedAnswer, event_bytes, parse_chunk
from stopwise.service.cascades.forms import CLIENT_GONE
from stopwise.service.database.connection import StoreUnavailableError
from stopwise.service.front.answering import answering, in_its_place, unless_gone
from stopwise.service.front.exchange import CHAT, Came, Exchange
from stopwise.service.upstream.calls import UpstreamError


async def answer_streamed(request: Request, exchange: Exchange) -> Response:
    """Stream the answer; nothing is sent before its first byte is here.

    The stage that was drawn is streamed as it comes. Where the answer is chosen when it is in (per
    item, or because the next stage is called if it is none), it is sent whole, in the form of a
    stream.
    """
    decision = exchange.decision
    if exchange.chooses:
        came = await answering(request, exchange)
    else:
        exchange.start_shallow()
        live = _LiveStream(exchange, decision.depth)
        opened = await unless_gone(request, exchange, live.open_or_replace())
        if isinstance(opened, _LiveStream):
            return _respond(exchange, decision.depth, live.relay())
        came = opened
    if came is None:
        return Response(status_code=499)
    assert came.body is not None
    return _respond(exchange, came.call.stage, _as_stream(exchange, came.call.stage, came.body))


class _Relayed(StreamingResponse):
    """A stream that is brought to its end whatever happens to the client."""

    exchange: Exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # A client that left before the first chunk was sent never started the generator.
            await self.body_iterator.aclose()  # type: ignore[attr-defined]
            self.exchange.finish(None, abandoned=True)


def _respond(exchange: Exchange, stage: int, chunks: AsyncGenerator[bytes, None]) -> Response:
    headers = {**exchange.headers(stage), "cache-control": "no-cache"}
    response = _Relayed(chunks, media_type="text/event-stream", headers=headers)
    response.exchange = exchange
    return response


class _LiveStream:
    """The stream of one stage on its way to the client."""

    def __init__(self, exchange: Exchange, stage: int) -> None:
        self._exchange = exchange
        self._stage = stage
        self._stack = AsyncExitStack()
        self._events: AsyncIterator[str] | None = None
        self._first: dict[str, Any] | None = None
        self._answer = StreamedAnswer()
        self._started = time.perf_counter()

    async def open_or_replace(self) -> _LiveStream | Came:
        """Open it, or give the answer of another stage if it fails before its first byte."""
        exchange = self._exchange
        exchange.awaits(self._stage)
        error = await self._open()
        if error is None:
            return self
        exchange.failure(self._stage, error.word, self._started)
        return await in_its_place(exchange, self._stage, error)

    async def _open(self) -> UpstreamError | None:
        """Call the stage and wait for its first chunk; why not, if it fails before that."""
        asked = self._exchange.asked
        upstream = asked.cascade.config.stages[self._stage].upstream
        assert upstream is not None
        body = asked.chat.for_stage(upstream.model, streamed=True)
        stream = asked.service.upstreams.stream(upstream, CHAT, body)
        try:
            async with AsyncExitStack() as opening:
                self._events = await opening.enter_async_context(stream)
                # Lines that only keep a connection open are no chunk: nobody waits for ever.
                async with asyncio.timeout(upstream.timeout):
                    event = await anext(self._events, None)
                first = parse_chunk(event) if event is not None else None
                if first is None or "error" in first:
                    raise UpstreamError("stream failed")
                self._first = first
                self._stack = opening.pop_all()
        except UpstreamError as error:
            return error
        return None

    async def relay(self) -> AsyncGenerator[bytes, None]:
        """The chunks under our names, to the end or to the failure."""
        exchange, served = self._exchange, True
        try:
            async with self._stack:
                async for chunk in self._chunks():
                    self._answer.add(chunk)
                    if (renamed := self._renamed(chunk)) is not None:
                        yield event_bytes(renamed)
            if not self._answer.finished:
                raise UpstreamError("stream cut")
            exchange.success(self._stage, self._answer.completion, self._started)
            yield await _last_event(exchange)
        except UpstreamError as error:
            # The client has a part of the answer: an error event says so, and there is no [DONE].
            served = False
            exchange.failure(self._stage, error.word, self._started, paid=True)
            message = f"the stream broke off ({error.word})"
            yield event_bytes(ProtocolError(502, message, code="stream_broken").form)
        except BaseException:
            # The client is gone, in the middle or before its [DONE].
            exchange.cancel(self._stage, CLIENT_GONE, self._started)
            exchange.finish(None, abandoned=True)
            raise
        exchange.finish(self._stage if served else None)

    async def _chunks(self) -> AsyncIterator[dict[str, Any]]:
        assert self._first is not None
        assert self._events is not None
        yield self._first
        async for event in self._events:
            if event == DONE:
                return
            chunk = parse_chunk(event)
            if chunk is None or "error" in chunk:
                raise UpstreamError("error in the stream")
            yield chunk

    def _renamed(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """A chunk under our names; usage only if it was asked for."""
        asked = self._exchange.asked
        usage = chunk.get("usage")
        if not asked.chat.usage_wanted:
            if usage and not chunk.get("choices"):
                return None
            chunk.pop("usage", None)
        elif isinstance(usage, dict):
            cost = self._exchange.cost_of(self._stage, usage)
            chunk["usage"] = {**usage, "cost": cost}
        chunk["id"] = f"chatcmpl-{asked.decision.id}"
        chunk["model"] = asked.cascade.name
        return chunk


async def _last_event(exchange: Exchange) -> bytes:
    """The end of a stream, once it may be said that the answer is complete."""
    try:
        await exchange.asked.service.recorder.held.wait()
    except StoreUnavailableError as error:
        return event_bytes(ProtocolError(503, str(error), code="store_unavailable").form)
    return event_bytes(DONE)


async def _as_stream(
    exchange: Exchange, stage: int, body: dict[str, Any]
) -> AsyncGenerator[bytes, None]:
    """A plain answer that stands in for a stream which never began."""
    asked = exchange.asked
    head = {
        "id": f"chatcmpl-{asked.decision.id}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": asked.cascade.name,
    }
    try:
        for at, choice in enumerate(body["choices"]):
            for part in _choice_as_chunks(at, choice):
                yield event_bytes({**head, "choices": [part]})
        if asked.chat.usage_wanted and isinstance(body.get("usage"), dict):
            usage = {**body["usage"], "cost": exchange.cost_of(stage, body["usage"])}
            yield event_bytes({**head, "choices": [], "usage": usage})
        yield await _last_event(exchange)
    except BaseException:
        exchange.finish(None, abandoned=True)  # the client is gone
        raise
    exchange.finish(stage)


def _choice_as_chunks(at: int, choice: Any) -> list[dict[str, Any]]:
    """A choice as a stream has it: all that its message says, then why it ended."""
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return []
    # Whatever fields an upstream has (refusal, reasoning_content), as in a plain answer.
    delta = {"content": None, **message, "role": "assistant"}
    calls = delta.pop("tool_calls", None)
    if isinstance(calls, list) and calls:
        known = [call for call in calls if isinstance(call, dict)]
        delta["tool_calls"] = [{**call, "index": number} for number, call in enumerate(known)]
    said = {"index": at, "delta": delta}
    if choice.get("logprobs") is not None:
        said["logprobs"] = choice["logprobs"]
    finish = choice.get("finish_reason")
    ended = finish if isinstance(finish, str) else "stop"
    return [said, {"index": at, "delta": {}, "finish_reason": ended}]
