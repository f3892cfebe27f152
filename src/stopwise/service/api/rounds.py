"""Rounds over HTTP: begin, observe in any order, end, abandon. Safe to send again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.checks import StopwiseError
from stopwise.openai.errors import ProtocolError
from stopwise.service.api.bodies import Body, bad, enter
from stopwise.service.cascades.forms import RequestDecision
from stopwise.service.cascades.reported_rounds import (
    ending_name,
    finished_of,
    go_on,
    of_this_epoch,
)
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.config.tables import NAME, STORABLE_ACCEPTED, storable
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
    features = _features(cascade, body, segment)
    body.done()
    service.check_budget(key)

    async def work() -> tuple[int, dict[str, Any]]:
        decision = cascade.decide(segment, conversation or None, features)
        form = _form(decision, cascade.epoch)
        await asyncio.to_thread(service.open_rounds.begin, decision.id, cascade.name, form)
        return 201, open_round(cascade, decision.id, form)

    def undo(form: dict[str, Any]) -> Awaitable[object]:
        return asyncio.to_thread(service.open_rounds.delete, form["round"])

    return await once(request, service, key, work, undo)


async def show(request: Request) -> Response:
    """What is known of a round, open or ended."""
    service, cascade, _ = await enter(request, "infer")
    round_id = round_name(request)
    form = await asyncio.to_thread(service.open_rounds.get, cascade.name, round_id)
    if form is not None:
        _check_epoch(cascade, form)
        return Json(open_round(cascade, round_id, form))
    stored = await asyncio.to_thread(service.rounds.round, cascade.name, round_id)
    if stored is None:
        # Served without being compared: there is no row, only the reply to its end.
        name = ending_name(cascade.name, round_id)
        reply = await asyncio.to_thread(service.replies.get, "", name)
        if reply is None:
            raise no_round(round_id)
        return Response(reply[2], reply[1], media_type="application/json")
    return Json({"round": round_id, "state": "ended", "segment": stored.segment,
                         **stored.form})  # fmt: skip


async def observe(request: Request) -> Response:
    """Report what a stage gave: an output, an abstention, or a failure. In any order."""
    service, cascade, _ = await enter(request, "infer")
    round_id = round_name(request)
    body = await Body.of(request)
    stage = body.stage("stage", cascade)
    ways = [way for way in ("output", "abstained", "failed") if body.has(way)]
    if len(ways) != 1:
        raise bad("output", "one of output, abstained or failed")
    if ways[0] == "output" and body.value("output") is None:
        raise bad("output", "a value; report an abstention as abstained = true")
    if ways[0] == "abstained" and body.value("abstained") is not True:
        raise bad("abstained", "true")
    output = body.value("output")
    failed = body.text("failed", most=200) if ways[0] == "failed" else None
    given = {"output": output, "failed": failed, "cost": body.number("cost"),
             "seconds": body.number("seconds", 0.0)}  # fmt: skip
    confidence = body.real("confidence")
    if confidence is not None:
        given["confidence"] = confidence
    body.done()

    def change(form: dict[str, Any]) -> None:
        _check_open(cascade, form)
        if not form["first"] <= stage <= form["depth"] + form["deeper"]:
            names = cascade.config.stage_names
            asked = ", ".join(names[form["first"] : form["depth"] + form["deeper"] + 1])
            raise ProtocolError(
                409, f"stage: this round calls {asked}", param="stage", code="stage_not_called"
            )
        before = form["reported"].get(str(stage))
        if before is not None and before != given:
            raise ProtocolError(
                409, "stage: another output of this stage was given already", param="stage",
                code="reported_already",
            )  # fmt: skip
        form["reported"][str(stage)] = given

    return await _changed(service, cascade, round_id, change)


async def go_deeper(request: Request) -> Response:
    """Allow one stage more than was drawn, to stand in for one that failed."""
    service, cascade, _ = await enter(request, "infer")
    round_id = round_name(request)
    (await Body.of(request)).done()
    last = len(cascade.config.stages) - 1

    def change(form: dict[str, Any]) -> None:
        _check_open(cascade, form)
        if form["depth"] + form["deeper"] >= last:
            raise ProtocolError(409, "this round is at the last stage", code="last_stage")
        form["deeper"] += 1

    return await _changed(service, cascade, round_id, change)


async def _changed(
    service: Service,
    cascade: RunningCascade,
    round_id: str,
    change: Callable[[dict[str, Any]], None],
) -> Response:
    """Change an open round in a transaction, then go on per item; the round as it is now."""

    def both(form: dict[str, Any]) -> None:
        change(form)
        go_on(cascade, form)

    form = await asyncio.to_thread(service.open_rounds.change, cascade.name, round_id, both)
    if form is None:
        raise await ended_or_missing(service, cascade, round_id)
    return Json(open_round(cascade, round_id, form))


async def end(request: Request) -> Response:
    """Count the round; the answer is that of the deepest stage that answered."""
    return await _close(request, abandoned=False)


async def abandon(request: Request) -> Response:
    """Give the round up; what it saw is counted."""
    return await _close(request, abandoned=True)


async def _close(request: Request, *, abandoned: bool) -> Response:
    """Count a round; sent again, also to another replica at the same time, the same reply."""
    service, cascade, key = await enter(request, "infer")
    round_id = round_name(request)
    (await Body.of(request)).done()
    name = ending_name(cascade.name, round_id)
    before = await asyncio.to_thread(service.replies.get, "", name)
    if before is None:
        form = await asyncio.to_thread(service.open_rounds.get, cascade.name, round_id)
        if form is not None:
            _check_epoch(cascade, form)
            how = "abandon" if abandoned else "end"
            form = await asyncio.to_thread(service.open_rounds.close, cascade.name, round_id, how)
        if form is not None:
            finished = finished_of(
                cascade, round_id, form, key.id, abandoned=form["closing"] == "abandon"
            )
            await asyncio.wrap_future(service.recorder.put_and_wait(finished))
        # Whoever counted it, its reply was written in the same transaction.
        before = await asyncio.to_thread(service.replies.get, "", name)
    if before is None:
        raise await ended_or_missing(service, cascade, round_id)
    return Response(before[2], before[1], media_type="application/json")


def _form(decision: RequestDecision, epoch: str) -> dict[str, Any]:
    """What is kept of an open round."""
    return {
        "epoch": epoch,
        "decision": dict(vars(decision)),
        "first": decision.first,
        # Per item, one stage after the other.
        "depth": 0 if decision.walks else decision.depth,
        "deeper": 0,
        "reported": {},
    }


def _features(cascade: RunningCascade, body: Body, segment: str) -> dict[str, Any] | None:
    """What is known of an item before its first call, for a rule that looks at it."""
    if not body.has("features"):
        return None
    given = body.value("features")
    if cascade.items is None:
        raise bad("features", "a cascade whose policy decides per item")
    try:
        if not isinstance(given, dict):
            raise bad("features", "an object of numbers and texts, by name")
        if not all(storable(text) for text in (*given, *given.values()) if isinstance(text, str)):
            raise bad("features", STORABLE_ACCEPTED)
        cascade.items.check_features(given, segment)
    except StopwiseError as error:
        raise bad("features", f"what the rule takes ({error})") from None
    return given


def _check_epoch(cascade: RunningCascade, form: dict[str, Any]) -> None:
    """Stages are kept by number: after a change of the file a number may be another stage."""
    if not of_this_epoch(cascade, form):
        message = (
            "this round began before a stage, a price, the comparator or the kind of policy"
            " changed; begin again"
        )
        raise ProtocolError(409, message, code="another_epoch")


def _check_open(cascade: RunningCascade, form: dict[str, Any]) -> None:
    """A round that is being ended receives nothing more."""
    _check_epoch(cascade, form)
    if "closing" in form:
        raise _has_ended()


def open_round(cascade: RunningCascade, round_id: str, form: dict[str, Any]) -> dict[str, Any]:
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
        "depth": form["depth"],
        "probability": decision["probability"],
        "advised": None if advised is None else names[advised],
        "compared": not decision["uncounted"],
        "stages": list(called),
        "next": [name for name in called if str(names.index(name)) not in form["reported"]],
        "reported": [names[int(stage)] for stage in sorted(form["reported"], key=int)],
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
    """Why a round receives nothing more."""
    stored = await asyncio.to_thread(service.rounds.round, cascade.name, round_id)
    if stored is None:
        return no_round(round_id)
    return _has_ended()


def _has_ended() -> ProtocolError:
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
