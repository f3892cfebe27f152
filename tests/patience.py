"""Waiting in tests, on machines that may stall at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something holds: a check that returns what is true, or None, and raises nothing.

    A fault shows after `seconds`, which is many times what is needed.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            if holds() not in (None, True):
                raise AssertionError("it does not hold yet")
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def in_some_run(check: Callable[[], None], runs: int = 5) -> None:
    """Check what rests on the clock again where it fails.

    A machine may stall in one run, and in another; a fault is in all of them.
    """
    for _ in range(runs - 1):
        try:
            return check()
        except AssertionError:
            continue
    return check()
