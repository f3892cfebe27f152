"""A signal handler that raises, at a moment that a test chooses."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupt(BaseException):
    """What a handler raises."""


def interrupted(work: Callable[[], None], moment: int) -> bool:
    """Do the work; raise at the given moment of this thread. Whether there was such a moment.

    Python runs signal handlers where a function begins and where a call of C has returned, which
    is what a profiler is told of. Destructors, generators that are closed and what is called when
    garbage is collected are left out: Python drops what is raised in them.
    """
    seen = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal seen
        if event not in ("call", "c_return") or argument is sys.setprofile:
            return
        one: FrameType | None = frame
        while one is not None:
            if one.f_code.co_name in ("__del__", "_remove", "<genexpr>"):
                return
            one = one.f_back
        if seen == moment:
            sys.setprofile(None)
            seen += 1
            raise Interrupt
        seen += 1

    gc.disable()
    sys.setprofile(profile)
    try:
        work()
    except Interrupt:
        pass
    finally:
        sys.setprofile(None)
        gc.enable()
    return seen > moment
