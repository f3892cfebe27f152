"""Modes and labels."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.openai.errors import ProtocolError
from stopwise.service.api.bodies import Body, bad, enter
from stopwise.service.api.rounds import no_round
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.config.forms import FROM_FILE, MODES, FromFile, Mode
from stopwise.service.config.tables import NAME
from stopwise.service.http.json import Json


async def set_mode(request: Request) -> Response:
    """Switch a cascade; written to the trail with its reason."""
    service, cascade, key = await enter(request, "admin")
    body = await Body.of(request)
    mode = mode_of(body.value("mode"))
    if mode is None:
        raise bad("mode", MODES_ACCEPTED)
    reason = body.text("reason").strip()
    body.done()
    if not reason:
        raise bad("reason", "a few words: why")
    old = cascade.mode
    await asyncio.to_thread(service.set_mode, cascade, mode, key, reason)
    return Json({"cascade": cascade.name, "old": old, "mode": cascade.mode})


MODES_ACCEPTED = f"one of {', '.join(MODES)}, or {FROM_FILE} for that of the configuration file"


def mode_of(given: Any) -> Mode | FromFile | None:
    """A mode that somebody asks for; None where it is none.

    >>> mode_of("enforce"), mode_of("file"), mode_of("on")
    ('enforce', 'file', None)
    """
    return next((known for known in (*MODES, FROM_FILE) if known == given), None)


async def labels(request: Request) -> Response:
    """Every label."""
    service, cascade, _ = await enter(request, "read")
    found = await asyncio.to_thread(service.labels.all, cascade.name)
    names = cascade.config.stage_names
    return Json(
        {
            "labels": [
                {
                    "round": label.round_id,
                    "at": label.at,
                    "who": label.who,
                    "correct": [names[stage] for stage in label.correct if stage < len(names)],
                    "note": label.note,
                }
                for label in found.values()
            ]
        }
    )


async def put_label(request: Request) -> Response:
    """Say which answers of a round are right; none of them is an answer too."""
    service, cascade, key = await enter(request, "label")
    body = await Body.of(request)
    round_id = body.value("round")
    if not isinstance(round_id, str) or not NAME.fullmatch(round_id):
        raise bad("round", "the id of a round")
    correct = correct_stages(cascade, body.value("correct"))
    note = body.text("note")
    body.done()
    await asyncio.to_thread(keep_label, service, cascade, round_id, key.name, correct, note)
    return Json({"round": round_id, "correct": correct}, 201)


def keep_label(
    service: Any,
    cascade: RunningCascade,
    round_id: str,
    who: str,
    correct: list[int],
    note: str = "",
) -> None:
    """Keep a label, if the round is there and the answers called right agree (this blocks)."""
    stored = service.rounds.round(cascade.name, round_id)
    if stored is None:
        raise no_round(round_id)
    codes = stored.form["codes"]
    groups = {codes[stage] if stage < len(codes) else -1 for stage in correct}
    if len(groups) > 1 or -1 in groups:
        message = "correct: need stages of this round whose answers agree"
        raise ProtocolError(422, message, param="correct", code="invalid_value")
    service.labels.put(cascade.name, round_id, who, correct, note)


def correct_stages(cascade: RunningCascade, given: Any) -> list[int]:
    """Stages by name or number."""
    if not isinstance(given, list) or len(given) > len(cascade.config.stages):
        raise bad("correct", "a list of stages, empty if none is right")
    return sorted({Body({"correct": stage}).stage("correct", cascade) for stage in given})
