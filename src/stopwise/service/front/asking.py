"""From an HTTP request to a decision: whose it is, which segment, which conversation, how deep."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from stopwise.openai.bodies import ChatRequest
from stopwise.openai.conversations import conversation_of
from stopwise.openai.errors import ProtocolError
from stopwise.service.cascades.forms import RequestDecision
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.config.tables import NAME, NAME_ACCEPTED
from stopwise.service.core import Service
from stopwise.service.database.connection import StoreUnavailableError
from stopwise.service.database.keys import Key
from stopwise.service.database.writing import COMPARISON
from stopwise.service.front.holding import HeldBack, may_cost
from stopwise.service.http.access import refuse_other_sites, who


@dataclass(frozen=True)
class AskedRequest:
    """A request that may be answered."""

    service: Service
    cascade: RunningCascade
    chat: ChatRequest
    decision: RequestDecision
    key: Key
    held: HeldBack


async def may_infer(request: Request) -> tuple[Service, Key]:
    """The service and the key of a request that wants an answer."""
    refuse_other_sites(request)
    key = await who(request, "infer")
    service: Service = request.app.state.service
    if service.stopping:
        raise ProtocolError(503, "the service is stopping", code="stopping")
    if service.config.server.store_away == "refuse" and service.store_error is not None:
        raise StoreUnavailableError(f"{service.store_error}; try again")
    service.check_budget(key)
    return service, key


async def ask(
    request: Request, service: Service, key: Key, chat: ChatRequest, usual_segment: str = ""
) -> AskedRequest:
    """Decide how deep a request goes, and hold back what that may cost."""
    cascade = service.cascade(chat.model)
    config = cascade.config
    if not config.served:
        raise ProtocolError(
            400,
            f"model: the stages of {config.name!r} are not language models; use"
            f" /api/v1/cascades/{config.name}/rounds",
            param="model",
        )
    segment = segment_of(request, cascade) or usual_segment
    if chat.stage is not None:
        if chat.stage not in config.stage_names:
            raise ProtocolError(
                404,
                f"model: {config.name!r} has no stage {chat.stage[:100]!r}; it has"
                f" {', '.join(config.stage_names)}",
                code="model_not_found",
                param="model",
            )
        stage = config.stage_names.index(chat.stage)
        decision = cascade.uncounted(cascade.segment(segment), "pinned", stage)
    elif chat.choices > 1:
        decision = cascade.uncounted(cascade.segment(segment), "many choices")
    else:
        named = request.headers.get("x-stopwise-conversation")
        sticky = config.sticky == "conversation"
        conversation = conversation_of(chat.body, named) if sticky else None
        decision = await _decided(service, cascade, chat, segment, conversation)
    held = HeldBack(service, cascade, chat, key)
    await held.take(decision.first, decision.depth)
    return AskedRequest(service, cascade, chat, decision, key, held)


async def _decided(
    service: Service,
    cascade: RunningCascade,
    chat: ChatRequest,
    segment: str,
    conversation: str | None,
) -> RequestDecision:
    """A decision, in the knowledge of whether comparisons may be paid; nothing is held after it."""
    budget = cascade.config.comparison_budget
    if budget is None:
        return cascade.decide(segment, conversation)
    name = f"{COMPARISON}:{cascade.name}"
    # Of all stages: whether a request is compared must not depend on the depth that it would draw.
    amount = sum(may_cost(cascade, chat, s)[0] for s in range(len(cascade.config.stages) - 1))
    affordable = await service.spending.fund(name, amount, budget)
    try:
        return cascade.decide(segment, conversation, affordable=affordable)
    finally:
        if affordable:
            service.spending.hold(name, -amount)


def segment_of(request: Request, cascade: RunningCascade) -> str:
    """The segment that a header names; empty where none is."""
    header = cascade.config.segment_by
    value = request.headers.get(header, "") if header is not None else ""
    if value and not NAME.fullmatch(value):
        raise ProtocolError(400, f"{header}: need {NAME_ACCEPTED}", code="invalid_segment")
    return value


def decision_headers(
    decision: RequestDecision, names: tuple[str, ...], served: int | None
) -> dict[str, str]:
    """The headers that say what was decided.

    Args:
        decision: what has become of the request.
        names: of the stages.
        served: the stage that answers.
    """
    headers = {
        "x-stopwise-round": decision.id,
        "x-stopwise-mode": decision.mode,
        "x-stopwise-depth": str(decision.depth),
        "x-stopwise-probability": f"{decision.probability:.12g}",
        "x-stopwise-compared": "false" if decision.uncounted else "true",
    }
    if served is not None:
        headers["x-stopwise-stage"] = names[served]
    if decision.mode == "advise" and decision.advised is not None:
        headers["x-stopwise-advised"] = names[decision.advised]
    return headers
