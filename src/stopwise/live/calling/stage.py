"""A stage: a name, something to call, what it costs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from stopwise.checks import (
    a_function,
    fail,
    finite_number,
    known_names,
    names_fields,
    names_settings,
    whole_number,
)
from stopwise.live.calling.retrying import Breaker, Retry


class Reported(NamedTuple):
    """What a stage may return in the place of its output: the output, and more about the call.

    Attributes:
        output: what the stage answered; None to abstain.
        cost: what the call really cost.
        confidence: how sure the stage says it is of its output; any number that sorts.

    >>> Reported("yes", cost=0.002, confidence=0.9).confidence
    0.9
    """

    output: Any
    cost: float | None = None
    confidence: float | None = None


def _new_reported(
    cls: type[Reported],
    output: Any,
    cost: float | None = None,
    confidence: float | None = None,
    **unknown: Any,
) -> Reported:
    # Stages make one in every call: a wrapper such as `names_settings` would take longer.
    if unknown:
        known_names("Reported", unknown, Reported._fields, "setting")
    return tuple.__new__(cls, (output, cost, confidence))


Reported.__new__ = _new_reported  # type: ignore[method-assign, assignment]


@names_fields
@dataclass(frozen=True)
class Stage:
    """One stage of a cascade.

    Args:
        name: how it is shown and logged.
        call: a function of an item, plain or async, that returns the output (None to abstain), or
            `Reported(output, cost=, confidence=)`.
        cost: of one call; with measured costs, the guess that running means start from.
        batch: the function takes a list of items (or a slice of the array that `answer_many` was
            given) and returns as many outputs.
        timeout: seconds after which a call has failed. A plain function cannot be interrupted: it
            is left to finish in its thread and its output is not used.
        retry: how often a failed call is made again, and after which waits: a number, or a `Retry`.
            Every call costs.
        breaker: when a stage that keeps failing is left alone for a while; see `Breaker`.
        most_left: how many calls that ran out of time may be left running; beyond that the stage
            fails at once, without being called.

    >>> Stage("upper", str.upper, 1)("a")
    'A'
    """

    name: str
    call: Callable[[Any], Any]
    cost: float = 0.0
    batch: bool = False
    timeout: float | None = None
    retry: Retry | int | None = None
    breaker: Breaker | None = None
    most_left: int = 32

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise fail("stage name", self.name, "text")
        a_function(f"stage {self.name}: call", self.call, "a function of an item")
        accepted = "a number, 0 or more"
        if finite_number(f"stage {self.name}: cost", self.cost, accepted) < 0:
            raise fail(f"stage {self.name}: cost", self.cost, accepted)
        accepted = "a number of seconds above 0, or None"
        if self.timeout is not None and (
            finite_number(f"stage {self.name}: timeout", self.timeout, accepted) <= 0
        ):
            raise fail(f"stage {self.name}: timeout", self.timeout, accepted)
        if self.retry is not None and not isinstance(self.retry, Retry):
            number = whole_number(f"stage {self.name}: retry", self.retry, least=0)
            object.__setattr__(self, "retry", Retry(number))
        if self.breaker is not None and not isinstance(self.breaker, Breaker):
            raise fail(f"stage {self.name}: breaker", self.breaker, "a Breaker, or None")
        whole_number(f"stage {self.name}: most_left", self.most_left, least=0)

    @property
    def is_async(self) -> bool:
        """Whether the call must be awaited."""
        call = getattr(self.call, "func", self.call)  # functools.partial
        return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004  # an object whose call is async
        )

    def __call__(self, item: Any) -> Any:
        """Call the function itself, as if it had not been made a stage."""
        return self.call(item)


@overload
def stage(function: Callable[[Any], Any], /) -> Stage: ...
@overload
def stage(
    *,
    cost: float = 0.0,
    name: str | None = None,
    batch: bool = False,
    timeout: float | None = None,
    retry: Retry | int | None = None,
    breaker: Breaker | None = None,
    most_left: int = 32,
) -> Callable[[Callable[[Any], Any]], Stage]: ...
@names_settings
def stage(
    function: Callable[[Any], Any] | None = None,
    /,
    *,
    cost: float = 0.0,
    name: str | None = None,
    batch: bool = False,
    timeout: float | None = None,
    retry: Retry | int | None = None,
    breaker: Breaker | None = None,
    most_left: int = 32,
) -> Stage | Callable[[Callable[[Any], Any]], Stage]:
    """Make a plain function a stage.

    >>> @stage(cost=2)
    ... def shout(text):
    ...     return text.upper()
    >>> shout.name, shout.cost, shout("a")
    ('shout', 2, 'A')
    """

    def make(function: Callable[[Any], Any]) -> Stage:
        called = name or str(getattr(function, "__name__", "stage"))
        return Stage(called, function, cost, batch, timeout, retry, breaker, most_left)

    return make if function is None else make(function)
