"""The log of rounds, as `stopwise analyze`, `replay` and `audit` read it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from stopwise.logs.reading.log import COST_SUFFIX
from stopwise.service.api.bodies import bad, enter
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.core import Service
from stopwise.service.database.labels import Label
from stopwise.service.database.rounds import StoredRound

_PAGE = 1000


async def log(request: Request) -> Response:
    """All rounds of the present epoch: a row each, a column for each stage.

    A cell holds a number that is equal for answers that agree; empty where there is no answer.
    `truth` is that number for the answers that a label calls right, and "none" where none is. What
    was decided per item by its answers is in the JSON lines alone: as a row of a table it would be
    taken for a fair sample. So is, where a request goes on after an abstention, whatever was not
    drawn to go through all stages.
    """
    service, cascade, _ = await enter(request, "read")
    kind = request.query_params.get("format", "csv")
    if kind not in ("csv", "jsonl"):
        raise bad("format", "csv or jsonl")
    if kind == "csv":
        return StreamingResponse(_csv(service, cascade), media_type="text/csv; charset=utf-8")
    return StreamingResponse(_jsonl(service, cascade), media_type="application/x-ndjson")


async def _pages(
    service: Service, cascade: RunningCascade
) -> AsyncIterator[tuple[list[StoredRound], dict[str, Label]]]:
    labels = await asyncio.to_thread(service.labels.all, cascade.name)
    after = (0.0, "")
    while True:
        page = await asyncio.to_thread(_page, service, cascade, after)
        if page:
            yield page, labels
        if len(page) < _PAGE:
            return
        after = (page[-1].at, page[-1].id)


def _page(service: Service, cascade: RunningCascade, after: tuple[float, str]) -> list[StoredRound]:
    return service.rounds.rounds(cascade.name, cascade.epoch, after=after, limit=_PAGE)


async def _csv(service: Service, cascade: RunningCascade) -> AsyncIterator[bytes]:
    names = cascade.config.stage_names
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(
        ["item", "segment", "at", *names, *(f"{name}{COST_SUFFIX}" for name in names), "truth"]
    )
    async for page, labels in _pages(service, cascade):
        for stored in page:
            if stored.form.get("decided"):
                continue
            codes, costs = stored.form["codes"], stored.form["costs"]
            blank = [""] * (len(names) - len(codes))
            if cascade.config.goes_on and stored.form["depth"] < len(names) - 1:
                continue
            writer.writerow(
                [
                    stored.id,
                    stored.segment,
                    f"{stored.at:.3f}",
                    *("" if code < 0 else code for code in codes),
                    *blank,
                    *costs[: len(codes)],
                    *blank,
                    _truth(codes, labels.get(stored.id)),
                ]
            )
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue().encode()


async def _jsonl(service: Service, cascade: RunningCascade) -> AsyncIterator[bytes]:
    """All that is kept of each round; what was said per item is `rule`, as `item` is the round."""
    async for page, labels in _pages(service, cascade):
        lines = []
        for stored in page:
            kept = dict(stored.form)
            rule = {"rule": kept.pop("item")} if "item" in kept else {}
            form = {"item": stored.id, "segment": stored.segment, "at": stored.at, **kept, **rule}
            label = labels.get(stored.id)
            if label is not None:
                form["correct"] = list(label.correct)
            lines.append(json.dumps(form) + "\n")
        yield "".join(lines).encode()


def _truth(codes: list[int], label: Label | None) -> str:
    if label is None:
        return ""
    right = [codes[stage] for stage in label.correct if stage < len(codes)]
    return str(right[0]) if right else "none"
