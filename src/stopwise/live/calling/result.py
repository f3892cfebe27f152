"""What one call of a stage gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.live.calling.stage import Reported, Stage
from stopwise.live.interrupts import CallNote, Note  # noqa: F401  # the example uses it

_ONE_THING = (str, bytes, bytearray, Mapping, Set)


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


class Together:
    """Calls of the first stages for one item, at the same time.

    Args:
        size: how many stages.
        note: makes the notes of which calls have begun.

    Attributes:
        notes: by stage.
        results: what calls gave, by stage, as far as they have returned.

    >>> Together(2, CallNote).results
    [None, None]
    """

    __slots__ = ("notes", "results")

    def __init__(self, size: int, note: Callable[[], Note]) -> None:
        self.notes = [note() for _ in range(size)]
        self.results: list[CallResult | None] = [None] * size


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

    What is one thing, though it has parts (a text, a table), or has no order (a set), or is looked
    into by names (a dictionary), is not taken apart: its parts would be given to wrong items.

    >>> outputs_of("model", np.array([1, 2]), 2)
    [1, 2]
    >>> outputs_of("model", {"a", "b"}, 2)
    StopwiseError('stage model: need 2 outputs for 2 items, got one set; return a list')
    """
    whole = isinstance(outputs, _ONE_THING) or hasattr(outputs, "columns")
    try:
        got = -1 if whole else len(outputs)
    except TypeError:
        got = -1
    if got != size:
        return StopwiseError(
            f"stage {name}: need {size} outputs for {size} items, got"
            f" {got if got >= 0 else f'one {type(outputs).__name__}; return a list'}"
        )
    return outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)


def results_of(
    stage: Stage, whole: CallResult, size: int, *, clock: bool = False
) -> Sequence[CallResult]:
    """What one call gave for each of its items; if it failed, it failed for all of them.

    >>> whole = CallResult(["a", "b"], 3.0)
    >>> [one.cost for one in results_of(Stage("model", list, 1, batch=True), whole, 2)]
    [1.5, 1.5]
    """
    share = None if whole.cost is None else whole.cost / size
    if whole.error is not None:
        return [whole._replace(cost=share)] * size
    outputs = outputs_of(stage.name, whole.output, size)
    if isinstance(outputs, Exception):
        return [CallResult(None, share, outputs, seconds=whole.seconds)] * size
    repeats = 0.0 if share is None else max(0.0, share - stage.cost)
    found = [result_of(value, share, repeats, clock=clock) for value in outputs]
    return [one._replace(seconds=whole.seconds) for one in found] if whole.seconds else found
