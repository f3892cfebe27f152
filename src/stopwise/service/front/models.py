"""The smaller paths: models, embeddings, and what is not here."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.bodies import read_object
from stopwise.openai.errors import ProtocolError
from stopwise.service.core import Service
from stopwise.service.front.answering import no_answer
from stopwise.service.front.asking import may_infer
from stopwise.service.http.access import who
from stopwise.service.http.json import Json
from stopwise.service.upstream.calls import UpstreamError


def _model(service: Service, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(service.started),
        "owned_by": "stopwise",
    }


async def models(request: Request) -> Response:
    """The cascades, as models."""
    await who(request, "infer")
    service: Service = request.app.state.service
    names = [name for name, cascade in service.cascades.items() if cascade.config.served]
    names += list(service.config.embeddings)
    return Json({"object": "list", "data": [_model(service, name) for name in names]})


async def model(request: Request) -> Response:
    """One of them."""
    await who(request, "infer")
    service: Service = request.app.state.service
    name = request.path_params["name"]
    if name not in service.config.embeddings:
        service.cascade(name)
    return Json(_model(service, name))


async def embeddings(request: Request) -> Response:
    """Passed through to the upstream of that name, never learned from."""
    service, _ = await may_infer(request)
    body = read_object(await request.body())
    name = body.get("model")
    upstream = service.config.embeddings.get(name) if isinstance(name, str) else None
    if upstream is None:
        known = ", ".join(service.config.embeddings) or "none in this configuration"
        raise ProtocolError(
            404,
            f"model: need a name under [embeddings], of which there are {known}",
            code="model_not_found",
            param="model",
        )
    sent = json.dumps({**body, "model": upstream.model}).encode()
    try:
        came = await service.upstreams.call(upstream, "/embeddings", sent)
    except UpstreamError as error:
        raise no_answer(error) from None
    if isinstance(came, dict):
        came["model"] = name
    return Json(came)


async def no_responses(request: Request) -> Response:
    """Not here, said in the protocol's form so that clients show it."""
    raise ProtocolError(
        404,
        "the Responses API is not served here; use /v1/chat/completions (for the openai client:"
        " client.chat.completions.create)",
        code="unsupported_endpoint",
    )
