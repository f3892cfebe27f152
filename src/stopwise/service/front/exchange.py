"""The calls of one request: started together, kept apart, counted when all are in."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from stopwise.openai.completions import Completion, Decided, Usage, read_completion, usage_of
from stopwise.openai.logprobs import fields_for, take_confidence
from stopwise.service.cascades.forms import (
    CLIENT_GONE,
    STOPPING,
    Call,
    Finished,
    ItemOutcome,
    shown,
)
from stopwise.service.cascades.items import given
from stopwise.service.config.forms import StageConfig
from stopwise.service.front.asking import AskedRequest, decision_headers
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


def cost_of(
    stage: StageConfig, usage: Usage | None, size: int = 0, most_tokens: int | None = None
) -> float:
    """What a call cost; without usage, what a typical one does, but no more than it can have."""
    if stage.price is None or usage is None:
        return stage.unreported(size, most_tokens)
    return stage.price.of(usage.input, usage.output, usage.cached)


class Exchange:
    """All calls of one request.

    Args:
        asked: the request and its decision.
        read: what an answer stands for when it is compared.
    """

    def __init__(self, asked: AskedRequest, read: CompletionReader = usual_reader) -> None:
        self.asked = asked
        self._read = read
        self._started = time.perf_counter()
        self._tasks: dict[int, asyncio.Task[Came]] = {}
        self._done: dict[int, Call] = {}
        self._finished = False
        self._awaited: int | None = None
        self._waited_for: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self._began: dict[int, float] = {}
        self.came: dict[int, Came] = {}  # what was waited for
        self.decision = asked.decision  # per item, what has become of it
        self.item: ItemOutcome | None = None
        self._given: int | None = None
        asked.service.begun(self)

    def headers(self, served: int | None) -> dict[str, str]:
        """The headers that say what was decided."""
        return decision_headers(self.decision, self.asked.cascade.config.stage_names, served)

    def start_shallow(self) -> None:
        """Call the stages before the depth, only to be compared."""
        for stage in range(self.asked.decision.first, self.asked.decision.depth):
            self.start(stage)

    def start(self, stage: int) -> asyncio.Task[Came]:
        """Call a stage, plainly, unless it is being called already."""
        if stage not in self._tasks:
            self._began[stage] = time.perf_counter()
            self._tasks[stage] = asyncio.create_task(self._plain(stage))
        return self._tasks[stage]

    async def _plain(self, stage: int) -> Came:
        config = self.asked.cascade.config.stages[stage]
        assert config.upstream is not None
        chat, how = self.asked.chat, self.asked.cascade.config.confidence
        more = None if how == "none" else fields_for(how)
        body = chat.for_stage(config.upstream.model, streamed=False, more=more)
        began = time.perf_counter()
        try:
            # Nobody waits for a call that is only compared: it may wait until it is welcome.
            response = await self.asked.service.upstreams.call(
                config.upstream, CHAT, body, awaited=self._waited_for[stage]
            )
            answer = read_completion(response)
            if answer is None:
                raise UpstreamError("not a completion")
        except UpstreamError as error:
            return Came(self.failure(stage, error.word, began), error=error)
        sure = None
        if how != "none":
            sure = take_confidence(response, how, wanted=bool(chat.body.get("logprobs")))
        return Came(self.success(stage, answer, began, sure), response)

    def success(
        self, stage: int, answer: Completion, began: float, confidence: float | None = None
    ) -> Call:
        """A call that came back."""
        call = Call(
            stage=stage,
            output=self._read(answer),
            cost=self._cost(stage, answer.usage),
            seconds=time.perf_counter() - began,
            usage=answer.usage,
            shown=shown(answer),
            confidence=confidence,
        )
        return self._note(call, "abstained" if call.output is None else "answered")

    def failure(self, stage: int, word: str, began: float, *, paid: bool | None = None) -> Call:
        """A call that failed. One that ran for a while may well be on the bill."""
        if paid is None:
            paid = word == "timeout"
        cost = self._cost(stage, None) if paid else 0.0
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
        return self._cost(stage, usage_of(usage))

    def _cost(self, stage: int, usage: Usage | None) -> float:
        config, chat = self.asked.cascade.config.stages[stage], self.asked.chat
        return cost_of(config, usage, chat.size, chat.most_tokens)

    def awaits(self, stage: int) -> None:
        """The client waits for this stage, which is called elsewhere: streamed."""
        self._awaited = stage
        self._began[stage] = time.perf_counter()

    async def wait_for(self, stage: int) -> Came:
        """What a stage gives, called now unless it is already: its answer may be the client's."""
        if not await self.asked.held.one_more(stage):
            error = UpstreamError("budget", 429)
            self.came[stage] = Came(Call(stage, failed=error.word), error=error)
            return self.came[stage]
        self._awaited = stage
        self._waited_for[stage].set()
        # Whoever waits may be given up, without the call: it may be of use all the same.
        came = await asyncio.shield(self.start(stage))
        self.came[stage] = came
        return came

    @property
    def goes_on(self) -> bool:
        """Whether the next stage is called where one gives no answer."""
        return self.asked.cascade.goes_on(self.asked.decision)

    @property
    def chooses(self) -> bool:
        """Whether it is known only when an answer is in whether it is the one that is given."""
        decision = self.asked.decision
        if decision.chance is not None:
            return decision.mode == "enforce"
        return self.goes_on and decision.depth < len(self.asked.cascade.config.stages) - 1

    async def answers(self, came: Came) -> bool:
        """Whether what came back is an answer."""
        if came.error is not None or came.call.output is None:
            return False
        # A comparator may take a moment with long answers: not where other requests wait.
        return not await asyncio.to_thread(self.asked.cascade.is_silent, came.call.output)

    async def stops(self) -> bool:
        """Per item: whether to stop after the stages that are in; with no answer yet, never."""
        decision = self.decision
        items = self.asked.cascade.items
        assert items is not None
        # A comparator may take a moment with long answers: not where other requests wait.
        said = await asyncio.to_thread(items.decide, decision, self._calls())
        if self.item is None or self.item.stop is None:
            self.item = ItemOutcome(said.stop, said.steps)
        self.decision = items.decided(replace(decision, depth=max(self._done)), self.item.stop)
        self._given = given(decision, self._calls(), said)
        return said.stop is not None and self._given is not None

    async def choose(self) -> int | None:
        """Per item: the stage whose answer is given, once all that are called are in."""
        if self.item is None:
            await self.stops()
        return self._given

    def leave(self) -> None:
        """The client is gone: what it waited for is cancelled, what runs beside it finishes."""
        if self._awaited is not None:
            self.cancel(self._awaited, CLIENT_GONE, self._began.get(self._awaited))
        self.finish(None, abandoned=True)

    def give_up(self) -> None:
        """The service stops: what is still called is cancelled, what came in is handed over."""
        waited = () if self._awaited is None else (self._awaited,)
        for stage in {*self._tasks, *waited} - self._done.keys():
            self.cancel(stage, STOPPING, self._began.get(stage))
        self.finish(None, abandoned=True)

    def _calls(self) -> tuple[Call, ...]:
        return tuple(self._done[stage] for stage in sorted(self._done))

    def finish(self, served: int | None, *, abandoned: bool = False) -> None:
        """Hand over what came in, once all of it has: in a task that outlives the request."""
        if self._finished:
            return
        self._finished = True
        task = asyncio.create_task(self._finish(served, abandoned, time.perf_counter()))
        self.asked.service.later(self, task)

    async def _finish(self, served: int | None, abandoned: bool, answered: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        asked = self.asked
        decision = self.decision
        asked.service.metrics.served.labels(
            decision.cascade, decision.mode, str(decision.depth), decision.uncounted or ""
        ).inc()
        asked.service.recorder.put(
            Finished(
                decision=decision,
                calls=self._calls(),
                served=served,
                request=asked.chat.body.get("messages"),
                who=asked.key.id,
                abandoned=abandoned,
                seconds=answered - self._started,
                item=self.item,
            )
        )
        asked.held.let_go()

    def cancel(self, stage: int, word: str, began: float | None) -> None:
        """Give up a call whose answer nobody waits for."""
        began = time.perf_counter() if began is None else began
        task = self._tasks.pop(stage, None)
        if task is not None and not task.done():
            task.cancel()
        if stage not in self._done:
            self.failure(stage, word, began, paid=True)
