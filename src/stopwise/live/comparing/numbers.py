"""Numbers that agree within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from stopwise.checks import fail, finite_number
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator


def number(absolute: float = 0.0, *, relative: float = 0.0) -> Comparator:
    """Numbers agree within a tolerance; what is not a number is an abstention.

    >>> number(0.5).agrees("3.2", 3.5)
    True
    >>> number(relative=0.01).agrees(100, 102)
    False
    >>> number().agrees("about 3", 3) is None
    True
    """
    for field, value in (("absolute", absolute), ("relative", relative)):
        if finite_number(field, value, "a tolerance of 0 or more") < 0:
            raise fail(field, value, "a tolerance of 0 or more")

    def agree(one: float, two: float) -> bool:
        return math.isclose(one, two, abs_tol=absolute, rel_tol=relative)

    return Comparator(f"number({absolute!r}, relative={relative!r})", key=_number, agree=agree)


def _number(output: Any) -> Hashable:
    try:
        value = float(output.strip().replace(",", "") if isinstance(output, str) else output)
    except (TypeError, ValueError):
        return ABSTAINED
    return value if math.isfinite(value) else ABSTAINED
