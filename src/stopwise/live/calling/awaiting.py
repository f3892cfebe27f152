"""Awaits what a call returned, within its time, and counts the seconds that it works."""

from __future__ import annotations

import asyncio
from typing import Any

from stopwise.live.calling.clocks import Waits, Working
from stopwise.live.calling.jobs import Attempt
from stopwise.live.interrupts import is_failure


async def awaited(tried: Attempt, seconds: float | None, waits: Waits) -> Attempt:
    """Await what a call returned.

    Args:
        tried: what it returned.
        seconds: how long it may take; None for any time.
        waits: how long calls of this stage wait.
    """
    if tried.error is not None:
        return tried
    working = Working(tried.value, waits)
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
    """What stands for a call that ran out of time.

    >>> late(2.5).error
    TimeoutError('no output within 2.5 s')
    """
    error = TimeoutError(f"no output within {seconds:g} s")
    return Attempt(None, error, seconds if spent is None else spent)
