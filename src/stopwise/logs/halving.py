"""How far something holds along a line, found by halving."""

from __future__ import annotations

from collections.abc import Callable


def last_that_holds(
    holds: Callable[[float], bool], start: float, end: float, *, times: int
) -> float:
    """The last number on the way from `start` to `end` of which something holds.

    It is taken to hold of `start`, and from some place on no more. What comes out always holds. Its
    distance from that place is below the length of the way, halved `times` times.

    >>> last_that_holds(lambda x: x * x <= 2, 0, 2, times=20)
    1.4142131805419922
    >>> last_that_holds(lambda x: x >= 1.5, 2, 0, times=3)          # downwards
    1.5
    """
    for _ in range(times):
        middle = (start + end) / 2
        start, end = (middle, end) if holds(middle) else (start, middle)
    return start
