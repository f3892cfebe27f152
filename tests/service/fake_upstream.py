"""A small OpenAI-compatible server for tests: answers by script, fails on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web


class FakeUpstream:
    """Answers `POST /v1/chat/completions`.

    Attributes:
        answer: from (model, body) to a text, a message (dict), or an Exception-like instruction:
            {"status": 500, "headers": ...}, {"hang": seconds}, {"until": event}, {"drop": True},
            {"cut": chunks}, {"opened": "drop" | "silent" | "kept open" | "long"}, a stream that has
            no event.
        requests: (headers, body) of everything that came.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str, dict[str, Any]], Any] = lambda model, body: f"I am {model}"
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.cancelled: list[str] = []
        self.pause = 0.0
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(client_max_size=200_000_000)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_post("/v1/embeddings", self.embeddings)
        app.router.add_get("/v1/elsewhere", self.elsewhere)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def models(self) -> list[str]:
        return [body["model"] for _, body in self.requests]

    async def elsewhere(self, request: web.Request) -> web.Response:
        self.requests.append(({}, {"model": "ELSEWHERE"}))
        return web.json_response({})

    async def embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append((dict(request.headers), body))
        return web.json_response(
            {"object": "list", "model": body["model"], "usage": {"prompt_tokens": 3},
             "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]}
        )  # fmt: skip

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append((dict(request.headers), body))
        model = body["model"]
        given = self.answer(model, body)
        try:
            if isinstance(given, dict) and "hang" in given:
                await asyncio.sleep(given["hang"])
                given = given.get("then", "late")
            if isinstance(given, dict) and "until" in given:
                async with asyncio.timeout(60):
                    while not given["until"].is_set():
                        await asyncio.sleep(0.005)
                given = given.get("then", "late")
            if isinstance(given, dict) and "status" in given:
                if 300 <= given["status"] < 400:
                    raise web.HTTPFound(self.url.replace("/v1", "/v1/elsewhere"))
                error = given.get("error", {"message": "secret words of upstream", "type": "x"})
                more = given.get("headers")
                return web.json_response({"error": error}, status=given["status"], headers=more)
            if isinstance(given, dict) and given.get("drop"):
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            if body.get("stream"):
                return await self._stream(request, body, given)
            if self.pause:
                await asyncio.sleep(self.pause)
        except asyncio.CancelledError:
            self.cancelled.append(model)
            raise
        message, finish = _message(given)
        more = (
            {"logprobs": given["logprobs"]}
            if isinstance(given, dict) and "logprobs" in given
            else {}
        )
        choices = [
            {"index": at, "message": message, "finish_reason": finish, **more}
            for at in range(body.get("n", 1))
        ]
        return web.json_response(
            {"id": "up", "object": "chat.completion", "created": 1, "model": "upstream-name",
             "choices": choices, "usage": USAGE}
        )  # fmt: skip

    async def _opened(
        self, request: web.Request, response: web.StreamResponse, what: str
    ) -> web.StreamResponse:
        """A stream without an event: it breaks off, is silent, or is only kept open."""
        assert request.transport is not None
        if what == "drop":
            request.transport.abort()
        elif what == "long":
            await response.write(b"data: " + b"x" * 11_000_000)
        while not request.transport.is_closing():
            if what == "kept open":
                await response.write(b": wait\n\n")
            await asyncio.sleep(0.02)
        return response

    async def _stream(
        self, request: web.Request, body: dict[str, Any], given: Any
    ) -> web.StreamResponse:
        cut = given.get("cut") if isinstance(given, dict) else None
        text = given.get("text", "some words to be cut") if isinstance(given, dict) else given
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        if isinstance(given, dict) and "opened" in given:
            return await self._opened(request, response, given["opened"])

        async def send(form: dict[str, Any]) -> None:
            chunk = {"id": "up", "object": "chat.completion.chunk", "created": 1,
                     "model": "upstream-name", **form}  # fmt: skip
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())

        message, finish = _message(given if not isinstance(given, dict) or "message" in given
                                   else text)  # fmt: skip
        await send({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        words = (message.get("content") or "").split(" ")
        for at, word in enumerate(words if message.get("content") else []):
            if cut is not None and at == cut:
                assert request.transport is not None
                request.transport.abort()
                return response
            if self.pause:
                await asyncio.sleep(self.pause)
            piece = word if at == 0 else " " + word
            await send({"choices": [{"index": 0, "delta": {"content": piece}}]})
        for at, call in enumerate(message.get("tool_calls", [])):
            function = call["function"]
            first = {"index": at, "id": call["id"], "type": "function",
                     "function": {"name": function["name"], "arguments": ""}}  # fmt: skip
            await send({"choices": [{"index": 0, "delta": {"tool_calls": [first]}}]})
            for piece in (function["arguments"][:4], function["arguments"][4:]):
                delta = {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
                await send({"choices": [{"index": 0, "delta": delta}]})
        await send({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            await send({"choices": [], "usage": USAGE})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _message(given: Any) -> tuple[dict[str, Any], str]:
    if isinstance(given, dict) and "message" in given:
        message = {"role": "assistant", "content": None, **given["message"]}
        usual = "tool_calls" if message.get("tool_calls") else "stop"
        return message, given.get("finish", usual)
    return {"role": "assistant", "content": str(given)}, "stop"
