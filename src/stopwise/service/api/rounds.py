"""Rounds over HTTP: begin, observe in any order, end, abandon. Safe to send again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.errors import ProtocolError
from stopwise.service.api.bodies import Body, bad, enter
from stopwise.service.cascades.forms import Finished, RequestDecision
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.told import finished_of
from stopwise.service.config.tables import NAME
from stopwise.service.core import Service
from stopwise.service.database.keys import Key
from stopwise.service.database.replies import fingerprint
from stopwise.service.http.json import Json


async def begin(request: Request) -> Response:
    """Open a round: which stages to call is decided now."""
    service, cascade, key = await enter(request, "infer")
    body = await Body.of(request)
    segment = body.name("segment", "")
    conversation = body.text("conversation", most=500)
    body.done()
    service.check_budget(key)

    async def work() -> tuple[int, dict[str, Any]]:
        decision = cascade.decide(segment, conversation or None)
        form = _form(decision, cascade.epoch)
        await asyncio.to_thread(service.open_rounds.begin, decision.id, cascade.name, form)
        return 201, told(cascade, decision.id, form)

    def undo(form: dict[str, Any]) -> Awaitable[object]:
        return asyncio.to_thread(service.open_rounds.take, cascade.name, form["round"])

    return await once(request, service, key, work, undo)


async def show(request: Request) -> Response:
    """What is known of a round, open or ended."""
    service, cascade, _ = await enter(request, "infer")
    round_id = round_name(request)
    form = await asyncio.to_thread(service.open_rounds.get, cascade.name, round_id)
    if form is not None:
        _check_epoch(cascade, form)
        return Json(told(cascade, round_id, form))
    stored = await asyncio.to_thread(service.rounds.round, cascade.name, round_id)
    if stored is None:
        raise no_round(round_id)
    return Json({"round": round_id, "state": "ended", "segment": stored.segment,
                         **stored.form})  # fmt: skip


async def observe(request: Request) -> Response:
    """Tell what a stage gave: an output, an abstention, or a failure. In any order."""
    service, cascade, _ = await enter(request, "infer")
    round_id = round_name(request)
    body = await Body.of(request)
    stage = body.stage("stage", cascade)
    ways = [way for way in ("output", "abstained", "failed") if body.has(way)]
    if len(ways) != 1:
        raise bad("output", "one of output, abstained or failed")
    if ways[0] == "output" and body.value("output") is None:
        raise bad("output", "a value; tell an abstention as abstained = true")
    if ways[0] == "abstained" and body.value("abstained") is not True:
        raise bad("abstained", "true")
    output = body.value("output")
    failed = body.text("failed", most=200) if ways[0] == "failed" else None
    given = {"output": output, "failed": failed, "cost": body.number("cost"),
             "seconds": body.number("seconds", 0.0)}  # fmt: skip
    body.done()

    def change(form: dict[str, Any]) -> None:
        _check_epoch(cascade, form)
        if not form["first"] <= stage <= form["depth"] + form["deeper"]:
            names = cascade.config.stage_names
            asked = ", ".join(names[form["first"] : form["depth"] + form["deeper"] + 1])
            raise ProtocolError(
                409, f"stage: this round calls {asked}", param="stage", code="stage_not_called"
            )
        before = form["told"].get(str(stage))
        if before is not None and before != given:
            raise ProtocolError(
                409, "stage: another output of this stage was told already", param="stage",
                code="told_already",
            )  # fmt: skip
        form["told"][str(stage)] = given

    form = await asyncio.to_thread(service.open_rounds.change, cascade.name, round_id, change)
    if form is None:
        raise await ended_or_missing(service, cascade, round_id)
    return Json(told(cascade, round_id, form))


async def go_deeper(request: Request) -> Response:
    """Allow one stage more than was drawn, to stand in for one that failed."""
    service, cascade, _ = await enter(request, "infer")
    round_id = round_name(request)
    (await Body.of(request)).done()
    last = len(cascade.config.stages) - 1

    def change(form: dict[str, Any]) -> None:
        _check_epoch(cascade, form)
        if form["depth"] + form["deeper"] >= last:
            raise ProtocolError(409, "this round is at the last stage", code="last_stage")
        form["deeper"] += 1

    form = await asyncio.to_thread(service.open_rounds.change, cascade.name, round_id, change)
    if form is None:
        raise await ended_or_missing(service, cascade, round_id)
    return Json(told(cascade, round_id, form))


async def end(request: Request) -> Response:
    """Count the round; the answer is that of the deepest stage that answered."""
    return await _close(request, abandoned=False)


async def abandon(request: Request) -> Response:
    """Give the round up; what it saw is counted."""
    return await _close(request, abandoned=True)


async def _close(request: Request, *, abandoned: bool) -> Response:
    service, cascade, key = await enter(request, "infer")
    round_id = round_name(request)
    (await Body.of(request)).done()
    name = f"end {cascade.name} {round_id}"
    before = await asyncio.to_thread(service.replies.get, "", name)
    if before is not None:
        return Response(before[2], before[1], media_type="application/json")
    # Whoever ends it while it is being ended waits for the same reply; a client that leaves
    # meanwhile finds the reply when it asks again.
    closing = service.closing.get(name)
    if closing is None:
        closing = asyncio.create_task(_count(service, cascade, round_id, key, name, abandoned))
        service.closing[name] = closing
        closing.add_done_callback(lambda task: service.closing.pop(name))
    return Response(await asyncio.shield(closing), media_type="application/json")


async def _count(
    service: Service, cascade: RunningCascade, round_id: str, key: Key, name: str, abandoned: bool
) -> str:
    """Count a round and keep the reply under a name; the reply."""
    form = await asyncio.to_thread(service.open_rounds.get, cascade.name, round_id)
    if form is not None:
        _check_epoch(cascade, form)
        form = await asyncio.to_thread(service.open_rounds.take, cascade.name, round_id)
    if form is None:
        before = await asyncio.to_thread(service.replies.get, "", name)
        if before is not None:
            return before[2]
        raise await ended_or_missing(service, cascade, round_id)
    finished = finished_of(cascade, round_id, form, key.id, abandoned)
    await asyncio.wrap_future(service.recorder.put_and_tell(finished))
    reply = json.dumps(_ended(cascade, finished, form))
    await asyncio.to_thread(service.replies.put, "", name, "", 200, reply)
    return reply


def _form(decision: RequestDecision, epoch: str) -> dict[str, Any]:
    """What is kept of an open round."""
    return {
        "epoch": epoch,
        "decision": dict(vars(decision)),
        "first": decision.first,
        "depth": decision.depth,
        "deeper": 0,
        "told": {},
    }


def _check_epoch(cascade: RunningCascade, form: dict[str, Any]) -> None:
    """Stages are kept by number: after a change of the file a number may be another stage."""
    if form.get("epoch") != cascade.epoch:
        message = "this round began before a stage, a price or the comparator changed; begin again"
        raise ProtocolError(409, message, code="another_epoch")


def told(cascade: RunningCascade, round_id: str, form: dict[str, Any]) -> dict[str, Any]:
    """An open round, as the API shows it."""
    names, decision = cascade.config.stage_names, form["decision"]
    called = names[form["first"] : form["depth"] + form["deeper"] + 1]
    advised = decision["advised"]
    return {
        "round": round_id,
        "state": "open",
        "cascade": cascade.name,
        "segment": decision["segment"],
        "mode": decision["mode"],
        "depth": decision["depth"],
        "probability": decision["probability"],
        "advised": None if advised is None else names[advised],
        "compared": not decision["uncounted"],
        "stages": list(called),
        "told": [names[int(stage)] for stage in sorted(form["told"], key=int)],
    }


def _ended(cascade: RunningCascade, finished: Finished, form: dict[str, Any]) -> dict[str, Any]:
    names, served = cascade.config.stage_names, finished.served
    answer = None if served is None else form["told"][str(served)]["output"]
    return {
        "round": finished.decision.id,
        "state": "ended",
        "answer": answer,
        "stage": None if served is None else names[served],
        "cost": finished.cost,
        "abandoned": finished.abandoned,
    }


def round_name(request: Request) -> str:
    """The id in the path."""
    name = str(request.path_params["round"])
    if not NAME.fullmatch(name):
        raise no_round(name)
    return name


def no_round(round_id: str) -> ProtocolError:
    """There is no such round."""
    return ProtocolError(404, f"there is no round {round_id[:100]!r}", code="no_such_round")


async def ended_or_missing(
    service: Service, cascade: RunningCascade, round_id: str
) -> ProtocolError:
    """Why a round cannot be told anything any more."""
    stored = await asyncio.to_thread(service.rounds.round, cascade.name, round_id)
    if stored is None:
        return no_round(round_id)
    return ProtocolError(409, "this round has ended", code="round_ended")


async def once(
    request: Request,
    service: Service,
    key: Key,
    work: Callable[[], Awaitable[tuple[int, dict[str, Any]]]],
    undo: Callable[[dict[str, Any]], Awaitable[object]],
) -> Response:
    """Do the work once for each `Idempotency-Key`: the same request again gets the same reply.

    Of two at once both work, the second one's is undone.
    """
    name = request.headers.get("idempotency-key")
    if name is None:
        status, form = await work()
        return Json(form, status)
    if not NAME.fullmatch(name):
        raise bad("idempotency-key", "1 to 100 of the letters A-Z a-z 0-9 _ . : -")
    asked = fingerprint(request.url.path.encode(), await request.body())
    before = await asyncio.to_thread(service.replies.get, key.id, name)
    if before is None:
        status, form = await work()
        reply = json.dumps(form)
        if await asyncio.to_thread(service.replies.put, key.id, name, asked, status, reply):
            return Response(reply, status, media_type="application/json")
        # The same request came twice at once; the first reply stands for both.
        await undo(form)
        before = await asyncio.to_thread(service.replies.get, key.id, name)
        assert before is not None
    if before[0] != asked:
        message = "idempotency-key: it was used for another request"
        raise ProtocolError(422, message, code="idempotency_key_reused")
    return Response(before[2], before[1], media_type="application/json")
