"""One call within its time, in a thread or awaited, noted as begun the moment it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from stopwise.live.calling.clocks import Working
from stopwise.live.calling.jobs import Attempt
from stopwise.live.interrupts import Begun, Note, SharedNote, before_first_line, is_failure


def noted(function: Callable[[Any], Any], note: Note, begun: Begun) -> Callable[[Any], Any]:
    """The same function for another thread; after an interrupt here it is not called any more."""
    shared = SharedNote()
    shared.begun = (begun[0], begun[1] - 1)  # calls that failed
    note.begun = shared

    def call(item: Any) -> Any:
        shared.begun = begun
        return function(item)

    return call


async def begin_awaited(
    function: Callable[[Any], Any],
    item: Any,
    note: Note,
    begun: Begun,
    interrupts: list[BaseException],
) -> Any:
    """Call and await an async function. Only awaiting begins its work, maybe some time later."""
    try:
        note.begun = begun
        return await function(item)
    except BaseException as error:
        if before_first_line(error):
            note.begun = (begun[0], begun[1] - 1)
            interrupts.append(error)
        raise


async def awaited(tried: Attempt, seconds: float | None) -> Attempt:
    """Await what a call returned."""
    if tried.error is not None:
        return tried
    working = Working(tried.value)
    try:
        value = await (
            working if seconds is None else asyncio.wait_for(_result_of(working), seconds)
        )
    except Exception as error:
        if not is_failure(error):
            raise
        spent = tried.seconds + working.seconds
        if isinstance(error, TimeoutError) and not error.args and seconds is not None:
            return late(seconds, spent)
        return Attempt(None, error, spent)
    return Attempt(value, None, tried.seconds + working.seconds)


async def _result_of(working: Working) -> Any:
    return await working


def late(seconds: float, spent: float | None = None) -> Attempt:
    """What came of a call that was not done in time."""
    error = TimeoutError(f"no output within {seconds:g} s")
    return Attempt(None, error, seconds if spent is None else spent)


def least(one: float | None, two: float | None) -> float | None:
    """The shorter of two limits, either of which may be none.

    >>> least(None, 2.0), least(3.0, 2.0)
    (2.0, 2.0)
    """
    return one if two is None else two if one is None else min(one, two)
