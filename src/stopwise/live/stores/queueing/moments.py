"""When rounds were queued: how long the oldest of them has waited."""

from __future__ import annotations

import contextlib
import time
from collections import deque

_APART = 16


class QueuedMoments:
    """When some of the rounds were queued, by their numbers: every `_APART`th is enough.

    >>> moments = QueuedMoments()
    >>> moments.note(1, always=True)
    >>> moments.waited(1) >= 0.0, moments.waited(5) >= 0.0
    (True, True)
    """

    __slots__ = ("_moments", "_newest")

    def __init__(self) -> None:
        self._moments: deque[tuple[int, float]] = deque()
        self._newest = 0

    def note(self, number: int, *, always: bool) -> None:
        """Note that a round is queued now; if not `always`, only if none was noted lately."""
        if always or number >= self._newest + _APART:
            self._newest = number
            self._moments.append((number, time.monotonic()))

    def waited(self, first: int) -> float:
        """For how many seconds a round has waited, or a few less."""
        at = None
        with contextlib.suppress(RuntimeError):  # another thread queues at this moment
            for number, moment in self._moments:
                if at is not None and number > first:
                    break
                at = moment
        return 0.0 if at is None else time.monotonic() - at

    def forget(self, last: int) -> None:
        """Forget what is of no more use once all rounds up to this one are kept."""
        moments = self._moments
        while len(moments) > 1 and moments[1][0] <= last + 1:
            moments.popleft()
