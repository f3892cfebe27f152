"""The stages behind an address on this machine, as a language model server would be."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

Detect = Callable[[str], str]


class DetectorServer:
    """Serves detectors by name; listens on a free port of this machine alone."""

    def __init__(self, detectors: Mapping[str, Detect]) -> None:
        self._detectors = detectors
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        """Begin to listen."""
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        detect = self._detectors.get(body.get("model", ""))
        if detect is None:
            return web.json_response({"error": {"message": "no such model"}}, status=404)
        content = body["messages"][-1].get("content")
        text = content if isinstance(content, str) else json.dumps(content)
        answer = detect(text)
        usage = {"prompt_tokens": len(text), "completion_tokens": 1, "total_tokens": len(text) + 1}
        head: dict[str, Any] = {
            "id": "example",
            "created": int(time.time()),
            "model": body["model"],
        }
        if not body.get("stream"):
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": answer},
                "finish_reason": "stop",
            }
            form = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            return web.json_response(form)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        head["object"] = "chat.completion.chunk"
        delta = {"role": "assistant", "content": answer}
        for chunk in (
            {**head, "choices": [{"index": 0, "delta": delta}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {**head, "choices": [], "usage": usage},
        ):
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response
