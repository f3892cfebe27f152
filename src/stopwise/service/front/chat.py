"""`POST /v1/chat/completions`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.bodies import read_chat
from stopwise.service.front.asking import ask, may_infer
from stopwise.service.front.exchange import Exchange
from stopwise.service.front.plain import answer_plain
from stopwise.service.front.streamed import answer_streamed


async def chat_completions(request: Request) -> Response:
    """Answer a chat request: depth first, then the calls."""
    service, key = await may_infer(request)
    chat = read_chat(await request.body())
    asked = await ask(request, service, key, chat)
    note(request, asked.decision.id, asked.cascade.name)
    exchange = Exchange(asked)
    if chat.streamed:
        return await answer_streamed(request, exchange)
    return await answer_plain(request, exchange)


def note(request: Request, round_id: str, cascade: str) -> None:
    """Let the log line of this request say which round it was."""
    request.scope["state"]["log"] = {"round": round_id, "cascade": cascade}
