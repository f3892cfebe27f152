"""Texts: equal, equal but for case and white space, the same letter of a multiple choice."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from stopwise.checks import fail
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


def letter(letters: str = "ABCD") -> Comparator:
    """The chosen letter of a multiple-choice answer; text without one is an abstention.

    Read in this order: the whole text is a letter ("b", "(B)", "B."), "answer is B" or "answer: B"
    (the last of these counts), a text that begins with "B)" or "B.", or the one letter that stands
    alone in capitals. Anything less clear is an abstention, because a guess would be counted.

    >>> letter().agrees("The answer is (C).", "c")
    True
    >>> letter().agrees("Either A or B", "A") is None
    True
    """
    if not isinstance(letters, str) or not letters.isalpha() or len(letters) < 2:
        raise fail("letters", letters, "two or more letters, such as 'ABCD'")
    known = letters.upper()
    one = f"[{known}{known.lower()}]"
    whole = re.compile(rf"\W*({one})\W*")
    stated = re.compile(
        rf"\b(?:answer|choice|option)\b(?:\s+is)?\s*[:=]?\s*[\(\[\*\"']*({one})\b", re.IGNORECASE
    )
    first = re.compile(rf"\s*[\(\[\*]*({one})[\)\]\.:]")
    alone = re.compile(rf"(?<![\w'])([{known}])(?![\w'])")

    def key(output: Any) -> Hashable:
        text = str(output)
        if match := whole.fullmatch(text):
            return match[1].upper()
        if found := stated.findall(text):
            return str(found[-1]).upper()
        if match := first.match(text):
            return match[1].upper()
        capitals = set(alone.findall(text))
        return capitals.pop() if len(capitals) == 1 else ABSTAINED

    return Comparator(f"letter({known!r})", key=key)


_EXACT = Comparator("exact")
_FOLDED = Comparator("folded", key=_fold)
