"""The stages of a `CascadeClassifier` as a user writes them, checked."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from stopwise.checks import StopwiseError, fail

StageEntry = tuple[str, Any, float, Any]
"""Name, estimator, cost, columns (None for all)."""


def checked_stages(stages: Any, settings: Container[str]) -> list[StageEntry]:
    """The stages, each with its columns; what is wrong with them is named.

    Args:
        stages: as they were given.
        settings: names that no stage may have.

    >>> checked_stages([("a", 3, 1), ("b", 4, 1)], ())
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: stage a: got 3, but need a classifier
    """
    accepted = "two or more of (name, estimator, cost) or (name, estimator, cost, columns)"
    if not isinstance(stages, (list, tuple)) or len(stages) < 2:
        raise fail("stages", stages, accepted)
    checked: list[StageEntry] = []
    for entry in stages:
        if not isinstance(entry, (list, tuple)) or len(entry) not in (3, 4):
            raise fail("stages", entry, accepted)
        name = entry[0]
        if not isinstance(name, str) or "__" in name or name in settings:
            raise fail("stages", name, "names that are no settings and hold no '__'")
        if not hasattr(entry[1], "predict"):
            raise fail(f"stage {name}", entry[1], "a classifier")
        checked.append((name, entry[1], entry[2], entry[3] if len(entry) == 4 else None))
    return checked


def column_numbers(name: str, columns: Any, names: Sequence[str], count: int) -> list[int] | None:
    """Columns of a stage as numbers, from names or numbers; None for all.

    Args:
        name: of the stage.
        columns: as they were given.
        names: of all columns, where they have any.
        count: how many there are.

    >>> column_numbers("first", ["age", 0], ["sex", "age"], 2)
    [1, 0]
    """
    if columns is None:
        return None
    numbers = []
    for column in columns:
        if isinstance(column, str):
            if column not in names:
                raise fail(f"stage {name}: column", column, f"one of {list(names)}")
            numbers.append(list(names).index(column))
        elif not 0 <= column < count:
            raise fail(f"stage {name}: column", column, f"0 to {count - 1}")
        else:
            numbers.append(int(column))
    if not numbers:
        raise StopwiseError(f"stage {name}: columns is empty; leave it out to use all")
    return numbers
