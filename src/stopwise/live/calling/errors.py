"""What can go wrong with a stage, and how it is said without giving secrets away."""

from __future__ import annotations

import logging
import warnings

from stopwise.checks import StopwiseError

logger = logging.getLogger("stopwise.live")


class NoAnswerError(StopwiseError):
    """Stages failed and none answered. The last failure is its cause.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("first", int, 1), Stage("second", float, 5)]
    >>> Cascade(stages, mistake_cost=20).answer("no number")
    Traceback (most recent call last):
    ...
    stopwise.live.calling.errors.NoAnswerError: no stage answered; first failed last (ValueError)
    """


class MisusedStageError(StopwiseError):
    """A stage returned what is no output (a generator, say). No stage is blamed: fix the code.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("first", iter, 1), Stage("second", list, 5)]
    >>> Cascade(stages, mistake_cost=20).answer([1, 2])
    Traceback (most recent call last):
    ...
    stopwise.live.calling.errors.MisusedStageError: stage first: returned a list_iterator; ...
    """


class StageBusyError(TimeoutError):
    """Too many calls of a stage ran out of time and are still running; it was not called.

    >>> isinstance(StageBusyError("slow"), TimeoutError)     # counts as a failure of the stage
    True
    """


class StageRestingError(ConnectionError):
    """A stage failed so often in a row that it is not called for a while; see `Breaker`.

    >>> from stopwise import Cascade, Stage
    >>> from stopwise.live import Breaker
    >>> broken = Stage("broken", int, 5, breaker=Breaker(1, seconds=60))
    >>> stages = [Stage("first", str.upper, 1), broken]
    >>> cascade = Cascade(stages, "fixed:stage=1", mistake_cost=20)
    >>> [type(cascade.answer("a").failures[0][1]).__name__ for _ in range(2)]
    ['ValueError', 'StageRestingError']
    """


def describe(error: object) -> str:
    """An error in a few words, without its text: that may hold a key, an address or the item.

    >>> describe(ConnectionError("https://user:password@host"))
    'ConnectionError'
    >>> describe(OSError(28, "No space left on device", "/a/secret/path"))
    'OSError: No space left on device'
    >>> describe(StopwiseError("costs: got [] but need at least two stages"))
    'costs: got [] but need at least two stages'
    """
    if isinstance(error, StopwiseError):
        return str(error)
    name = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return f"{name}: {error.strerror}"
    return name


def warn(message: str, *, stacklevel: int = 3) -> None:
    """Warn, and log where warnings are errors: a message must never cost an answer."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=stacklevel)
    except RuntimeWarning:
        logger.warning(message)
