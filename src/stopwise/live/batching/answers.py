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
from typing import Any, Generic, TypeVar

from stopwise.checks import fail, whole_number
from stopwise.live.batching.batch import Batch
from stopwise.live.batching.items import SegmentOf, Segments, parts, parts_async
from stopwise.live.batching.progress import Progress, reporting
from stopwise.live.running.answer import Answer

RunBatch = Callable[[Any, Any], Batch]
RunBatchAsync = Callable[[Any, Any], Awaitable[Batch]]
RunT = TypeVar("RunT")
ItemsT = TypeVar("ItemsT")


class _Asked(Generic[RunT, ItemsT]):
    """What is asked, checked at once though nothing is called yet.

    Args:
        run: answers the items of one batch, given their segments.
        items: what is answered.
        batch_size: items in a batch; None begins small and doubles.
        segment: of all items, of each, or a function of an item.
        progress: see `Cascade.answer_many`.
    """

    def __init__(
        self,
        run: RunT,
        items: ItemsT,
        batch_size: int | None,
        segment: Segments,
        progress: Progress,
    ) -> None:
        if not isinstance(items, (Iterable, AsyncIterable)) and not hasattr(items, "__getitem__"):
            raise fail("items", items, "items to answer: a list, an array, a frame or any iterable")
        self._run = run
        self._items = items
        self._total = len(items) if isinstance(items, Sized) else None
        self._batch_size = batch_size
        if batch_size is not None:
            self._batch_size = whole_number("batch_size", batch_size, least=1)
        self._segment = segment
        self._progress = progress
        SegmentOf(segment)

    def __repr__(self) -> str:
        number = "" if self._total is None else f"{self._total} "
        return f"<{type(self).__name__}: {number}items, called when asked for>"


class Answers(_Asked[RunBatch, Iterable[Any]]):
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
    >>> [len(batch) for batch in answers.batches()], answers.collect().answers
    ([2], [True, False])
    """

    def __iter__(self) -> Iterator[Answer]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Batch]:
        """Run batch after batch."""
        segments = SegmentOf(self._segment)
        done = 0
        with reporting(self._progress, self._total) as report:
            for part in parts(self._items, self._batch_size):
                batch = self._run(part, segments.of(part))
                done += len(batch)
                report(done)
                yield batch

    def collect(self) -> Batch:
        """Run all batches and join them."""
        return Batch.joined(list(self.batches()))


class AsyncAnswers(_Asked[RunBatchAsync, Iterable[Any] | AsyncIterable[Any]]):
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
    >>> asyncio.run(cascade.answer_many_async(["a", "B"]).collect()).answers
    [True, False]
    >>> async def run():
    ...     return [len(batch) async for batch in cascade.answer_many_async("aB").batches()]
    >>> asyncio.run(run())
    [2]
    """

    async def __aiter__(self) -> AsyncIterator[Answer]:
        async for batch in self.batches():
            for answer in batch:
                yield answer

    async def batches(self) -> AsyncIterator[Batch]:
        """Run batch after batch."""
        segments = SegmentOf(self._segment)
        done = 0
        with reporting(self._progress, self._total) as report:
            async for part in parts_async(self._items, self._batch_size):
                batch = await self._run(part, segments.of(part))
                done += len(batch)
                report(done)
                yield batch

    async def collect(self) -> Batch:
        """Run all batches and join them."""
        return Batch.joined([batch async for batch in self.batches()])
