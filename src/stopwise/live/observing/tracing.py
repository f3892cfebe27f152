"""A cascade with a span for every round and every call of a stage."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never, Unpack

from stopwise.lazy import load
from stopwise.live.calling.stage import Stage
from stopwise.live.cascade import Cascade
from stopwise.live.running.answer import Answer
from stopwise.live.running.cascade_keywords import CascadeKeywords
from stopwise.policies.base import Policy
from stopwise.policies.registry import DEFAULT_POLICY

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider


class TracedCascade(Cascade):
    """A cascade that OpenTelemetry sees; needs `pip install 'stopwise[opentelemetry]'`.

    `answer` and `answer_async` open a span `stopwise round`; inside of it every call of a stage
    opens `stopwise stage NAME`, in threads too. The span of a stage that raises is an error.
    Items, outputs and texts of errors do not enter spans: they may be private. In `answer_many` the
    calls of stages have spans, under the one that is open around it.

    Args:
        stages: as for `Cascade`, whose other settings may follow.
        policy: as for `Cascade`.
        tracer_provider: the global one by default.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> provider, spans = TracerProvider(), InMemorySpanExporter()
    >>> provider.add_span_processor(SimpleSpanProcessor(spans))
    >>> cascade = TracedCascade(
    ...     [Stage("rule", len), Stage("model", len, 1)], "fixed:stage=0", tracer_provider=provider
    ... )
    >>> cascade.answer("abc").answer
    3
    >>> [span.name for span in spans.get_finished_spans()]
    ['stopwise stage rule', 'stopwise round']
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        policy: str | Policy = DEFAULT_POLICY,
        *,
        tracer_provider: TracerProvider | None = None,
        **settings: Unpack[CascadeKeywords],
    ) -> None:
        trace = load("TracedCascade", "opentelemetry.trace")
        self._tracer: Tracer = trace.get_tracer("stopwise.live", tracer_provider=tracer_provider)
        traced = [
            _with_span(self._tracer, stage) if isinstance(stage, Stage) else stage
            for stage in stages
        ]
        super().__init__(traced, policy, **settings)

    def answer(
        self,
        item: Any,
        *,
        segment: str = "",
        deadline: float | None = None,
        features: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> Answer:
        """Answer one item, inside a span; see `Cascade.answer`."""
        with self._round_span(segment) as span:
            answer = super().answer(
                item, segment=segment, deadline=deadline, features=features, **unknown
            )
            return _note(span, answer)

    async def answer_async(
        self,
        item: Any,
        *,
        segment: str = "",
        deadline: float | None = None,
        features: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> Answer:
        """The same, awaited."""
        with self._round_span(segment) as span:
            answer = await super().answer_async(
                item, segment=segment, deadline=deadline, features=features, **unknown
            )
            return _note(span, answer)

    def _round_span(self, segment: str) -> Any:
        return self._tracer.start_as_current_span(
            "stopwise round",
            attributes={"stopwise.segment": segment} if segment else None,
            record_exception=False,
            set_status_on_exception=True,
        )


def _note(span: Span, answer: Answer) -> Answer:
    noted = {
        "stopwise.depth": answer.depth,
        "stopwise.stage": answer.stage,
        "stopwise.probability": answer.probability,
        "stopwise.cost": answer.cost,
        "stopwise.failures": len(answer.failures),
    }
    span.set_attributes({name: value for name, value in noted.items() if value is not None})
    return answer


def _with_span(tracer: Tracer, stage: Stage) -> Stage:
    """The same stage, each call of which has a span."""
    call, name = stage.call, f"stopwise stage {stage.name}"

    def open_span() -> Any:
        # The text of an error may hold what nobody should read: only its type is noted.
        return tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        )

    if stage.is_async:

        @functools.wraps(call)
        async def call_async(item: Any) -> Any:
            with open_span() as span:
                try:
                    return await call(item)
                except Exception as error:
                    _note_error(span, error)
                    raise

        return replace(stage, call=call_async)

    @functools.wraps(call)
    def call_plain(item: Any) -> Any:
        with open_span() as span:
            try:
                return call(item)
            except Exception as error:
                _note_error(span, error)
                raise

    return replace(stage, call=call_plain)


def _note_error(span: Span, error: Exception) -> None:
    trace = load("TracedCascade", "opentelemetry.trace")
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__qualname__))
