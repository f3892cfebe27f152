"""How far a run over many items has come: a bar on a terminal, or a function that is called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = bool | Callable[[int, int | None], None]


@contextmanager
def reporting(progress: Progress, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of items done.

    >>> with reporting(print, 9) as report:
    ...     report(4)
    4 9
    """
    if callable(progress):
        yield lambda done: progress(done, total)
        return
    if not progress or not sys.stderr.isatty():
        yield lambda done: None
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
        yield lambda done: bar.update(task, completed=done, total=total)
