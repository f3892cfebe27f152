"""Calls stages on one item: plain or async, within their time, again where that was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from stopwise.live.calling import background
from stopwise.live.calling.clocks import Clock, Waits
from stopwise.live.calling.errors import StageBusyError, StageRestingError, warn
from stopwise.live.calling.jobs import Attempt, Job, LeftRunning, attempt, failed_attempt
from stopwise.live.calling.limited import awaited, begin_awaited, late, least, noted
from stopwise.live.calling.outputs import check_output, check_outputs, is_awaitable, vector_shape
from stopwise.live.calling.result import CallResult, Together, outputs_of, result_of
from stopwise.live.calling.retrying import BreakerState, Tries
from stopwise.live.calling.stage import Stage
from stopwise.live.calling.tasks import await_all
from stopwise.live.calling.threads import Threads
from stopwise.live.interrupts import (
    UNREAD,
    CallNote,
    Note,
    SharedNote,
)

LEAST_SECONDS = 0.001
"""With less time left than this, an item calls no further stage."""

_CallResult = tuple.__new__  # what CallResult(...) does, without the call of a function
_LABELS = frozenset({str, int, bool, type(None)})
_LOOP_FIX = "some stages are async; await {} instead"


class StageCaller:
    """Calls the stages of a cascade. Whatever a stage raises is its failure, and a result.

    Args:
        stages: the stages, in order.
        clock: whether calls cost seconds, and which: those that they work, or all that pass until
            the result is there.
        workers: how many plain stages may work at the same time in threads.
        as_labels: whether outputs are compared as they are, so that a vector is worth a warning.

    >>> caller = StageCaller([Stage("upper", str.upper)], clock=None)
    >>> caller.call(0, "a").output
    'A'
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        *,
        clock: Clock | None,
        workers: int | None = None,
        as_labels: bool = True,
    ) -> None:
        self.stages = tuple(stages)
        self.is_async = [stage.is_async for stage in self.stages]
        self.any_async = any(self.is_async)
        self.threads = Threads(workers or 32)
        self.clock = clock
        self._as_labels = as_labels
        self._warned: set[str] = set()
        self._waits = [Waits() for _ in self.stages]
        self._left = [LeftRunning(stage.name, stage.most_left) for stage in self.stages]
        self._breakers = [
            None if stage.breaker is None else BreakerState(stage.breaker) for stage in self.stages
        ]
        # Most stages are called once, on one item, without a limit.
        self._simple = [
            not (stage.batch or stage.timeout or stage.retry or stage.breaker)
            for stage in self.stages
        ]

    # ---- one item ----------------------------------------------------------------------------

    def call(
        self, at: int, item: Any, limit: float | None = None, note: Note = UNREAD
    ) -> CallResult:
        """Call a stage on an item.

        Args:
            at: the stage.
            item: the item.
            limit: seconds that the item has left; None: any number.
            note: where it is noted that the call has begun.
        """
        stage = self.stages[at]
        if self._simple[at] and limit is None and not self.is_async[at]:
            function = stage.call
            start = time.perf_counter()
            try:
                note.begun = (at, 1)
                value = function(item)
            except BaseException as error:  # noqa: BLE001  # raised again where it is no failure
                tried = failed_attempt(error, start, note, (at, 1))
            else:
                if type(value) in _LABELS and self.clock is None:
                    return _CallResult(CallResult, (value, None, None, None, 0.0))
                tried = Attempt(value, None, time.perf_counter() - start)
                if is_awaitable(value):
                    tried = self._await_here(at, tried, None)
            return self._result(at, tried, 1, item)
        tried, calls = self.persist(at, [item] if stage.batch else item, limit, note)
        return self._result(at, tried, calls, item)

    async def call_async(
        self, at: int, item: Any, limit: float | None = None, note: Note = UNREAD
    ) -> CallResult:
        """The same, awaited; a plain stage works in a thread."""
        stage = self.stages[at]
        if self._simple[at] and limit is None and self.is_async[at] and self.clock != "work":
            function = stage.call
            start = time.perf_counter()
            try:
                note.begun = (at, 1)
                value = await function(item)
            except BaseException as error:  # noqa: BLE001  # raised again where it is no failure
                tried = failed_attempt(error, start, note, (at, 1))
            else:
                if type(value) in _LABELS and self.clock is None:
                    return _CallResult(CallResult, (value, None, None, None, 0.0))
                tried = Attempt(value, None, time.perf_counter() - start)
            return self._result(at, tried, 1, item)
        tried, calls = await self.persist_async(at, [item] if stage.batch else item, limit, note)
        return self._result(at, tried, calls, item)

    def call_together(self, item: Any, together: Together, limit: float | None = None) -> None:
        """Call stages on an item at the same time, from the first on."""
        if self.any_async:
            work = self.call_together_async(item, together, limit)
            background.run(work, _LOOP_FIX.format("answer_async"))
            return
        notes = together.notes

        def one(at: int) -> None:
            together.results[at] = self.call(at, item, limit, notes[at])

        jobs = [Job(one, at) for at in range(len(notes))]
        elsewhere = set(jobs)
        try:
            for job in jobs[:-1]:
                self.threads.start(job)
            # What no thread has begun is done here: a stage that calls a cascade cannot wait for
            # threads that all wait for it.
            for at in reversed(range(len(jobs))):
                if jobs[at].claim():
                    elsewhere.discard(jobs[at])
                    notes[at] = CallNote()
                    jobs[at].run()
                    _raise_error(jobs[at])
            for job in jobs:
                job.wait()
                _raise_error(job)
        except BaseException:
            for job in elsewhere:
                self.threads.leave(job)
            raise

    async def call_together_async(
        self, item: Any, together: Together, limit: float | None = None
    ) -> None:
        """The same, awaited."""

        async def one(at: int, note: Note) -> None:
            together.results[at] = await self.call_async(at, item, limit, note)

        await await_all(one(at, note) for at, note in enumerate(together.notes))

    def close(self) -> None:
        """Let go of threads."""
        self.threads.close()

    # ---- until it answers --------------------------------------------------------------------

    def persist(
        self, at: int, given: Any, limit: float | None, note: Note = UNREAD
    ) -> tuple[Attempt, int]:
        """Call a stage as often as its settings say; what came of it, and how many calls."""
        if self.is_async[at]:
            note.begun = shared = SharedNote()
            work = self.persist_async(at, given, limit, shared)
            return background.run(work, _LOOP_FIX.format("answer_async or answer_many_async"))
        tries = Tries(self.stages[at].retry, limit, elapsed=self.clock == "elapsed")
        while True:
            refused = self._refused(at)
            if refused is not None:
                return tries.ended(refused)
            tried = self._once(at, given, tries, note)
            wait = self._after(at, tries, tried)
            if wait is None:
                return tries.ended()
            time.sleep(wait)

    async def persist_async(
        self, at: int, given: Any, limit: float | None, note: Note = UNREAD
    ) -> tuple[Attempt, int]:
        """The same, awaited."""
        tries = Tries(self.stages[at].retry, limit, elapsed=self.clock == "elapsed")
        while True:
            refused = self._refused(at)
            if refused is not None:
                return tries.ended(refused)
            tried = await self._once_async(at, given, tries, note)
            wait = self._after(at, tries, tried)
            if wait is None:
                return tries.ended()
            await asyncio.sleep(wait)

    def _refused(self, at: int) -> Exception | None:
        """Why a stage is not to be called now, if so."""
        busy = self._left[at].refusal()
        if busy is not None:
            return busy
        breaker = self._breakers[at]
        if breaker is not None and not breaker.allows():
            name = self.stages[at].name
            return StageRestingError(f"stage {name} failed too often in a row and is left alone")
        return None

    def _after(self, at: int, tries: Tries, tried: Attempt) -> float | None:
        """Note a call; the seconds to wait before the next, or None if it was the last."""
        if isinstance(tried.error, StageBusyError):
            tries.refused(tried)
            return None
        breaker = self._breakers[at]
        if breaker is not None:
            breaker.note(failed=tried.error is not None)
        return tries.after(tried)

    # ---- once --------------------------------------------------------------------------------

    def _once(self, at: int, given: Any, tries: Tries, note: Note) -> Attempt:
        stage, begun = self.stages[at], (at, tries.calls + 1)
        seconds = least(stage.timeout, tries.limit())
        if seconds is None:
            tried = attempt(stage.call, given, note, begun)
        else:
            within = self.threads.call(
                noted(stage.call, note, begun), given, self._left[at], seconds
            )
            tried = within or late(seconds)
        if tried.error is None and is_awaitable(tried.value):
            return self._await_here(at, tried, seconds)
        return tried

    def _await_here(self, at: int, tried: Attempt, seconds: float | None) -> Attempt:
        """A plain stage returned something to await (`lambda text: client.ask(text)`)."""
        fix = f"stage {self.stages[at].name} returned an awaitable; await answer_async instead"
        return background.run(awaited(tried, seconds, self._waits[at]), fix)

    async def _once_async(self, at: int, given: Any, tries: Tries, note: Note) -> Attempt:
        stage, limit, begun = self.stages[at], tries.limit(), (at, tries.calls + 1)
        seconds = least(stage.timeout, limit)
        if self.is_async[at]:
            interrupts: list[BaseException] = []
            work = begin_awaited(stage.call, given, note, begun, interrupts)
            tried = await awaited(Attempt(work, None, 0.0), seconds, self._waits[at])
            if interrupts:
                raise interrupts[0]
            return tried
        found = await self.threads.call_async(
            noted(stage.call, note, begun), given, self._left[at], stage.timeout, limit
        )
        if found is None:
            return late(seconds or 0.0)
        if found.error is None and is_awaitable(found.value):
            return await awaited(found, seconds, self._waits[at])
        return found

    # ---- results -----------------------------------------------------------------------------

    def cost_of(self, at: int, tried: Attempt, calls: int, size: int = 1) -> float | None:
        """What calls on `size` items cost, as far as the caller knows; None: the known cost."""
        if self.clock is not None:
            return tried.seconds
        return None if calls == 1 else calls * size * self.stages[at].cost

    def _result(self, at: int, tried: Attempt, calls: int, item: Any) -> CallResult:
        cost = self.cost_of(at, tried, calls)
        if tried.error is not None:
            return failure(tried, cost)
        stage, value = self.stages[at], tried.value
        if stage.batch:
            check_outputs(stage.name, value)
            value = outputs_of(stage.name, value, 1)
            if isinstance(value, Exception):
                return CallResult(None, cost, value, seconds=tried.seconds)
            value = value[0]
        if type(value) not in _LABELS:
            check_output(stage.name, value)
            self._look_at(at, value, item)
        repeats = (calls - 1) * stage.cost
        return result_of(value, cost, repeats, clock=self.clock is not None)._replace(
            seconds=tried.seconds
        )

    def _look_at(self, at: int, value: Any, item: Any) -> None:
        """Warn, once for each stage, of an output that is a vector where a label is wanted."""
        if not self._as_labels:
            return
        name = self.stages[at].name
        shape = vector_shape(value)
        per_character = type(item) is str and type(value) is list and len(value) == len(item) > 1
        if shape is None and per_character and not self.stages[at].batch:
            shape = f"a list of {len(value)} values for a text of {len(item)} characters"
        if shape is not None:
            self.warn_once(
                f"stage {name} returned {shape} as one output. Outputs are compared as they are:"
                " give batch=True if the function takes many items, return the chosen label if"
                " these are its scores, or say with comparator= when two of them agree"
            )

    def warn_once(self, message: str) -> None:
        """Warn of something that holds for a stage and not for one call of it."""
        if message not in self._warned:
            self._warned.add(message)
            warn(message, stacklevel=5)


def failure(tried: Attempt, cost: float | None) -> CallResult:
    """The result of a call that raised. What is no failure of a stage, an exit, is raised."""
    error = tried.error
    if not isinstance(error, Exception):
        assert error is not None
        raise error
    return CallResult(None, cost, error, seconds=tried.seconds)


def _raise_error(job: Job) -> None:
    assert job.result is not None
    if job.result.error is not None:
        raise job.result.error
