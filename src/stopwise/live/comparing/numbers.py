"""Numbers that agree within a tolerance."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from stopwise.checks import fail, finite_number, names_settings
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator

_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_PLAIN = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@names_settings
def number(absolute: float = 0.0, *, relative: float = 0.0) -> Comparator:
    """Numbers agree within a tolerance; what is not a number is an abstention.

    Text is read as a number with a decimal point; commas may only part thousands ("1,250.5"). Where
    a comma could mean something else ("3,5") the text is an abstention.

    A tolerance is not transitive: with `number(t)`, an answer that agrees with one that is right
    within t is itself right only within 2 t.

    >>> number(0.5).agrees("3.2", 3.5)
    True
    >>> number(relative=0.01).agrees(100, 102)
    False
    >>> number().agrees("3,5", 35) is None
    True
    """
    for field, value in (("absolute", absolute), ("relative", relative)):
        if finite_number(field, value, "a tolerance of 0 or more") < 0:
            raise fail(field, value, "a tolerance of 0 or more")

    def agree(one: float | Fraction, two: float | Fraction) -> bool:
        if one == two:
            return True
        # Exact, so that whole numbers beyond 2^53 do not agree because a float rounds them.
        first, second = Fraction(one), Fraction(two)
        gap, largest = abs(first - second), max(abs(first), abs(second))
        return gap <= absolute or gap <= Fraction(relative) * largest

    label = f"number({absolute!r}, relative={relative!r})"
    return Comparator(label, key=_number, agree=agree, quick=True)


def _number(output: Any) -> Hashable:
    if isinstance(output, str):
        text = output.strip()
        if _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        elif not _PLAIN.fullmatch(text):
            return ABSTAINED
        try:
            return int(text) if text.lstrip("+-").isdigit() else exact_number(text)
        except ValueError:  # more digits than Python reads
            return ABSTAINED
    if isinstance(output, int):
        return int(output)
    try:
        return _finite(float(output))
    except (TypeError, ValueError, OverflowError):
        return ABSTAINED


def exact_number(text: str) -> float | Fraction | None:
    """The number that a text with a point or an exponent states.

    A float, where that is what the text says to the last digit; else an exact fraction. None where
    it is too large or too small for a float.

    >>> exact_number("0.1"), exact_number("0.10000000000000000001") == exact_number("0.1")
    (0.1, False)
    """
    value, stated = float(text), Decimal(text)
    if not math.isfinite(value) or (not value and stated):
        return ABSTAINED
    return value if Decimal(repr(value)) == stated else Fraction(stated)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else ABSTAINED
