"""What one call of a stage gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.live.calling.stage import Reported


class CallResult(NamedTuple):
    """What one call of a stage gave.

    Attributes:
        output: the output; of a call on many items, their outputs together.
        cost: what the call really cost, if that is known.
        error: what it raised, if it failed.
        confidence: how sure the stage says it is.
        seconds: how long it worked.
    """

    output: Any
    cost: float | None
    error: Exception | None = None
    confidence: float | None = None
    seconds: float = 0.0


def result_of(
    value: Any, cost: float | None, repeats: float = 0.0, *, clock: bool = False
) -> CallResult:
    """The result of a call that returned this value.

    Args:
        value: an output, or `Reported`.
        cost: what the call cost as far as the caller knows.
        repeats: what failed calls before it cost.
        clock: whether `cost` was measured, and counts whatever the stage reports.

    >>> result_of(Reported("yes", confidence=0.9), 0.5)
    CallResult(output='yes', cost=0.5, error=None, confidence=0.9, seconds=0.0)
    """
    if type(value) is not Reported:
        return CallResult(value, cost)
    if value.cost is not None and not clock:
        cost = value.cost + repeats
    return CallResult(value.output, cost, confidence=value.confidence)


def outputs_of(name: str, outputs: Any, size: int) -> Sequence[Any] | Exception:
    """The outputs of a call on many items, one for each; an error if there are more or fewer.

    >>> outputs_of("model", np.array([1, 2]), 2)
    [1, 2]
    """
    try:
        got = len(outputs)
    except TypeError:
        got = -1
    if got != size:
        return StopwiseError(
            f"stage {name}: need {size} outputs for {size} items, got"
            f" {got if got >= 0 else 'one ' + type(outputs).__name__}"
        )
    return outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)
