"""Spans and metrics for OpenTelemetry; needs `pip install 'stopwise[service,opentelemetry]'`.

A span for every request, which goes on with the caller's trace (`traceparent`), and one for every
call of an upstream, whose trace goes on there. Bodies, answers, keys and texts of errors are never
sent; nor is a caller's baggage passed on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stopwise.checks import StopwiseError
from stopwise.lazy import load
from stopwise.live import Learner
from stopwise.live.observing import show_metrics
from stopwise.service.telemetry.base import Request, Telemetry, TracedCall

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_WHAT = "server.opentelemetry"
GLOBAL = "global"


class OpenTelemetry(Telemetry):
    """Tells OpenTelemetry.

    Args:
        tracer_provider, meter_provider: to tell; the global ones by default.
        on_stop: what sends the rest when the service stops.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        on_stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._trace = load(_WHAT, "opentelemetry.trace")
        metrics = load(_WHAT, "opentelemetry.metrics")
        module = load(_WHAT, "opentelemetry.trace.propagation.tracecontext")
        # The trace alone: baggage is text that a caller chose, and it is not for others.
        self._context = module.TraceContextTextMapPropagator()
        self._meters = meter_provider
        self._on_stop = on_stop
        self._tracer = self._trace.get_tracer("stopwise.service", tracer_provider=tracer_provider)
        meter = metrics.get_meter("stopwise.service", meter_provider=meter_provider)
        self._requests = meter.create_histogram(
            "http.server.request.duration", "s", "Time until the last byte"
        )
        self._calls = meter.create_histogram(
            "stopwise.service.call.duration", "s", "Time of a call of a stage"
        )
        self._cost = meter.create_counter("stopwise.service.cost", "", "What calls cost")

    def show(self, learners: Mapping[str, Learner]) -> None:
        """Show what learners know as metrics, too."""
        show_metrics(learners, meter_provider=self._meters)

    @contextmanager
    def request(self, scope: Mapping[str, Any]) -> Iterator[Request]:
        """A span that every call made in it belongs to."""
        sent = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in (b"traceparent", b"tracestate")
        }
        request = Request()
        began = time.perf_counter()
        with self._tracer.start_as_current_span(
            "request",
            context=self._context.extract(sent),
            kind=self._trace.SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield request
            finally:
                known: dict[str, Any] = {
                    "http.request.method": request.method,
                    "http.route": request.path,
                    "http.response.status_code": request.status,
                }
                self._requests.record(time.perf_counter() - began, known)
                span.update_name(f"{request.method} {request.path}")
                span.set_attributes(
                    known | {f"stopwise.{name}": value for name, value in request.log.items()}
                )
                if request.status >= 500 or not request.status:
                    span.set_status(self._trace.StatusCode.ERROR)

    @contextmanager
    def call(self, url: str, headers: MutableMapping[str, str]) -> Iterator[TracedCall]:
        """A span of its own; it is never the current one, since calls run beside each other."""
        parts = urlsplit(url)
        span = self._tracer.start_span(
            f"POST {parts.path}",
            kind=self._trace.SpanKind.CLIENT,
            attributes={
                "http.request.method": "POST",
                "url.path": parts.path,
                "server.address": parts.hostname or "",
                "server.port": parts.port or (443 if parts.scheme == "https" else 80),
            },
        )
        self._context.inject(headers, context=self._trace.set_span_in_context(span))
        call = TracedCall()
        try:
            yield call
        except BaseException as error:
            call.failed = call.failed or type(error).__name__
            raise
        finally:
            if call.status:
                span.set_attribute("http.response.status_code", call.status)
            if call.failed is not None:
                span.set_attribute("error.type", call.failed)
                span.set_status(self._trace.StatusCode.ERROR)
            span.end()

    def note(self, cascade: str, stage: str, outcome: str, seconds: float, cost: float) -> None:
        """A call of a stage."""
        known = {"stopwise.cascade": cascade, "stopwise.stage": stage}
        self._calls.record(seconds, known | {"stopwise.outcome": outcome})
        self._cost.add(cost, known)

    def stop(self) -> None:
        """Send what is left."""
        self._on_stop()


def telemetry_of(setting: str) -> Telemetry:
    """What the setting asks for.

    Args:
        setting: "none"; "global": whatever providers this program has; or the name of an exporter
            that is installed, such as "console" or "otlp_proto_http", which reads its own
            variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, ...).

    >>> type(telemetry_of("none")).__name__
    'Telemetry'
    >>> telemetry_of("fax")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: server.opentelemetry: no exporter 'fax' is installed; ...
    """
    if setting == "none":
        return Telemetry()
    load(_WHAT, "opentelemetry.sdk")
    if setting == GLOBAL:
        return OpenTelemetry()
    trace = load(_WHAT, "opentelemetry.sdk.trace")
    export = load(_WHAT, "opentelemetry.sdk.trace.export")
    metrics = load(_WHAT, "opentelemetry.sdk.metrics")
    reading = load(_WHAT, "opentelemetry.sdk.metrics.export")
    resource = load(_WHAT, "opentelemetry.sdk.resources").Resource.create(
        {"service.name": "stopwise"}
    )
    spans = _exporter("opentelemetry_traces_exporter", setting)
    figures = _exporter("opentelemetry_metrics_exporter", setting)
    tracers = trace.TracerProvider(resource=resource)
    tracers.add_span_processor(export.BatchSpanProcessor(spans()))
    meters = metrics.MeterProvider(
        [reading.PeriodicExportingMetricReader(figures())], resource=resource
    )

    def stop() -> None:
        tracers.shutdown()
        meters.shutdown()

    return OpenTelemetry(tracers, meters, stop)


def _exporter(group: str, name: str) -> Any:
    """The class of an exporter, as packages name theirs."""
    found = {entry.name: entry for entry in entry_points(group=group)}
    if name not in found:
        there = ", ".join(sorted(found))
        raise StopwiseError(
            f"{_WHAT}: no exporter {name!r} is installed; there are {there}, or none or global"
            " (pip install opentelemetry-exporter-otlp-proto-http brings otlp_proto_http)"
        )
    return found[name].load()
