"""What `/metrics` shows, in a registry of its own.

What was learned (rounds, comparisons, disagreements, abstentions, drift) is counted by the learners
and shown by the collector of live cascades. Counted here is what a learner does not know: HTTP, how
long calls took, and requests that are served without being compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from stopwise.live import Learner
from stopwise.live.observing.prometheus import LearnerCollector

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
        self.served = Counter(
            "stopwise_served",
            "Requests by mode and depth, compared or not, and why not",
            ("cascade", "mode", "depth", "uncompared"),
            registry=registry,
        )
        self.calls = Counter(
            "stopwise_calls", "Calls of upstreams", ("cascade", "stage", "outcome"),
            registry=registry,
        )  # fmt: skip
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

    def show(self, learners: Mapping[str, Learner]) -> None:
        """Show what these learners have counted too, as `stopwise_live_...`."""
        self.registry.register(LearnerCollector(learners))

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self.registry)
