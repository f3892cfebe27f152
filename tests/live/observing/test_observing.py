"""Figures of running cascades for Prometheus and OpenTelemetry, and spans."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from stopwise.live import Cascade, Drift, Learner, SqliteStore, Stage
from stopwise.live.observing import LearnerCollector, TracedCascade, figures_of, show_metrics


def play(learner: Learner, outputs: list[Any], segment: str = "") -> None:
    with learner.begin(segment) as round:
        for output in outputs:
            round.observe(output)


def values(learner: Learner, **settings: Any) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        figure.name.removeprefix("stopwise.live."): figure.values
        for figure in figures_of({"c": learner}, **settings)
    }


def test_figures_are_those_counted_by_hand(tmp_path: Path) -> None:
    learner = Learner(
        {"a": 0.5, "b": 1.0, "c": 2.0}, "fixed", mistake_cost=20,
        store=SqliteStore(tmp_path / "rounds.db", durability="behind", flush_seconds=60),
    )  # fmt: skip
    play(learner, [1, 1, 1])
    play(learner, [1, 2, 2], "x")
    play(learner, [None, 2, 3], "x")
    with learner.begin() as round:
        round.observe(1)
    found = values(learner)
    assert found["calls"] == {("c", "a"): 4, ("c", "b"): 3, ("c", "c"): 3}
    assert found["abstentions"] == {("c", "a"): 1, ("c", "b"): 0, ("c", "c"): 0}
    assert found["comparisons"] == {("c", "a", "b"): 2, ("c", "a", "c"): 2, ("c", "b", "c"): 3}
    assert found["disagreements"] == {("c", "a", "b"): 1, ("c", "a", "c"): 1, ("c", "b", "c"): 1}
    assert found["spent"] == {("c",): 3 * 3.5 + 0.5}
    assert found["rounds"] == {("c", ""): 2, ("c", "x"): 2}
    assert found["queued"] == {("c",): 4}
    assert found["abandoned"] == {("c",): 1}
    assert set(found["stop_stage"]) == {("c", ""), ("c", "x")}
    learner.close()
    assert values(learner)["queued"] == {("c",): 0}


def test_the_number_of_series_is_bounded_and_counters_never_fall() -> None:
    learner = Learner([0, 1], "fixed")
    before: dict[tuple[str, ...], float] = {}
    for number in range(50):
        play(learner, [1, 1], f"s{number}")
        found = values(learner, most_segments=5)
        assert len(found["rounds"]) <= 6
        assert sum(found["rounds"].values()) == number + 1
        assert all(found["rounds"][labels] >= value for labels, value in before.items())
        before = found["rounds"]
    assert before["c", "other"] == 45


def test_drift_alarms_and_unrecorded_rounds_are_counted(tmp_path: Path) -> None:
    learner = Learner([0, 1], "fixed", drift=Drift())
    for number in range(4000):
        play(learner, [1, 1 if number < 2000 else 2])
    assert values(learner)["drift_alarms"]["c",] >= 1


def test_prometheus_reads_what_is_shown() -> None:
    cascade = Cascade([Stage("a", len), Stage("b", len, 1)], "fixed", mistake_cost=4)
    cascades: dict[str, Learner | Cascade] = {}
    registry = CollectorRegistry()
    registry.register(LearnerCollector(lambda: cascades))  # cascades may come later
    cascades['quo"ted'] = cascade
    cascade.answer("abc")
    families = {
        family.name: family
        for family in text_string_to_metric_families(generate_latest(registry).decode())
    }
    assert families["stopwise_live_calls"].type == "counter"
    assert families["stopwise_live_queued"].type == "gauge"
    calls = {
        tuple(sorted(sample.labels.items())): sample.value
        for sample in families["stopwise_live_calls"].samples
    }
    assert calls[("cascade", 'quo"ted'), ("stage", "b")] == 1


def test_opentelemetry_shows_the_same_figures() -> None:
    learner = Learner([0, 1], "fixed")
    play(learner, [1, 2])
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    show_metrics({"c": learner}, meter_provider=provider)
    data = reader.get_metrics_data()
    assert data is not None
    shown = {
        metric.name: {
            tuple(point.attributes.values()): point.value  # type: ignore[union-attr]
            for point in metric.data.data_points
        }
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    expected = {
        figure.name: figure.values for figure in figures_of({"c": learner}) if figure.values
    }
    assert shown == expected
    provider.shutdown()


def traced(stages: list[Stage], **settings: Any) -> tuple[TracedCascade, InMemorySpanExporter]:
    provider, spans = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    settings = {"policy": "fixed", "mistake_cost": 9, **settings}
    return TracedCascade(stages, tracer_provider=provider, **settings), spans


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


async def slow_length(text: str) -> int:
    await asyncio.sleep(0)
    return len(text)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("way", ["plain", "async"])
def test_every_stage_is_inside_its_round(way: str, at_once: bool) -> None:
    second = slow_length if way == "async" else len
    cascade, spans = traced([Stage("a", len), Stage("b", second, 1)], at_once=at_once)
    if way == "async":
        assert asyncio.run(cascade.answer_async("abc", segment="x")).answer == 3
    else:
        assert cascade.answer("abc", segment="x").answer == 3
    found = by_name(spans)
    assert set(found) == {"stopwise round", "stopwise stage a", "stopwise stage b"}
    round = found["stopwise round"]
    assert round.attributes is not None
    assert dict(round.attributes) == {
        "stopwise.segment": "x", "stopwise.stage": "b", "stopwise.depth": "b",
        "stopwise.probability": 1.0, "stopwise.cost": 1.0, "stopwise.failures": 0,
    }  # fmt: skip
    for name in ("a", "b"):
        parent = found[f"stopwise stage {name}"].parent
        assert parent is not None
        assert parent.span_id == round.get_span_context().span_id
    cascade.close()


def test_a_failure_is_marked_and_its_text_is_not_shown() -> None:
    def fail(text: str) -> int:
        raise ValueError("the key is top-secret")

    cascade, spans = traced([Stage("a", len), Stage("b", fail, 1)])
    assert cascade.answer("abc").answer == 3
    span = by_name(spans)["stopwise stage b"]
    assert span.status.status_code.name == "ERROR"
    assert "top-secret" not in span.to_json()


def test_nothing_is_loaded_unless_it_is_used() -> None:
    code = (
        "import sys, stopwise.live, stopwise.live.observing\n"
        "assert not {'prometheus_client', 'opentelemetry'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
