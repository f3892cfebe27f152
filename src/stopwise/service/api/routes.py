"""The paths of the API; `openapi` describes the same, and a test holds the two together."""

from __future__ import annotations

from starlette.routing import Route

from stopwise.service.api import changing, log, openapi, reading, rounds

_C = "/api/v1/cascades/{cascade}"

API = [
    Route("/api/v1/openapi.json", openapi.openapi),
    Route("/api/v1/cascades", reading.cascades),
    Route(f"{_C}/rounds", rounds.begin, methods=["POST"]),
    Route(f"{_C}/rounds/{{round}}", rounds.show),
    Route(f"{_C}/rounds/{{round}}/outputs", rounds.observe, methods=["POST"]),
    Route(f"{_C}/rounds/{{round}}/deeper", rounds.go_deeper, methods=["POST"]),
    Route(f"{_C}/rounds/{{round}}/end", rounds.end, methods=["POST"]),
    Route(f"{_C}/rounds/{{round}}/abandon", rounds.abandon, methods=["POST"]),
    Route(f"{_C}/evidence", reading.evidence),
    Route(f"{_C}/report", reading.report),
    Route(f"{_C}/verdict", reading.verdict),
    Route(f"{_C}/explain", reading.explain),
    Route(f"{_C}/mode", reading.mode, methods=["GET"]),
    Route(f"{_C}/mode", changing.set_mode, methods=["PUT"]),
    Route(f"{_C}/labels", changing.labels, methods=["GET"]),
    Route(f"{_C}/labels", changing.put_label, methods=["POST"]),
    Route(f"{_C}/audit", reading.audit),
    Route(f"{_C}/log", log.log),
]
