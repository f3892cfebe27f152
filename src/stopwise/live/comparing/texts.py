"""Texts: equal, or equal but for case and white space."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator


def exact() -> Comparator:
    """Equal values agree (the default).

    >>> exact().agrees("a", "A")
    False
    """
    return _EXACT


def folded() -> Comparator:
    """Text that differs only in case and white space agrees; empty text is an abstention.

    >>> folded().agrees("New  York", " new york")
    True
    """
    return _FOLDED


def _fold(output: Any) -> Hashable:
    return " ".join(str(output).split()).casefold() or ABSTAINED


_EXACT = Comparator("exact", quick=True)
_FOLDED = Comparator("folded", key=_fold, quick=True)
