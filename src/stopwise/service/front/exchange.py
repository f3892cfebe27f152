"""The calls of one request: started together, kept apart, counted when all are in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stopwise.openai.completions import Completion, Decided, Usage, read_completion, usage_of
from stopwise.service.cascades.forms import Call, Finished, shown
from stopwise.service.config.forms import StageConfig
from stopwise.service.front.asking import Asked
from stopwise.service.upstream.calls import UpstreamError

CHAT = "/chat/completions"
CompletionReader = Callable[[Completion], Completion | Decided | None]


@dataclass(frozen=True)
class Came:
    """What came back from a stage.

    Attributes:
        call: for counting.
        body: the response of the upstream, for the client; None if the call failed.
        error: why it failed.
    """

    call: Call
    body: dict[str, Any] | None = None
    error: UpstreamError | None = None


def usual_reader(answer: Completion) -> Completion | None:
    """An answer that was cut off, filtered, refused or left empty is an abstention."""
    return None if answer.abstained else answer


def cost_of(stage: StageConfig, usage: Usage | None) -> float:
    """What a call cost; without usage, what a typical one does."""
    if stage.price is None or usage is None:
        return stage.cost
    return stage.price.of(usage.input, usage.output, usage.cached)


class Exchange:
    """All calls of one request.

    Args:
        asked: the request and its decision.
        read: what an answer stands for when it is compared.
    """

    def __init__(self, asked: Asked, read: CompletionReader = usual_reader) -> None:
        self.asked = asked
        self._read = read
        self._started = time.perf_counter()
        self._tasks: dict[int, asyncio.Task[Came]] = {}
        self._done: dict[int, Call] = {}
        self._finished = False
        expected = asked.cascade.learner.costs.per_stage
        first, depth = asked.decision.first, asked.decision.depth
        self._held = float(sum(expected[first : depth + 1]))
        if asked.key.id:
            asked.service.spending.hold(f"key:{asked.key.id}", self._held)

    def start_shallow(self) -> None:
        """Call the stages before the depth, only to be compared."""
        for stage in range(self.asked.decision.first, self.asked.decision.depth):
            self.start(stage)

    def start(self, stage: int) -> asyncio.Task[Came]:
        """Call a stage, plainly, unless it is being called already."""
        if stage not in self._tasks:
            self._tasks[stage] = asyncio.create_task(self._plain(stage))
        return self._tasks[stage]

    async def _plain(self, stage: int) -> Came:
        config = self.asked.cascade.config.stages[stage]
        assert config.upstream is not None
        body = self.asked.chat.for_stage(config.upstream.model, streamed=False)
        began = time.perf_counter()
        try:
            response = await self.asked.service.upstreams.call(config.upstream, CHAT, body)
            answer = read_completion(response)
            if answer is None:
                raise UpstreamError("not a completion")
        except UpstreamError as error:
            return Came(self.failure(stage, error.word, began), error=error)
        return Came(self.success(stage, answer, began), response)

    def success(self, stage: int, answer: Completion, began: float) -> Call:
        """A call that came back."""
        config = self.asked.cascade.config.stages[stage]
        call = Call(
            stage=stage,
            output=self._read(answer),
            cost=cost_of(config, answer.usage),
            seconds=time.perf_counter() - began,
            usage=answer.usage,
            shown=shown(answer),
        )
        return self._note(call, "abstained" if call.output is None else "answered")

    def failure(self, stage: int, word: str, began: float, *, paid: bool | None = None) -> Call:
        """A call that failed. One that ran for a while may well be on the bill."""
        if paid is None:
            paid = word == "timeout"
        cost = self.asked.cascade.config.stages[stage].cost if paid else 0.0
        seconds = time.perf_counter() - began
        return self._note(Call(stage, failed=word, cost=cost, seconds=seconds), "failed")

    def _note(self, call: Call, outcome: str) -> Call:
        self._done[call.stage] = call
        metrics = self.asked.service.metrics
        cascade = self.asked.cascade
        name = cascade.config.stage_names[call.stage]
        metrics.calls.labels(cascade.name, name, outcome).inc()
        metrics.call_seconds.labels(cascade.name, name).observe(call.seconds)
        metrics.cost.labels(cascade.name, name).inc(call.cost)
        self.asked.service.telemetry.note(cascade.name, name, outcome, call.seconds, call.cost)
        return call

    def cost_of(self, stage: int, usage: Any) -> float:
        """What a call cost, from the usage that the upstream reported."""
        return cost_of(self.asked.cascade.config.stages[stage], usage_of(usage))

    async def fall_back(self, failed: int, error: UpstreamError) -> Came | None:
        """Another stage's answer in the place of one that failed; None if there is none.

        What the client sent wrong is wrong at every stage, so nothing else is tried.
        """
        if error.status in (400, 413, 422) or self.asked.decision.uncounted == "pinned":
            return None
        ways = [self._deeper, self._shallower]
        if self.asked.cascade.config.on_failure == "shallower":
            ways.reverse()
        for way in ways:
            came = await way(failed)
            if came is not None:
                return came
        return None

    async def _deeper(self, failed: int) -> Came | None:
        for stage in range(failed + 1, len(self.asked.cascade.config.stages)):
            came = await asyncio.shield(self.start(stage))
            if came.error is None:
                return came
        return None

    async def _shallower(self, failed: int) -> Came | None:
        for stage in range(failed - 1, -1, -1):
            came = await asyncio.shield(self.start(stage))
            if came.error is None:
                return came
        return None

    def finish(self, served: int | None, *, abandoned: bool = False) -> None:
        """Hand over what came in, once all of it has: in a task that outlives the request."""
        if self._finished:
            return
        self._finished = True
        task = asyncio.create_task(self._finish(served, abandoned, time.perf_counter()))
        self.asked.service.later(task)

    async def _finish(self, served: int | None, abandoned: bool, answered: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        asked = self.asked
        if asked.key.id:
            asked.service.spending.hold(f"key:{asked.key.id}", -self._held)
        decision = asked.decision
        asked.service.metrics.served.labels(
            decision.cascade, decision.mode, str(decision.depth), decision.uncounted or ""
        ).inc()
        calls = tuple(self._done[stage] for stage in sorted(self._done))
        asked.service.recorder.put(
            Finished(
                decision=decision,
                calls=calls,
                served=served,
                request=asked.chat.body.get("messages"),
                who=asked.key.id,
                abandoned=abandoned,
                seconds=answered - self._started,
            )
        )

    def cancel(self, stage: int, word: str, began: float) -> None:
        """Give up a call whose answer nobody waits for."""
        task = self._tasks.pop(stage, None)
        if task is not None and not task.done():
            task.cancel()
        if stage not in self._done:
            self.failure(stage, word, began, paid=True)
