"""What is known of items before their first call: a function of the item, or given with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stopwise.checks import StopwiseError, a_function, fail

FeatureFunction = Callable[[Any], Mapping[str, Any]]
"""From an item to what is known of it: numbers, texts, vectors, by name."""


class FeaturesOf:
    """The features of items that come in batches.

    Args:
        function: of a cascade, if it has one.
        given: by the caller, in its place: a function, or a sequence with one entry for each item.

    >>> features = FeaturesOf(None, [{"length": 1}, {"length": 2}, {"length": 3}])
    >>> features.of(["a", "bb"]), features.of(["ccc"])
    ([{'length': 1}, {'length': 2}], [{'length': 3}])
    """

    def __init__(
        self,
        function: FeatureFunction | None,
        given: FeatureFunction | Sequence[Mapping[str, Any]] | None,
    ) -> None:
        self._function = given if callable(given) else function if given is None else None
        if given is not None and not callable(given) and not isinstance(given, Iterable):
            raise fail("features", given, "a sequence with one entry for each item, or a function")
        self._all = None if given is None or callable(given) else list(given)
        self._done = 0

    @property
    def any(self) -> bool:
        """Whether anything is known of items."""
        return self._function is not None or self._all is not None

    def of(self, items: Iterable[Any]) -> list[Mapping[str, Any]] | None:
        """The features of the next items; None where nothing is known."""
        if self._function is not None:
            return [self._function(item) for item in items]
        if self._all is None:
            return None
        size = sum(1 for _ in items)
        found = self._all[self._done : self._done + size]
        self._done += size
        if len(found) != size:
            raise StopwiseError(
                f"features: {len(self._all)} were given for {self._done} items or more"
            )
        return found


def check_function(function: FeatureFunction | None) -> FeatureFunction | None:
    """Refuse what is not a function of an item.

    >>> check_function(None) is None
    True
    """
    if function is not None:
        a_function("features", function, "a function of an item; give those of one to answer()")
    return function
