"""OpenTelemetry: spans that belong together, metrics, and nothing that is private."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from service_helpers import Maker

from stopwise.checks import StopwiseError
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.telemetry import opentelemetry
from stopwise.service.telemetry.opentelemetry import OpenTelemetry

TRACE = "0af7651916cd43dd8448eb211c80319c"
SENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "baggage": "user=alice"}
ASK = {"model": "support", "messages": [{"role": "user", "content": "a private question"}]}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """Whatever a service tells that is made in the test."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(
        "stopwise.service.core.telemetry_of", lambda setting: OpenTelemetry(tracers, meters)
    )
    return spans, reader


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_and_its_calls_are_one_trace(
    make: Maker,
    upstream: FakeUpstream,
    told: tuple[InMemorySpanExporter, InMemoryMetricReader],
    streamed: bool,
) -> None:
    spans, _ = told
    client, service = make(mode="advise")
    reply = client.post("/v1/chat/completions", json={**ASK, "stream": streamed}, headers=SENT)
    assert reply.status_code == 200
    assert service.recorder.drain()
    found = spans.get_finished_spans()
    server = [span for span in found if span.kind is SpanKind.SERVER]
    calls = [span for span in found if span.kind is SpanKind.CLIENT]
    assert [span.name for span in server] == ["POST /v1/chat/completions"]
    assert len(calls) == 2
    for span in found:
        assert span.context is not None
        assert f"{span.context.trace_id:032x}" == TRACE
    assert server[0].parent is not None
    assert f"{server[0].parent.span_id:016x}" == "b7ad6b7169203331"
    assert server[0].context is not None
    assert {span.parent and span.parent.span_id for span in calls} == {server[0].context.span_id}
    # The trace goes on upstream; what else the client sent does not.
    sent = {headers["traceparent"].split("-")[2] for headers, _ in upstream.requests}
    assert sent == {f"{span.context.span_id:016x}" for span in calls if span.context}
    assert not any("baggage" in headers for headers, _ in upstream.requests)
    attributes = dict(server[0].attributes or {})
    assert attributes["http.response.status_code"] == 200
    assert attributes["stopwise.cascade"] == "support"
    assert attributes["stopwise.round"] == reply.headers["x-stopwise-round"]


def test_failures_are_marked_and_nothing_private_is_told(
    make: Maker, upstream: FakeUpstream, told: tuple[InMemorySpanExporter, InMemoryMetricReader]
) -> None:
    spans, _ = told
    upstream.answer = lambda model, body: {"status": 500}
    client, service = make(mode="enforce")
    key, text = service.keys.create("app", ["infer"])
    service.keys.renew()
    reply = client.post(
        "/v1/chat/completions", json=ASK, headers={"authorization": f"Bearer {text}"}
    )
    assert reply.status_code == 502
    assert service.recorder.drain()
    found = spans.get_finished_spans()
    assert {span.status.status_code for span in found} == {StatusCode.ERROR}
    assert "status 500" in {(span.attributes or {}).get("error.type") for span in found}
    everything = json.dumps([json.loads(span.to_json()) for span in found])
    for private in ("private question", "secret words", text, key.name + " "):
        assert private not in everything


def test_metrics_of_requests_calls_and_learners(
    make: Maker, told: tuple[InMemorySpanExporter, InMemoryMetricReader]
) -> None:
    _, reader = told
    client, service = make(mode="advise")
    for _ in range(3):
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    assert service.recorder.drain()
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: metric.data.data_points
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    requests: Any = found["http.server.request.duration"][0]
    assert (requests.count, requests.attributes["http.route"]) == (3, "/v1/chat/completions")
    calls: Any = found["stopwise.service.call.duration"]
    assert {point.attributes["stopwise.stage"]: point.count for point in calls} == {
        "small": 3,
        "large": 3,
    }
    assert sum(point.value for point in found["stopwise.live.rounds"]) == 3  # type: ignore[union-attr]


def test_it_is_off_unless_asked_for(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(mode="enforce")
    assert type(service.telemetry).__name__ == "Telemetry"
    assert client.post("/v1/chat/completions", json=ASK, headers=SENT).status_code == 200
    assert not any("traceparent" in headers for headers, _ in upstream.requests)
    # A service that does not use it does not import it.
    code = "import sys, stopwise.service.app; print('opentelemetry' in sys.modules)"
    assert run(code) == "False\n"


def run(code: str) -> str:
    """What a program prints."""
    source = str(Path(opentelemetry.__file__).parents[3])
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": source},
    )  # fmt: skip
    return said.stdout


def test_an_exporter_by_name(tmp_path: Path) -> None:
    stages = [{"name": "a", "cost": 1}, {"name": "b", "cost": 2}]
    form: dict[str, Any] = {
        "server": {"opentelemetry": "fax"},
        "cascades": {"c": {"mistake_cost": 1, "stages": stages}},
    }
    with pytest.raises(StopwiseError, match=r"server.opentelemetry: no exporter 'fax'.*console"):
        Service(config_of(form, tmp_path))
    # The exporter writes to the output that the process began with.
    code = """if True:
        from stopwise.service.telemetry.opentelemetry import telemetry_of
        told = telemetry_of("console")
        with told.request({"headers": []}) as request:
            request.method, request.path, request.status = "GET", "/healthz", 200
        told.stop()
    """
    assert '"name": "GET /healthz"' in run(code)
