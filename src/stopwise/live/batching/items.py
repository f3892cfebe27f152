"""Items of any container: cut into batches, taken by rows, one by one, each with its segment."""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from itertools import islice
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.problem import IntArray

Segments = str | Sequence[str] | Callable[[Any], str]
_FIRST, _LARGEST = 16, 4096


def parts(items: Iterable[Any], batch_size: int | None) -> Iterator[Any]:
    """Cut items into batches: of one size, or small ones that double, so that few come first.

    >>> [len(part) for part in parts(range(100), None)]
    [16, 32, 52]
    """
    size = batch_size or _FIRST
    if isinstance(items, Sized) and hasattr(items, "__getitem__"):
        rows = getattr(items, "iloc", items)
        start = 0
        while start < len(items):
            yield rows[start : start + size]
            start += size
            size = batch_size or min(2 * size, _LARGEST)
    else:
        source = iter(items)
        while part := list(islice(source, size)):
            yield part
            size = batch_size or min(2 * size, _LARGEST)


async def parts_async(
    items: Iterable[Any] | AsyncIterable[Any], batch_size: int | None
) -> AsyncIterator[Any]:
    """The same, of items that may come asynchronously."""
    if not isinstance(items, AsyncIterable):
        for whole in parts(items, batch_size):
            yield whole
        return
    size = batch_size or _FIRST
    part: list[Any] = []
    async for item in items:
        part.append(item)
        if len(part) == size:
            yield part
            part = []
            size = batch_size or min(2 * size, _LARGEST)
    if part:
        yield part


def take(items: Any, rows: IntArray) -> Any:
    """Some rows of a batch, in the same kind of container.

    >>> take(["a", "b", "c"], np.array([0, 2]))
    ['a', 'c']
    """
    if len(rows) == len(items):
        return items
    if hasattr(items, "iloc"):
        return items.iloc[rows]
    if isinstance(items, np.ndarray):
        return items[rows]
    if hasattr(items, "iter_rows"):  # a frame of polars
        return items[rows.tolist()]
    return [items[k] for k in rows.tolist()]


def each(items: Any) -> Iterable[Any]:
    """The items one by one; of a frame, its rows."""
    if hasattr(items, "iloc"):
        return (items.iloc[k] for k in range(len(items)))
    if hasattr(items, "iter_rows"):
        return items.iter_rows(named=True)  # type: ignore[no-any-return]
    return items  # type: ignore[no-any-return]


class SegmentOf:
    """The segment of every item, from what a user may write.

    Args:
        segment: one for all; or a sequence, one for each item; or a function of the item.

    >>> segments = SegmentOf(["a", "b", "a"])
    >>> segments.of([1, 2]), segments.of([3])
    (['a', 'b'], ['a'])
    """

    def __init__(self, segment: Segments) -> None:
        self._one = segment if isinstance(segment, str) else None
        self._function = segment if callable(segment) else None
        self._all: list[Any] | None = None
        if self._one is None and self._function is None:
            try:
                self._all = list(segment)  # type: ignore[arg-type]
            except TypeError:
                accepted = "text, a sequence of texts, or a function of an item"
                raise fail("segment", segment, accepted) from None
        self._done = 0

    def of(self, items: Any) -> str | list[str]:
        """The segments of the next items."""
        if self._one is not None:
            return self._one
        size = len(items)
        if self._function is not None:
            found: list[Any] = [self._function(item) for item in each(items)]
        else:
            assert self._all is not None
            found = self._all[self._done : self._done + size]
            self._done += size
            if len(found) != size:
                raise StopwiseError(
                    f"segment: {len(self._all)} segments were given for {self._done} items or more"
                )
        for one in found:
            if not isinstance(one, str):
                raise fail("segment", one, "text for every item")
        return found
