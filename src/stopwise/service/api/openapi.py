"""The OpenAPI document: written from one table, served at `/api/v1/openapi.json`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stopwise.service.config.forms import FROM_FILE, MODES
from stopwise.service.http.json import Json
from stopwise.version import __version__

_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,100}$"}
_NUMBER = {"type": "number", "minimum": 0}
_STAGE = {
    "description": "a stage, by name or by number from 0",
    "anyOf": [_NAME, {"type": "integer", "minimum": 0}],
}


def _object(required: list[str], **fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


_BODIES: dict[str, dict[str, Any]] = {
    "Begin": _object(
        [],
        segment={**_NAME, "description": "whose evidence it is"},
        conversation={"type": "string", "maxLength": 500},
        features={
            "type": "object",
            "description": "what is known of the item, for a policy that decides per item",
        },
    ),
    "Output": _object(
        ["stage"],
        stage=_STAGE,
        output={"description": "any JSON value but null"},
        abstained={"const": True},
        failed={"type": "string", "maxLength": 200, "description": "what went wrong"},
        cost=_NUMBER,
        seconds=_NUMBER,
        confidence={"type": "number", "description": "how sure the stage says it is"},
    ),
    "Nothing": _object([]),
    "Mode": _object(
        ["mode", "reason"],
        mode={
            "enum": [*MODES, FROM_FILE],
            "description": f"a mode is kept, whatever the file says; {FROM_FILE} follows the file",
        },
        reason={"type": "string", "minLength": 1, "maxLength": 2000},
    ),
    "Label": _object(
        ["round", "correct"],
        round=_NAME,
        correct={"type": "array", "items": _STAGE, "description": "empty if none is right"},
        note={"type": "string", "maxLength": 2000},
    ),
}
_OPEN_ROUND = {
    "type": "object",
    "required": ["round", "state", "depth", "probability", "stages"],
    "properties": {
        "round": _NAME,
        "state": {"enum": ["open", "ended"]},
        "depth": {"type": "integer", "minimum": 0},
        "probability": {"type": "number", "minimum": 0, "maximum": 1},
        "stages": {"type": "array", "items": {"type": "string"}},
        "next": {"type": "array", "items": {"type": "string"}},
    },
}
_ANSWER = {"type": "object"}
_SEGMENT = {
    "name": "segment",
    "in": "query",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{0,100}$"},
    "description": "one segment; all together if left out",
}
_HOURS = {"name": "hours", "in": "query",
          "schema": {"type": "integer", "minimum": 1, "maximum": 24 * 366}}  # fmt: skip
_FORMAT = {"name": "format", "in": "query", "schema": {"enum": ["csv", "jsonl"]}}
_IDEMPOTENCY = {"name": "Idempotency-Key", "in": "header", "schema": _NAME,
                "description": "the same request again gets the same reply"}  # fmt: skip

# method, path, summary, scope, body, parameters, status, response
_C = "/api/v1/cascades/{cascade}"
_TABLE: list[tuple[str, str, str, str, str | None, list[Any], int, Any]] = [
    ("get", "/api/v1/cascades", "Every cascade in a line", "read", None, [], 200, _ANSWER),
    ("post", f"{_C}/rounds", "Begin a round", "infer", "Begin", [_IDEMPOTENCY], 201, _OPEN_ROUND),
    ("get", f"{_C}/rounds/{{round}}", "Show a round", "infer", None, [], 200, _ANSWER),
    ("post", f"{_C}/rounds/{{round}}/outputs", "Tell what a stage gave, in any order", "infer",
     "Output", [], 200, _OPEN_ROUND),
    ("post", f"{_C}/rounds/{{round}}/deeper", "Allow one stage more, for one that failed", "infer",
     "Nothing", [], 200, _OPEN_ROUND),
    ("post", f"{_C}/rounds/{{round}}/end", "Count the round", "infer", "Nothing", [], 200, _ANSWER),
    ("post", f"{_C}/rounds/{{round}}/abandon", "Give the round up", "infer", "Nothing", [], 200,
     _ANSWER),
    ("get", f"{_C}/evidence", "Pairs seen and in disagreement", "read", None, [_SEGMENT], 200,
     _ANSWER),
    ("get", f"{_C}/report", "Counts, spending, savings, health", "read", None, [_SEGMENT], 200,
     _ANSWER),
    ("get", f"{_C}/verdict", "Certain, or not knowable without labels", "read", None, [_SEGMENT],
     200, _ANSWER),
    ("get", f"{_C}/explain", "Law, costs, pairs against thresholds", "read", None,
     [_SEGMENT, _HOURS], 200, _ANSWER),
    ("get", f"{_C}/mode", "The mode and what another would change", "read", None, [], 200, _ANSWER),
    ("put", f"{_C}/mode", "Switch the mode, with a reason", "admin", "Mode", [], 200, _ANSWER),
    ("get", f"{_C}/labels", "Every label", "read", None, [], 200, _ANSWER),
    ("post", f"{_C}/labels", "Say which answers are right", "label", "Label", [], 201, _ANSWER),
    ("get", f"{_C}/audit", "What the labels settle, what to label next", "read", None, [], 200,
     _ANSWER),
    ("get", f"{_C}/log", "Rounds as stopwise analyze reads them", "read", None, [_FORMAT], 200,
     None),
]  # fmt: skip


def document(cascades: list[str]) -> dict[str, Any]:
    """The OpenAPI document of a service with these cascades.

    >>> sorted(document(["c"])["paths"])[0]
    '/api/v1/cascades'
    """
    paths: dict[str, dict[str, Any]] = {}
    for method, path, summary, scope, body, parameters, status, answer in _TABLE:
        content = (
            {"text/csv": {}, "application/x-ndjson": {}}
            if answer is None
            else {"application/json": {"schema": answer}}
        )
        operation: dict[str, Any] = {
            "summary": summary,
            "description": f"Needs the scope `{scope}`.",
            "operationId": f"{method}_{path.rsplit('/', 1)[-1].strip('{}')}",
            "parameters": [*_path_parameters(path, cascades), *parameters],
            "responses": {
                str(status): {"description": "done", "content": content},
                **{str(code): {"$ref": "#/components/responses/Error"} for code in _ERRORS},
            },
        }
        if body is not None:
            schema = {"$ref": f"#/components/schemas/{body}"}
            operation["requestBody"] = {
                "required": body not in ("Begin", "Nothing"),
                "content": {"application/json": {"schema": schema}},
            }
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stopwise",
            "version": __version__,
            "description": "Rounds of cascades over HTTP, and what was learned from them.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**_BODIES, "Error": _ERROR},
            "responses": {
                "Error": {
                    "description": "refused",
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
            },
        },
    }


_ERRORS = (400, 401, 403, 404, 409, 413, 422, 429, 503)
_NULLABLE = {"type": ["string", "null"]}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": _NULLABLE,
                "code": _NULLABLE,
            },
        }
    },
}


def _path_parameters(path: str, cascades: list[str]) -> list[dict[str, Any]]:
    found = []
    if "{cascade}" in path:
        found.append({"name": "cascade", "in": "path", "required": True,
                      "schema": {"enum": cascades}})  # fmt: skip
    if "{round}" in path:
        found.append({"name": "round", "in": "path", "required": True, "schema": _NAME})
    return found


async def openapi(request: Request) -> Response:
    """The document; it holds nothing secret."""
    return Json(document(list(request.app.state.service.cascades)))
