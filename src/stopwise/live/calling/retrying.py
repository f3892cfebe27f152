"""Calling again, and not calling for a while: what to do about a stage that fails."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from stopwise.checks import fail, finite_number, names_fields, whole_number
from stopwise.live.calling.jobs import Attempt
from stopwise.live.calling.locks import ForkSafeLock


@names_fields
@dataclass(frozen=True)
class Retry:
    """How often, and after which waits, a call that failed is made again.

    Args:
        times: how many more calls there may be.
        wait: seconds before the first of them; each later wait is twice as long. A random share of
            up to a half is taken off, so that many callers do not come back at the same moment.
        most: the longest wait.
        on: the errors that are worth another call.

    >>> Retry(3, wait=1).wait_before(2, draw=lambda: 0.0)
    2.0
    """

    times: int = 2
    wait: float = 0.5
    most: float = 30.0
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def __post_init__(self) -> None:
        whole_number("retry: times", self.times, least=0)
        for field in ("wait", "most"):
            accepted = "a number of seconds, 0 or more"
            if finite_number(f"retry: {field}", getattr(self, field), accepted) < 0:
                raise fail(f"retry: {field}", getattr(self, field), accepted)
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise fail("retry: on", self.on, "an exception class, or a tuple of them")

    def wait_before(self, number: int, draw: Callable[[], float] = random.random) -> float:
        """Seconds before the call of this number (from 1) that is made again."""
        return min(self.most, self.wait * 2.0 ** (number - 1)) * (1.0 - 0.5 * draw())


@names_fields
@dataclass(frozen=True)
class Breaker:
    """When a stage that keeps failing is left alone for a while (a circuit breaker).

    After `failures` failed calls in a row the stage is not called for `seconds`: it fails at once,
    at no cost. Then one call is let through; it decides whether the stage is used again.

    Args:
        failures: failed calls in a row.
        seconds: how long it is left alone.

    >>> Breaker(3, seconds=10).failures
    3
    """

    failures: int = 5
    seconds: float = 30.0

    def __post_init__(self) -> None:
        whole_number("breaker: failures", self.failures, least=1)
        accepted = "a number of seconds above 0"
        if finite_number("breaker: seconds", self.seconds, accepted) <= 0:
            raise fail("breaker: seconds", self.seconds, accepted)


class BreakerState:
    """How a stage has fared lately.

    >>> state = BreakerState(Breaker(1, seconds=10), clock=lambda: 0.0)
    >>> state.note(failed=True)
    >>> state.allows()
    False
    """

    def __init__(self, breaker: Breaker, clock: Callable[[], float] = time.monotonic) -> None:
        self._breaker = breaker
        self._clock = clock
        self._lock = ForkSafeLock()
        self._in_a_row = 0
        self._rests_until = 0.0

    def allows(self) -> bool:
        """Whether the stage may be called now. After a rest, one caller may."""
        with self._lock.lock:
            if self._in_a_row < self._breaker.failures:
                return True
            now = self._clock()
            if now < self._rests_until:
                return False
            self._rests_until = now + self._breaker.seconds  # others wait for this one's outcome
            return True

    def note(self, *, failed: bool) -> None:
        """Tell what came of a call."""
        if not failed and not self._in_a_row:
            return
        with self._lock.lock:
            self._in_a_row = self._in_a_row + 1 if failed else 0
            if self._in_a_row >= self._breaker.failures:
                self._rests_until = self._clock() + self._breaker.seconds


class Tries:
    """The calls of a stage for one item: their number, their work, and what is left of its time.

    Args:
        retry: how often a failed call is made again.
        limit: seconds that the item has left.
        elapsed: whether all seconds from here on are counted, also those of waiting.

    >>> Tries(None, None).ended()[1]
    0
    """

    def __init__(
        self, retry: Retry | int | None, limit: float | None, *, elapsed: bool = False
    ) -> None:
        self._begun = time.perf_counter() if elapsed else None
        self._retry = retry if isinstance(retry, Retry) else None
        self._until = None if limit is None else time.monotonic() + limit
        self.calls = 0
        self._seconds = 0.0
        self._last = Attempt(None, None, 0.0)

    def limit(self) -> float | None:
        """Seconds that the item has left."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def after(self, tried: Attempt) -> float | None:
        """Note a call; the seconds to wait before the next, or None if there is none."""
        self.calls += 1
        self._seconds += tried.seconds
        self._last = tried
        retry = self._retry
        if retry is None or not isinstance(tried.error, retry.on) or self.calls > retry.times:
            return None
        wait = retry.wait_before(self.calls)
        left = self.limit()
        return wait if left is None or wait < left else None

    def refused(self, tried: Attempt) -> None:
        """Note a call that was not made after all."""
        if not self.calls:
            self._last = tried

    def ended(self, refused: Exception | None = None) -> tuple[Attempt, int]:
        """The last call, with the seconds of all; a refusal counts if there was no call."""
        last = self._last if refused is None or self.calls else Attempt(None, refused, 0.0)
        seconds = self._seconds if self._begun is None else time.perf_counter() - self._begun
        return last._replace(seconds=seconds), self.calls
