"""Metrics for OpenTelemetry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from stopwise.checks import names_settings
from stopwise.lazy import load
from stopwise.live.observing.figures import Figure, Shown, figures_of

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_FRESH = 0.2  # seconds: all instruments of one collection are read from one look


@names_settings
def show_metrics(
    shown: Shown, *, meter_provider: MeterProvider | None = None, most_segments: int = 20
) -> None:
    """Show learners and cascades as metrics; needs `pip install 'stopwise[opentelemetry]'`.

    Nothing is done until a reader collects. Where learners share a store, counts are those of all
    of them: take the maximum over processes, not the sum.

    Args:
        shown: learners or cascades by name, or a function that gives them.
        meter_provider: the global one by default.
        most_segments: how many segments of a cascade are shown by name; see `figures_of`.

    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> from stopwise.live import Learner
    >>> reader = InMemoryMetricReader()
    >>> provider = MeterProvider([reader])
    >>> show_metrics({"mail": Learner({"rule": 0, "model": 1})}, meter_provider=provider)
    >>> metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    >>> "stopwise.live.spent" in {metric.name for metric in metrics}
    True
    >>> provider.shutdown()
    """
    metrics = load("show_metrics", "opentelemetry.metrics")
    meter = metrics.get_meter("stopwise.live", meter_provider=meter_provider)
    look = _Look(lambda: figures_of(shown, most_segments=most_segments))

    def reader_of(name: str) -> Callable[[Any], Iterable[Any]]:
        def read(options: Any) -> Iterable[Any]:
            figure = look.figure(name)
            for labels, value in figure.values.items():
                yield metrics.Observation(value, dict(zip(figure.labels, labels, strict=True)))

        return read

    for figure in figures_of({}):
        make = {
            "counter": meter.create_observable_counter,
            "gauge": meter.create_observable_gauge,
        }[figure.kind]
        make(figure.name, callbacks=[reader_of(figure.name)], description=figure.help)


class _Look:
    """Figures that are read again once they are old."""

    def __init__(self, read: Callable[[], list[Figure]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._figures: dict[str, Figure] = {}
        self._at = 0.0

    def figure(self, name: str) -> Figure:
        with self._lock:
            now = time.monotonic()
            if not self._figures or now - self._at > _FRESH:
                self._figures = {figure.name: figure for figure in self._read()}
                self._at = now
            return self._figures[name]
