"""OpenTelemetry: spans that belong together, metrics, and nothing that is private."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from service_helpers import Maker

from stopwise.checks import StopwiseError
from stopwise.service import core
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.database.connection import Database, open_database
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


def test_an_exporter_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [{"name": "a", "cost": 1}, {"name": "b", "cost": 2}]
    form: dict[str, Any] = {
        "server": {"opentelemetry": "fax"},
        "cascades": {"c": {"mistake_cost": 1, "stages": stages}},
    }
    opened: list[Database] = []

    def opening(*given: Any) -> Database:
        opened.append(open_database(*given))
        return opened[-1]

    monkeypatch.setattr(core, "open_database", opening)
    with pytest.raises(StopwiseError, match=r"server.opentelemetry: no exporter 'fax'.*console"):
        Service(config_of(form, tmp_path))
    with pytest.raises(Exception, match="closed"):  # nothing is left open
        opened[0].rows("SELECT 1")
    # The exporter writes to the output that the process began with.
    code = """if True:
        from stopwise.service.telemetry.opentelemetry import telemetry_of
        telemetry = telemetry_of("console")
        with telemetry.request({"headers": []}) as request:
            request.method, request.path, request.status = "GET", "/healthz", 200
        telemetry.stop()
    """
    assert '"name": "GET /healthz"' in run(code)


class Collector:
    """A collector on loopback: keeps what is posted to it."""

    def __init__(self) -> None:
        kept = self.posted = []  # type: list[tuple[str, bytes]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                kept.append((self.path, body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join(5)
        self.server.server_close()


def test_a_collector_receives_spans_and_metrics_over_otlp(
    tmp_path: Path, upstream: FakeUpstream, free_port: int
) -> None:
    """The service as a user starts it, with the exporter that the setting names."""
    collector = Collector()
    config = tmp_path / "service.toml"
    stages = "".join(
        f'[[cascades.support.stages]]\nname = "{name}"\nmodel = "{name}"\n'
        f'base_url = "{upstream.url}"\nprice = {{ input = {price}, output = 1 }}\n'
        for name, price in (("small", 1), ("large", 10))
    )
    config.write_text(
        f'[server]\nlisten = "127.0.0.1:{free_port}"\nopentelemetry = "otlp_proto_http"\n'
        f'[cascades.support]\nmode = "advise"\nmistake_cost = 0.01\n{stages}'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "stopwise", "serve", str(config)],
        stderr=subprocess.PIPE,
        text=True,
        env={
            "PYTHONPATH": str(Path(opentelemetry.__file__).parents[3]),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        },
    )
    try:
        assert process.stderr is not None
        assert "answers" in process.stderr.readline()
        request = urllib.request.Request(
            f"http://127.0.0.1:{free_port}/v1/chat/completions",
            json.dumps(ASK).encode(),
            {"content-type": "application/json", **SENT},
        )
        assert urllib.request.urlopen(request, timeout=20).status == 200
    finally:
        process.terminate()
        process.communicate(timeout=30)
    collector.stop()
    spans, names, resources = [], set(), set()
    for path, body in collector.posted:
        if path == "/v1/traces":
            for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                resources |= {(a.key, a.value.string_value) for a in part.resource.attributes}
                spans += [span for scope in part.scope_spans for span in scope.spans]
        else:
            assert path == "/v1/metrics"
            for metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                names |= {m.name for scope in metrics.scope_metrics for m in scope.metrics}
        assert b"private question" not in body
    assert ("service.name", "stopwise") in resources
    assert ("deployment.environment", "test") in resources
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    assert sorted(span.name for span in spans) == [
        "POST /v1/chat/completions", "POST /v1/chat/completions", "POST /v1/chat/completions"
    ]  # fmt: skip
    assert {
        "http.server.request.duration",
        "stopwise.service.cost",
        "stopwise.live.rounds",
    } <= names


def test_prometheus_shows_what_the_learners_counted(make: Maker, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: "x" if model == "small" else "y"
    client, service = make(mode="advise")
    for body in (ASK, ASK, {**ASK, "n": 2}):
        assert client.post("/v1/chat/completions", json=body).status_code == 200
    end = time.monotonic() + 30
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    assert service.recorder.drain()
    text = client.get("/metrics").text
    for line in (
        'stopwise_live_rounds_total{cascade="support",segment=""} 2.0',
        'stopwise_live_disagreements_total{cascade="support",deeper="large",stage="small"} 2.0',
        'stopwise_live_comparisons_total{cascade="support",deeper="large",stage="small"} 2.0',
        'stopwise_served_total{cascade="support",depth="1",mode="advise",uncompared=""} 2.0',
        'stopwise_calls_total{cascade="support",outcome="answered",stage="large"} 3.0',
    ):
        assert line in text, text
    assert 'uncompared="many choices"} 1.0' in text
    families = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
