"""When two outputs are the same answer: labels are compared in one plain written form."""

from __future__ import annotations

import math
import re

_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))\.0+")


def plain_label(value: object) -> str | None:
    """The written form of an output, or None for a blank one.

    A column with gaps is often written with decimals ("1.0") beside one without ("1"), and truth
    values as True or true: these are one answer. Text is kept as it is, but for spaces around it.

    >>> [plain_label(value) for value in (1, 1.0, "1.0", " yes ", True, "TRUE", "007")]
    ['1', '1', '1', 'yes', 'true', 'true', '007']
    >>> [plain_label(value) for value in (None, "", "  ", float("nan"), "NaN")]
    [None, None, None, None, None]
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    text = str(value).strip()
    if not text or text in ("nan", "NaN"):
        return None
    if (whole := _WHOLE.fullmatch(text)) is not None:
        return "0" if whole[1] == "-0" else whole[1]
    if text.lower() in ("true", "false"):
        return text.lower()
    return text
