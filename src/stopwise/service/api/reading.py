"""What was learned: evidence, report, verdict, explanation, audit."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.logs.auditing.files import settled_by
from stopwise.logs.reporting.as_json import readings_dict
from stopwise.logs.settings import LogSettings
from stopwise.service.api.bodies import enter, query_name, query_number
from stopwise.service.cascades.verdicts import (
    costs_now,
    evidence_of,
    judged_of,
    more_sentences,
    open_question,
    sentence_of,
)
from stopwise.service.core import Service
from stopwise.service.http.access import who
from stopwise.service.http.json import Json
from stopwise.service.views.cascade import cascade_view, pair_lines
from stopwise.service.views.cascades import cascade_lines
from stopwise.service.views.health import health_view
from stopwise.service.views.labels import current_audit
from stopwise.service.views.modes import mode_view
from stopwise.service.views.savings import savings_view


async def cascades(request: Request) -> Response:
    """Every cascade in a line."""
    await who(request, "read")
    service: Service = request.app.state.service
    lines = await asyncio.to_thread(cascade_lines, service)
    return Json({"cascades": [asdict(line) for line in lines]})


async def evidence(request: Request) -> Response:
    """For every pair: how often seen together, how often in disagreement."""
    _, cascade, _ = await enter(request, "read")
    segment = query_name(request, "segment")
    found = await asyncio.to_thread(evidence_of, cascade, segment)
    return Json(
        {
            "cascade": cascade.name,
            "epoch": cascade.epoch,
            "segment": segment,
            "stages": list(cascade.config.stage_names),
            "seen": found.seen.tolist(),
            "disagreed": found.disagreed.tolist(),
            "rounds": cascade.learner.rounds,
        }
    )


async def report(request: Request) -> Response:
    """Counts, spending and savings."""
    service, cascade, _ = await enter(request, "read")
    segment = query_name(request, "segment")

    def read() -> dict[str, Any]:
        sums = service.rounds.sums(cascade.name, epoch=cascade.epoch, segment=segment)
        return {
            "cascade": cascade.name,
            "epoch": cascade.epoch,
            "segment": segment,
            "mode": cascade.mode,
            "sums": sums,
            "savings": asdict(savings_view(service, cascade)),
            "health": asdict(health_view(service, cascade)),
        }

    return Json(await asyncio.to_thread(read))


async def verdict(request: Request) -> Response:
    """Where to stop, and how far that can be known: certain, or not knowable without labels."""
    service, cascade, _ = await enter(request, "read")
    segment = query_name(request, "segment")

    def read() -> dict[str, Any]:
        sums = service.rounds.sums(cascade.name, epoch=cascade.epoch, segment=segment)
        judged = judged_of(cascade, sums, segment)
        found = None if judged is None else judged.verdict
        readings = {} if judged is None else readings_dict(judged.readings, judged.verdict)
        return {
            "cascade": cascade.name,
            "segment": segment,
            "sentence": sentence_of(cascade, judged, sums),
            "more": more_sentences(cascade, judged),
            "not_knowable": open_question(judged),
            "headline_stage": readings.get("headline_stage"),
            "headline_reading": readings.get("headline_reading"),
            "readings": readings.get("readings"),
            "nothing_deeper_pays": None if judged is None else judged.nothing_deeper_pays,
            "answers_changed_at_most": None if judged is None else judged.answers_changed_at_most,
            "pairs": [
                asdict(line)
                for line in pair_lines(cascade, found, costs_now(cascade, sums), segment)
            ],
        }

    return Json(await asyncio.to_thread(read))


async def explain(request: Request) -> Response:
    """Why depths are drawn as they are: law, costs, pairs against thresholds, hours."""
    service, cascade, _ = await enter(request, "read")
    segment = query_name(request, "segment")
    hours = query_number(request, "hours", 24, 1, 24 * 366)
    view = await asyncio.to_thread(cascade_view, service, cascade, segment, hours)
    return Json(asdict(view))


async def mode(request: Request) -> Response:
    """The mode, what enforcing would change, and who changed it when."""
    service, cascade, _ = await enter(request, "read")
    return Json(asdict(await asyncio.to_thread(mode_view, service, cascade)))


async def audit(request: Request) -> Response:
    """Where the audit stands: what the labels settle and which rounds to label next."""
    service, cascade, _ = await enter(request, "read")
    found = await asyncio.to_thread(current_audit, service, cascade)
    names = cascade.config.stage_names
    if found is None:
        return Json({"settled": False, "best": None, "labels": 0, "to_label": []})
    return Json(
        {
            "settled": found.settled,
            "settled_by": settled_by(found),
            "level": LogSettings.level,
            "best": None if found.best is None else names[found.best],
            "in_question": [names[stage] for stage in found.in_question],
            "labels": found.labels,
            "items": found.items,
            "worth_labelling": found.worth_labelling,
            "pairs": [
                {
                    "shallow": names[pair.shallow],
                    "deep": names[pair.deep],
                    "labelled": pair.labelled,
                    "low": pair.low,
                    "high": pair.high,
                    "threshold": pair.threshold,
                    "finding": pair.finding,
                    "guaranteed": pair.guaranteed,
                }
                for pair in found.pairs
            ],
            "to_label": list(found.to_label),
        }
    )
