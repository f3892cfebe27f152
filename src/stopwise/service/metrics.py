"""Counters for Prometheus, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """What `/metrics` shows.

    >>> metrics = Metrics()
    >>> metrics.requests.labels("/healthz", "GET", "200").inc()
    >>> b'stopwise_requests_total{method="GET"' in metrics.text()
    True
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "stopwise_requests", "HTTP requests", ("path", "method", "status"), registry=registry
        )
        self.seconds = Histogram(
            "stopwise_request_seconds",
            "Time until the last byte",
            ("path",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.rounds = Counter(
            "stopwise_rounds", "Requests by mode and depth", ("cascade", "mode", "depth"),
            registry=registry,
        )  # fmt: skip
        self.calls = Counter(
            "stopwise_calls", "Calls of stages", ("cascade", "stage", "outcome"), registry=registry
        )
        self.call_seconds = Histogram(
            "stopwise_call_seconds", "Time of a call", ("cascade", "stage"), buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self.cost = Counter(
            "stopwise_cost", "What calls cost", ("cascade", "stage"), registry=registry
        )
        self.waiting = Gauge("stopwise_unwritten", "Requests not written yet", registry=registry)
        self.dropped = Gauge(
            "stopwise_dropped", "Requests that were not counted", registry=registry
        )
        self.open = Gauge("stopwise_open_requests", "Requests under way", registry=registry)

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self.registry)
