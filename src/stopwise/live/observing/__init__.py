"""Showing a running cascade to Prometheus and OpenTelemetry; nothing of it costs unless used.

One list of figures (`figures`) is shown by both. Prometheus: `LearnerCollector`, which a service
registers in its own registry. OpenTelemetry: `show_metrics`, and `TracedCascade`, a cascade with a
span for every round and every call of a stage.
"""

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names
from stopwise.live.observing.figures import Figure, Shown, figures_of

if TYPE_CHECKING:
    from stopwise.live.observing.metrics import show_metrics
    from stopwise.live.observing.prometheus import LearnerCollector
    from stopwise.live.observing.tracing import TracedCascade

_WHERE = {
    "LearnerCollector": "stopwise.live.observing.prometheus",
    "TracedCascade": "stopwise.live.observing.tracing",
    "show_metrics": "stopwise.live.observing.metrics",
}

__all__ = ["Figure", "LearnerCollector", "Shown", "TracedCascade", "figures_of", "show_metrics"]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
