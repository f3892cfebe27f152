"""Many answers: batches that are run as they are asked for, and what they gave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from stopwise.checks import whole_number
from stopwise.costs import FloatArray
from stopwise.live.calling.answer import Answer
from stopwise.problem import IntArray

Progress = bool | Callable[[int, int | None], None]

_FIRST, _LARGEST = 16, 4096


@dataclass(frozen=True)
class Batch:
    """Answers of many items, as columns.

    Attributes:
        answers: one for each item; an array where stages gave arrays.
        stages: the stage, 0-based, that answered; -1 where none did.
        depths: the stage at which each item was to stop, with `probabilities`.
        costs: of each item.
    """

    answers: Sequence[Any]
    stages: IntArray
    depths: IntArray
    probabilities: FloatArray
    costs: FloatArray
    singles: Callable[[int], Answer]

    def __len__(self) -> int:
        return len(self.stages)

    def __iter__(self) -> Iterator[Answer]:
        return (self.singles(at) for at in range(len(self)))


class Answers:
    """The answers of `Cascade.answer_many`; nothing is called until they are asked for.

    Args:
        run: answers the items of one batch.
        items: a list, an array, a frame (sliced by rows), or any iterable.
        batch_size: items in a batch; None begins small and doubles.
        progress: see `Cascade.answer_many`.
    """

    def __init__(
        self,
        run: Callable[[Any], Batch],
        items: Iterable[Any],
        batch_size: int | None,
        progress: Progress,
    ) -> None:
        if batch_size is not None:
            batch_size = whole_number("batch_size", batch_size, least=1)
        self._run = run
        self._items = items
        self._batch_size = batch_size
        self._progress = progress

    def __iter__(self) -> Iterator[Answer]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Batch]:
        """Run batch after batch."""
        total = len(self._items) if isinstance(self._items, Sized) else None
        done = 0
        with _reporting(self._progress, total) as report:
            for part in self._parts(total):
                batch = self._run(part)
                done += len(batch)
                if report is not None:
                    report(done, total)
                yield batch

    def collect(self) -> Batch:
        """Run all batches and join them."""
        batches = list(self.batches())
        if len(batches) == 1:
            return batches[0]
        answers: Any = [batch.answers for batch in batches]
        if all(isinstance(part, np.ndarray) for part in answers) and answers:
            joined: Sequence[Any] = np.concatenate(answers)  # type: ignore[assignment]
        else:
            joined = [answer for part in answers for answer in part]
        starts = np.cumsum([0, *map(len, batches)])

        def single(at: int) -> Answer:
            which = int(np.searchsorted(starts, at, side="right")) - 1
            return batches[which].singles(at - int(starts[which]))

        def column(name: str, kind: type) -> Any:
            return np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in batches)])

        return Batch(
            joined,
            column("stages", np.int64),
            column("depths", np.int64),
            column("probabilities", np.float64),
            column("costs", np.float64),
            single,
        )

    def _parts(self, total: int | None) -> Iterator[Any]:
        size = self._batch_size or _FIRST
        if total is not None and hasattr(self._items, "__getitem__"):
            rows = getattr(self._items, "iloc", self._items)
            start = 0
            while start < total:
                yield rows[start : start + size]
                start += size
                size = self._next_size(size)
        else:
            source = iter(self._items)
            while part := list(islice(source, size)):
                yield part
                size = self._next_size(size)

    def _next_size(self, size: int) -> int:
        return self._batch_size or min(2 * size, _LARGEST)


@contextmanager
def _reporting(
    progress: Progress, total: int | None
) -> Iterator[Callable[[int, int | None], None] | None]:
    if callable(progress):
        yield progress
        return
    if not progress or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("answering"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("answering", total=total)
        yield lambda done, total: bar.update(task, completed=done, total=total)
