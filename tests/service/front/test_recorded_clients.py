"""What LangChain, LiteLLM and instructor send, recorded from them: passed on, answered, compared.

Their packages need versions that exclude each other, so that what they sent to a server was kept
in `recorded_requests.json`: plain, streamed, tools, JSON schema, JSON mode.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from service_helpers import Maker

RECORDED = json.loads((Path(__file__).parent / "recorded_requests.json").read_text())
TOUCHED = {"model", "stream", "stream_options"}


def answer(model: str, body: dict[str, Any]) -> Any:
    if body.get("tools"):
        function = {"name": body["tools"][0]["function"]["name"], "arguments": '{"city": "Rome"}'}
        call = {"id": "call_1", "type": "function", "function": function}
        return {"message": {"tool_calls": [call]}}
    wanted = (body.get("response_format") or {}).get("type")
    return '{"city": "Rome"}' if wanted in ("json_schema", "json_object") else "Rome it is"


def test_the_kinds_of_requests_are_all_there() -> None:
    assert {one["client"] for one in RECORDED} == {"langchain-openai", "litellm", "instructor"}
    bodies = [one["body"] for one in RECORDED]
    assert any(body.get("stream") for body in bodies)
    assert any(body.get("tools") for body in bodies)
    kinds = {(body.get("response_format") or {}).get("type") for body in bodies}
    assert {"json_schema", "json_object"} <= kinds


@pytest.mark.parametrize("at", range(len(RECORDED)), ids=lambda at: RECORDED[at]["client"])
def test_a_recorded_request(make: Maker, upstream: FakeUpstream, at: int) -> None:
    sent = RECORDED[at]
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = answer
    response = client.post(
        "/v1/chat/completions", json={**sent["body"], "model": "support"}, headers=sent["headers"]
    )
    assert response.status_code == 200
    if sent["body"].get("stream"):
        events = [line for line in response.text.splitlines() if line]
        assert events[-1] == "data: [DONE]"
        assert json.loads(events[0].removeprefix("data: "))["model"] == "support"
    else:
        assert response.json()["model"] == "support"
    end = time.monotonic() + 10
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    assert service.recorder.drain()
    for _, body in upstream.requests:
        kept = {name: value for name, value in body.items() if name not in TOUCHED}
        assert kept == {n: v for n, v in sent["body"].items() if n not in TOUCHED}
    evidence = service.cascades["support"].learner.evidence()
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (1, 0)
