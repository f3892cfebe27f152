"""`POST /v1/decisions`: questions with finite answers, compared exactly."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.completions import read_completion
from stopwise.openai.decisions import read_question
from stopwise.service.front.answering import answering
from stopwise.service.front.asking import ask, may_infer
from stopwise.service.front.chat import note
from stopwise.service.front.exchange import Exchange
from stopwise.service.front.plain import renamed_body
from stopwise.service.http.json import Json

SEGMENT = "decisions"
"""Where they count unless a header says otherwise: they do not disagree as free texts do."""


async def decisions(request: Request) -> Response:
    """Answer a question; `decision` is null where the model abstained."""
    service, key = await may_infer(request)
    question = read_question(await request.body())
    asked = await ask(request, service, key, question.chat(), SEGMENT)
    note(request, asked.decision.id, asked.cascade.name)
    exchange = Exchange(asked, question.read)
    came = await answering(request, exchange)
    if came is None:
        return Response(status_code=499)
    assert came.body is not None
    exchange.finish(came.call.stage)
    await service.recorder.held.wait()
    answer = read_completion(came.body)
    decided = question.read(answer) if answer is not None else None
    usage = renamed_body(asked, came.body, came.call.cost).get("usage")
    return Json(
        {
            "id": f"decision-{asked.decision.id}",
            "object": "decision",
            "created": int(time.time()),
            "model": asked.cascade.name,
            "kind": question.kind,
            "decision": None if decided is None else decided.value,
            "abstained": decided is None,
            "usage": usage,
        },
        headers=exchange.headers(came.call.stage),
    )
