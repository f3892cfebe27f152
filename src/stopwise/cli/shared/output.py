"""What commands share when they speak: files in, JSON out, progress, small plots."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: Any) -> None:
    """One JSON document on standard output; NaN is refused, since JSON has none."""
    print(json.dumps(value, indent=2, allow_nan=False))


def plain_console() -> Console:
    """A terminal on which names and labels stand as they are.

    A label such as [/b] is no markup, and one such as :bell: no emoji: they are a user's data.
    """
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error with time left; nothing where that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def text_plot(x: Sequence[float], y: Sequence[float], *, width: int = 60, height: int = 10) -> str:
    """A curve drawn with block characters, with its largest values on the axes.

    >>> print(text_plot([0, 1, 2, 3], [0, 1, 2, 3], width=4, height=2))
           3 │  ▂█
           0 │ ▅██
    ...
    """
    blocks = " ▁▂▃▄▅▆▇█"
    top = max(*y, 1e-300)
    first, last = x[0], x[-1]
    heights = []
    for column in range(width):
        at = first + (last - first) * column / max(width - 1, 1)
        nearest = min(range(len(x)), key=lambda k: abs(x[k] - at))
        heights.append(max(y[nearest], 0.0) / top * height)
    lines = []
    for row in range(height - 1, -1, -1):
        cells = "".join(blocks[int(min(max(h - row, 0), 1) * 8)] for h in heights)
        label = f"{top:.4g}" if row == height - 1 else "0" if row == 0 else ""
        lines.append(f"{label:>8} │{cells}")
    lines.append(f"{'':>8} └{'─' * width}")
    lines.append(f"{'':>8}  {f'{first:.4g}':<{width // 2}}{f'{last:.4g}':>{width - width // 2}}")
    return "\n".join(lines)
