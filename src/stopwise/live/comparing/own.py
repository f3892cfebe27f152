"""Comparators from a user's own functions."""

from __future__ import annotations

from typing import Any

from stopwise.checks import fail
from stopwise.live.comparing.comparator import Agree, Comparator, Key
from stopwise.live.comparing.texts import exact, folded


def by_key(key: Key, label: str | None = None) -> Comparator:
    """Answers agree when a function of each gives the same; None from it is an abstention.

    >>> by_key(len).agrees("abc", "xyz")
    True
    """
    return Comparator(label or f"by_key({_name(key)})", key=key)


def by(agree: Agree, label: str | None = None) -> Comparator:
    """Answers agree when a function of two says so; it need not be transitive.

    >>> by(lambda one, two: one[0] == two[0]).agrees("abc", "axe")
    True
    """
    return Comparator(label or f"by({_name(agree)})", agree=agree)


def make_comparator(comparator: Comparator | Agree | str) -> Comparator:
    """A comparator from what a user may write: one of these, "exact", "folded", or a function.

    >>> make_comparator("folded").label
    'folded'
    """
    if isinstance(comparator, Comparator):
        return comparator
    if comparator == "exact":
        return exact()
    if comparator == "folded":
        return folded()
    if callable(comparator):
        return by(comparator)
    raise fail("comparator", comparator, "a Comparator, a function of two, 'exact' or 'folded'")


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
