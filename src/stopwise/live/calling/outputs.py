"""What a stage may return: an output. Anything that is none is refused, with the way to fix it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Collection, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np

from stopwise.live.calling.errors import MisusedStageError
from stopwise.live.calling.stage import Reported

USUAL = frozenset({str, int, bool, float, type(None), list, tuple, dict, bytes, np.ndarray})
"""Types of most outputs, which need no closer look."""


def is_awaitable(value: Any) -> bool:
    """Whether a plain function returned something to await.

    >>> is_awaitable("yes")
    False
    """
    return type(value) not in USUAL and inspect.isawaitable(value)


def check_output(name: str, value: Any) -> None:
    """Refuse what cannot be an output; it would be compared by identity and never agree.

    >>> check_output("model", (word for word in ["yes"]))
    Traceback (most recent call last):
    ...
    stopwise.live.calling.errors.MisusedStageError: stage model: returned a generator; return ...
    """
    if type(value) is Reported:
        value = value.output
    if type(value) in USUAL:
        return
    kind = type(value).__name__
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise MisusedStageError(
            f"stage {name}: returned a {kind} in the place of an output; await it in the stage"
        )
    if isinstance(value, Future):
        raise MisusedStageError(
            f"stage {name}: returned a {kind} in the place of an output; return its result()"
        )
    if isinstance(value, (Iterator, AsyncIterator)):
        raise MisusedStageError(
            f"stage {name}: returned a {kind}; return its last value, or all of them as text, a"
            " tuple or a list"
        )


def check_outputs(name: str, outputs: Any) -> None:
    """The same for what a stage returned that takes many items at once.

    >>> check_outputs("model", [iter("yes"), "no"])
    Traceback (most recent call last):
    ...
    stopwise.live.calling.errors.MisusedStageError: stage model: returned a str_...iterator; ...
    """
    check_output(name, outputs)
    if isinstance(outputs, np.ndarray):
        outputs = outputs.tolist() if outputs.dtype.hasobject else ()
    if not isinstance(outputs, Collection) or USUAL.issuperset(map(type, outputs)):
        return
    try:
        for value in outputs:
            check_output(name, value)
    except MisusedStageError:
        for value in outputs:  # none of them will be awaited
            bare = value.output if type(value) is Reported else value
            if inspect.iscoroutine(bare):
                bare.close()
        raise


def vector_shape(value: Any) -> str | None:
    """What makes an output look like a vector of numbers, where a label is wanted; else None.

    >>> vector_shape([0.1, 0.9]), vector_shape("yes"), vector_shape(["a", "b"])
    ('a list of 2 numbers', None, None)
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"a {type(value).__name__} of shape {shape}" if shape and shape != (1,) else None
    if type(value) not in (list, tuple) or len(value) < 2:
        return None
    real = all(isinstance(one, (float, np.floating)) for one in value)
    return f"a {type(value).__name__} of {len(value)} numbers" if real else None
