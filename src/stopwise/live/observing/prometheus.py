"""A collector for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stopwise.checks import names_settings, whole_number
from stopwise.lazy import load
from stopwise.live.observing.figures import Shown, figures_of

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class LearnerCollector:
    """Shows learners and cascades to Prometheus; needs `pip install 'stopwise[prometheus]'`.

    Nothing is done until somebody collects. Where learners share a store, counts are those of all
    of them: take the maximum over processes, not the sum.

    Args:
        shown: learners or cascades by name, or a function that gives them.
        most_segments: how many segments of a cascade are shown by name; see `figures_of`.

    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> from stopwise.live import Learner
    >>> registry = CollectorRegistry()
    >>> registry.register(LearnerCollector({"mail": Learner({"rule": 0, "model": 1})}))
    >>> b'stopwise_live_spent_total{cascade="mail"} 0.0' in generate_latest(registry)
    True
    """

    @names_settings
    def __init__(self, shown: Shown, *, most_segments: int = 20) -> None:
        self._core = load("LearnerCollector", "prometheus_client.core")
        self._shown = shown
        self._most = whole_number("most_segments", most_segments, least=0)

    def collect(self) -> Iterator[Metric]:
        """What a registry asks for."""
        for figure in figures_of(self._shown, most_segments=self._most):
            kinds = {
                "counter": self._core.CounterMetricFamily,
                "gauge": self._core.GaugeMetricFamily,
            }
            family = kinds[figure.kind](
                figure.name.replace(".", "_"), figure.help, labels=figure.labels
            )
            for labels, value in figure.values.items():
                family.add_metric(labels, value)
            yield family
