"""Threads that take turns as often as Python can have them do so."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def switching_often() -> Iterator[None]:
    """As long as this lasts, Python switches between threads whenever it may."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def at_once(works: Iterable[Callable[[], object]]) -> None:
    """Run each in a thread of its own, all at the same time, switching often."""
    threads = [threading.Thread(target=work) for work in works]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
