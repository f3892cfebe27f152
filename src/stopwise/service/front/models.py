"""The smaller paths: models, embeddings, and what is not here."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.bodies import read_object
from stopwise.openai.completions import usage_of
from stopwise.openai.errors import ProtocolError
from stopwise.service.config.forms import StageConfig
from stopwise.service.core import Service
from stopwise.service.front.answering import no_answer
from stopwise.service.front.asking import may_infer
from stopwise.service.front.exchange import cost_of
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
    service, key = await may_infer(request)
    data = await request.body()
    body = read_object(data)
    name = body.get("model")
    embedder = service.config.embeddings.get(name) if isinstance(name, str) else None
    if embedder is None:
        known = ", ".join(service.config.embeddings) or "none in this configuration"
        raise ProtocolError(
            404,
            f"model: need a name under [embeddings], of which there are {known}",
            code="model_not_found",
            param="model",
        )
    held = embedder.estimate(0.0, len(data))
    await service.reserve(key, held)
    cost = 0.0
    try:
        came = await _embedded(service, embedder, body)
        usage = came.get("usage") if isinstance(came, dict) else None
        cost = cost_of(embedder, usage_of(usage))
    except UpstreamError as error:
        cost = embedder.cost if error.status == 504 else 0.0  # a timeout may be on the bill
        raise no_answer(error) from None
    finally:
        service.recorder.put_spent(embedder.name, key.id, cost)
        if key.id:
            service.spending.hold(f"key:{key.id}", -held)
    if isinstance(came, dict):
        came["model"] = name
        if isinstance(usage, dict):
            came["usage"] = {**usage, "cost": cost}
    return Json(came)


async def _embedded(service: Service, embedder: StageConfig, body: dict[str, Any]) -> Any:
    assert embedder.upstream is not None
    sent = json.dumps({**body, "model": embedder.upstream.model}).encode()
    return await service.upstreams.call(embedder.upstream, "/embeddings", sent)


async def no_responses(request: Request) -> Response:
    """Not here, said in the protocol's form so that clients show it."""
    raise ProtocolError(
        404,
        "the Responses API is not served here; use /v1/chat/completions (for the openai client:"
        " client.chat.completions.create)",
        code="unsupported_endpoint",
    )
