"""Calls stages: plain or async, one item or many, within their time, and says what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.live.calling.result import CallResult, result_of
from stopwise.live.calling.stage import Stage
from stopwise.live.calling.threads import call_in_thread, call_within


class StageCaller:
    """Calls the stages of a cascade. Whatever a stage raises is its failure, and a result.

    Args:
        stages: the stages, in order.
        clock: whether calls cost the seconds that they take.
        workers: threads for stages that are called at the same time.

    >>> caller = StageCaller([Stage("upper", str.upper)], clock=False)
    >>> caller.call(0, "a").output
    'A'
    """

    def __init__(self, stages: Sequence[Stage], *, clock: bool, workers: int | None = None) -> None:
        self.stages = tuple(stages)
        self._clock = clock
        self._workers = workers
        self._pool: ThreadPoolExecutor | None = None
        self._is_async = [stage.is_async for stage in self.stages]
        self.any_async = any(self._is_async)

    # ---- one item ----------------------------------------------------------------------------

    def call(self, at: int, item: Any) -> CallResult:
        """Call a stage on an item."""
        stage = self.stages[at]
        start = time.perf_counter()
        try:
            if stage.timeout is None:
                value = stage.call([item])[0] if stage.batch else stage.call(item)
            else:
                value = call_within(stage.timeout, stage.call, [item] if stage.batch else item)
                value = value[0] if stage.batch else value
        except Exception as error:  # noqa: BLE001  # whatever a stage raises is its failure
            return CallResult(None, self._elapsed(start), error)
        return result_of(value, self._elapsed(start))

    def call_together(self, item: Any, last: int) -> list[CallResult]:
        """Call all stages up to the last on an item, at the same time."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="stopwise")
        calls = [self._pool.submit(self.call, at, item) for at in range(last + 1)]
        return [call.result() for call in calls]

    async def call_async(self, at: int, item: Any) -> CallResult:
        """Call a stage on an item; a plain one in a thread."""
        stage = self.stages[at]
        start = time.perf_counter()
        given = [item] if stage.batch else item
        try:
            if self._is_async[at]:
                work = stage.call(given)
            elif stage.timeout is None:
                work = asyncio.to_thread(stage.call, given)
            else:
                work = call_in_thread(stage.call, given)
            value = await asyncio.wait_for(work, stage.timeout)
            value = value[0] if stage.batch else value
        except Exception as error:  # noqa: BLE001
            return CallResult(None, self._elapsed(start), error)
        return result_of(value, self._elapsed(start))

    async def call_together_async(self, item: Any, last: int) -> list[CallResult]:
        """Call all stages up to the last on an item, at the same time."""
        return await asyncio.gather(*(self.call_async(at, item) for at in range(last + 1)))

    # ---- many items --------------------------------------------------------------------------

    def call_each(self, at: int, items: Any, concurrency: int) -> Sequence[CallResult]:
        """Call a stage on many items: at once if it takes batches, else on one after another."""
        if self.stages[at].batch:
            return self.for_each(at, self.call_batch(at, items), len(items))
        if self._is_async[at]:
            return asyncio.run(self._call_each_async(at, items, concurrency))
        return [self.call(at, item) for item in items]

    async def _call_each_async(self, at: int, items: Any, most: int) -> Sequence[CallResult]:
        gate = asyncio.Semaphore(most)

        async def call(item: Any) -> CallResult:
            async with gate:
                return await self.call_async(at, item)

        return await asyncio.gather(*(call(item) for item in items))

    def call_batch(self, at: int, items: Any) -> CallResult:
        """One call of a stage that takes batches; its cost is of all items together."""
        stage = self.stages[at]
        start = time.perf_counter()
        try:
            if self._is_async[at]:
                value = asyncio.run(asyncio.wait_for(stage.call(items), stage.timeout))
            elif stage.timeout is None:
                value = stage.call(items)
            else:
                value = call_within(stage.timeout, stage.call, items)
        except Exception as error:  # noqa: BLE001
            return CallResult(None, self._elapsed(start), error)
        return CallResult(value, self._elapsed(start))

    def for_each(self, at: int, whole: CallResult, size: int) -> Sequence[CallResult]:
        """What one call gave for each of its items; if it failed, it failed for all of them."""
        share = None if whole.cost is None else whole.cost / size
        if whole.error is not None:
            return [whole._replace(cost=share)] * size
        outputs = whole.output
        try:
            got = len(outputs)
        except TypeError:
            got = -1
        if got != size:
            problem = StopwiseError(
                f"stage {self.stages[at].name}: need {size} outputs for {size} items, got"
                f" {got if got >= 0 else repr(outputs)}"
            )
            return [CallResult(None, share, problem)] * size
        values = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
        return [result_of(value, share) for value in values]

    def close(self) -> None:
        """Let go of threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _elapsed(self, start: float) -> float | None:
        return time.perf_counter() - start if self._clock else None
