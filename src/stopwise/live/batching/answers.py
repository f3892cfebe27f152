"""Many answers: batches that are run as they are asked for, and what they gave."""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sized,
)
from typing import Any

from stopwise.checks import whole_number
from stopwise.live.batching.batch import Batch
from stopwise.live.batching.items import SegmentOf, Segments, parts, parts_async
from stopwise.live.batching.progress import Progress, reporting
from stopwise.live.running.answer import Answer

RunBatch = Callable[[Any, Any], Batch]
RunBatchAsync = Callable[[Any, Any], Awaitable[Batch]]


class Answers:
    """The answers of `Cascade.answer_many`; nothing is called until they are asked for.

    Every item comes back, in order: with its answer, or with the reason why it has none.

    Args:
        run: answers the items of one batch, given their segments.
        items: a list, an array, a frame (sliced by rows), or any iterable.
        batch_size: items in a batch; None begins small and doubles.
        segment: of all items, of each, or a function of an item.
        progress: see `Cascade.answer_many`.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
    >>> answers = Cascade(stages, "fixed:stage=0", mistake_cost=20).answer_many(["a", "B"])
    >>> [one.answer for one in answers]
    [True, False]
    """

    def __init__(
        self,
        run: RunBatch,
        items: Iterable[Any],
        batch_size: int | None,
        segment: Segments,
        progress: Progress,
    ) -> None:
        self._run = run
        self._items = items
        self._batch_size = _checked(batch_size)
        self._segment = segment
        self._progress = progress
        SegmentOf(segment)

    def __iter__(self) -> Iterator[Answer]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Batch]:
        """Run batch after batch."""
        segments = SegmentOf(self._segment)
        total = len(self._items) if isinstance(self._items, Sized) else None
        done = 0
        with reporting(self._progress, total) as report:
            for part in parts(self._items, self._batch_size):
                batch = self._run(part, segments.of(part))
                done += len(batch)
                report(done)
                yield batch

    def collect(self) -> Batch:
        """Run all batches and join them."""
        return Batch.joined(list(self.batches()))


class AsyncAnswers:
    """The answers of `Cascade.answer_many_async`: `async for`, or `await collect()`.

    Args:
        run: answers the items of one batch, given their segments.
        items: as for `Answers`, or an asynchronous iterable.
        batch_size: items in a batch; None begins small and doubles.
        segment: of all items, of each, or a function of an item.
        progress: see `Cascade.answer_many`.

    >>> import asyncio
    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
    >>> cascade = Cascade(stages, "fixed:stage=0", mistake_cost=20)
    >>> async def run():
    ...     return [one.answer async for one in cascade.answer_many_async(["a", "B"])]
    >>> asyncio.run(run())
    [True, False]
    """

    def __init__(
        self,
        run: RunBatchAsync,
        items: Iterable[Any] | AsyncIterable[Any],
        batch_size: int | None,
        segment: Segments,
        progress: Progress,
    ) -> None:
        self._run = run
        self._items = items
        self._batch_size = _checked(batch_size)
        self._segment = segment
        self._progress = progress
        SegmentOf(segment)

    async def __aiter__(self) -> AsyncIterator[Answer]:
        async for batch in self.batches():
            for answer in batch:
                yield answer

    async def batches(self) -> AsyncIterator[Batch]:
        """Run batch after batch."""
        segments = SegmentOf(self._segment)
        total = len(self._items) if isinstance(self._items, Sized) else None
        done = 0
        with reporting(self._progress, total) as report:
            async for part in parts_async(self._items, self._batch_size):
                batch = await self._run(part, segments.of(part))
                done += len(batch)
                report(done)
                yield batch

    async def collect(self) -> Batch:
        """Run all batches and join them."""
        return Batch.joined([batch async for batch in self.batches()])


def _checked(batch_size: int | None) -> int | None:
    return None if batch_size is None else whole_number("batch_size", batch_size, least=1)
