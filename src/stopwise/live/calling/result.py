"""What one call of a stage gave."""

from __future__ import annotations

from typing import Any, NamedTuple

from stopwise.live.calling.stage import Reported


class CallResult(NamedTuple):
    """What one call of a stage gave.

    Attributes:
        output: the output; of a call on many items, their outputs together.
        cost: what the call really cost, if that is known.
        error: what it raised, if it failed.
        confidence: how sure the stage says it is.
    """

    output: Any
    cost: float | None
    error: Exception | None = None
    confidence: float | None = None


def result_of(value: Any, cost: float | None) -> CallResult:
    """The result of a call that returned this value, and what it cost as far as was measured.

    >>> result_of(Reported("yes", confidence=0.9), 0.5)
    CallResult(output='yes', cost=0.5, error=None, confidence=0.9)
    """
    if type(value) is Reported:
        spent = value.cost if cost is None else cost
        return CallResult(value.output, spent, confidence=value.confidence)
    return CallResult(value, cost)
