"""The chosen letter of a multiple-choice answer."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from stopwise.checks import fail
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator

_OPEN, _CLOSE = r"[\(\[\{\*\"'`$]*", r"[\)\]\}\*\"'`$]*"
_REJECTED = re.compile(
    rf"{_CLOSE}[,.]?\s+(?:is|was|are|seems|looks|would\s+be|must\s+be|can|could)?\s*"
    r"(?:definitely\s+|clearly\s+|also\s+)?"
    r"(?:not\b|n't\b|in?correct\b|wrong\b|false\b|impossible\b|unlikely\b|out\b|ruled\b|excluded\b"
    r"|eliminated\b|isn't\b|can't\b|cannot\b)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bcannot|\bneither|\bnor)\s+(?:\w+\s+){0,2}$", re.I)


def letter(letters: str = "ABCD") -> Comparator:
    r"""The chosen letter of a multiple-choice answer; text without a clear one is an abstention.

    Read in this order:

    1. the whole text is a letter: "b", "(B)", "B.";
    2. it is stated: "the answer is B", "answer: b", "\boxed{B}", "B is correct" (the last counts);
    3. the text begins with it: "B) because", "(B) ...", "B. Paris", "B: ...";
    4. one letter alone is named: "I choose B", "option B", "I think it is B".

    A letter that is rejected ("Answer B is incorrect", "not B") was not chosen, and "a" or "I"
    before a word is that word. Anything less clear is an abstention, because a guess would count.

    >>> letter().agrees("The answer is (C).", "c")
    True
    >>> letter().agrees("Either A or B", "A") is None
    True
    >>> letter().agrees("The answer is a matter of taste", "A") is None
    True
    """
    if not isinstance(letters, str) or not letters.isalpha() or len(letters) < 2:
        raise fail("letters", letters, "two or more letters, such as 'ABCD'")
    known = letters.upper()
    read = _LetterReader(known)
    return Comparator(f"letter({known!r})", key=read, quick=True)


class _LetterReader:
    """Reads a text; the patterns are compiled once."""

    def __init__(self, known: str) -> None:
        upper, either = f"[{known}]", f"[{known}{known.lower()}]"
        # A small letter, and the capitals that are words of their own, need a clear end: else
        # "a matter" and "I think" would be letters.
        words = "".join(sorted({"A", "I"} & set(known)))
        ends = r"(?=[\)\]\}\*\"'`$.,;:!?]|\s*$|\s*\n|\s+(?:is|because|since|as|and)\b)"
        sure = f"[{''.join(c for c in known if c not in words)}](?![\\w'])"
        chosen = rf"(?:({sure})|({either}){ends})" if sure[1] != "]" else rf"()({either}){ends}"
        self._whole = re.compile(rf"\W*({either})\W*")
        self._stated = re.compile(
            r"(?i:\b(?:answer|choice|option)\b(?:\s+(?:is|was|would\s+be|must\s+be|should\s+be)"
            r"\s*:?|\s*[:=]))\s*(?i:option\s+|choice\s+|letter\s+)?"
            rf"(?:\\boxed|\\text)?{_OPEN}{chosen}"
        )
        self._boxed = re.compile(rf"\\boxed\s*\{{\s*(?:\\text\s*\{{)?{_OPEN}({either})\b")
        self._praised = re.compile(
            rf"(?<![\w'])({upper}){_CLOSE}\s+is\s+(?:the\s+|clearly\s+|definitely\s+)*"
            r"(?:correct|right|best|true)\b"
        )
        self._first = re.compile(rf"\s*(?:[\(\[\*]+({either})[\)\]\*]+|({either})[\)\.:](?=\s|$))")
        self._named = re.compile(
            r"(?i:\b(?:answer|choice|option|letter|is|be|it's|think|say|guess|believe|choose|chose"
            rf"|pick|picked|select|selected|with))\s+{_OPEN}{chosen}"
        )
        self._capital = re.compile(rf"(?<![\w'])({upper})(?![\w'])")

    def __call__(self, output: Any) -> Hashable:
        text = str(output)
        if match := self._whole.fullmatch(text):
            return match[1].upper()
        stated = [
            found
            for pattern in (self._stated, self._boxed, self._praised)
            for found in self._chosen(pattern, text)
        ]
        if stated:
            return max(stated)[1]
        if (match := self._first.match(text)) and not _REJECTED.match(text, match.end()):
            return str(match[1] or match[2]).upper()
        named = {found for _, found in self._chosen(self._named, text)}
        others = set(self._capital.findall(text)) - {"A", "I"} - named
        return named.pop() if len(named) == 1 and not others else ABSTAINED

    @staticmethod
    def _chosen(pattern: re.Pattern[str], text: str) -> list[tuple[int, str]]:
        """Where the pattern names a letter that is not rejected, and which."""
        found = []
        for match in pattern.finditer(text):
            name = next(group for group in match.groups() if group)
            if _REJECTED.match(text, match.end()) or _NEGATED.search(text[: match.start()]):
                continue
            found.append((match.start(), name.upper()))
        return found
