"""The chosen letter of a multiple-choice answer."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from stopwise.checks import fail, names_settings
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator

_OPEN, _CLOSE = r"[\(\[\{\*\"'`$]*", r"[\)\]\}\*\"'`$]*"
_REJECTED = re.compile(
    rf"{_CLOSE}[,.]?\s+(?:is|was|are|seems|looks|would\s+be|must\s+be|can|could)?\s*"
    r"(?:definitely\s+|clearly\s+|also\s+)?"
    r"(?:not\b|n't\b|in?correct\b|wrong\b|false\b|impossible\b|unlikely\b|out\b|ruled\b|excluded\b"
    r"|eliminated\b|isn't\b|can't\b|cannot\b|(?:fail|contradict|violate|lack|overlook|ignore)s?\b"
    r"|misses\b|does\s+not\b|doesn't\b|won't\b|implausible\b)",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"{_CLOSE}\s*\?")
_NEAR = 200
_CLAUSE = re.compile(r"[.!?;,\n]")
_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnever|\bcannot|\bneither|\bnor)\s+(?:[\w']+\s+){0,6}$", re.IGNORECASE
)
# In the same clause before the letter: "the wrong answer is B", "I doubt it is B".
_AGAINST = re.compile(
    r"(?:\b(?:wrong|incorrect|false|least|worst|unlikely|implausible|impossible|hardly|mistaken"
    r"|(?:avoid|reject|disagree|exclud|eliminat|discard|dismiss)\w*|rul(?:e|ed|ing)\s+out)\b"
    r"|(?<!\bno )(?<!\bwithout )(?<!\bbeyond )\bdoubt\w*)"
    r"(?:(?!\b(?:so|therefore|hence|thus|but|and|then|because|since|while)\b)[^.!?;,\n])*$",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:if|unless|whether|suppose|supposing|assume|assuming|might|may|maybe|perhaps|possibly"
    r"|probably|could|either|between|except|both|unsure|guess(?:ing)?\s+between)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?;](?=\s)|\n")
_WRAPPED = r"[\s\(\)\[\]\{\}\*\"'`$.,:;!_#>]*"


@names_settings
def letter(letters: str = "ABCD") -> Comparator:
    r"""The chosen letter of a multiple-choice answer; text without a clear one is an abstention.

    Read in this order:

    1. the whole text is a letter: "b", "(B)", "B.";
    2. it is stated: "the answer is B", "answer: b", "\boxed{B}", "B is correct" (the last counts);
    3. the text begins with it: "B) because", "(B) ...", "B. Paris", "B: ...";
    4. one letter alone is named: "I choose B", "option B", "I think it is B".

    A letter that is rejected ("Answer B is incorrect", "not B", "the wrong option is B", "I doubt
    it is B", "B fails") or asked for ("B?") was not chosen, and "a" or "I" before a word is that
    word. Where another letter stands beside the chosen one or after it ("Answer: B or C", "B. Wait,
    C"), or the sentence is in doubt ("if the answer is B"), the text is an abstention: a guess
    would count.

    >>> letter().agrees("The answer is (C).", "c")
    True
    >>> letter().agrees("Answer: B or C", "B") is None
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
        ends = (
            r"(?=[\)\]\}\*\"'`$,;:!?/&+|]|\.(?!\w)|\s*$|\s*\n"
            r"|\s+(?:is|are|because|since|as|and|or|not|but)\b)"
        )
        plain = "".join(c for c in known if c not in words)
        sure = rf"[{plain}](?![\w'])" if plain else "(?!)"
        chosen = rf"(?:({sure})|({either}){ends})"
        self._whole = re.compile(rf"{_WRAPPED}({either}){_WRAPPED}")
        self._stated = re.compile(
            r"(?i:\b(?:answer|choice|option)\b(?:\s+(?:is|was|would\s+be|must\s+be|should\s+be)"
            r"\s*:?|\s*[:=]))\s*(?i:option\s+|choice\s+|letter\s+)?"
            rf"(?:\\boxed|\\text)?{_OPEN}{chosen}"
        )
        self._boxed = re.compile(
            rf"\\boxed\s*\{{\s*(?:\\text\s*\{{)?{_OPEN}({either})\s*[\)\]\*.]*\s*\}}"
        )
        self._praised = re.compile(
            rf"(?<![\w'])({upper}){_CLOSE}\s+is\s+(?:the\s+|clearly\s+|definitely\s+)*"
            r"(?:correct|right|best|true)\b"
        )
        self._first = re.compile(rf"\s*(?:[\(\[\*]+({either})[\)\]\*]+|({either})[\)\.:](?=\s|$))")
        self._named = re.compile(
            r"(?i:\b(?:answer|choice|option|letter|is|be|it's|think|say|guess|believe|choose|chose"
            rf"|pick|picked|select|selected|with))\s+{_OPEN}{chosen}"
        )
        alone = rf"([{plain}])(?![\w'])" if plain else "(?!)()"
        word = rf"([{words}]){ends}" if words else "(?!)()"
        self._capital = re.compile(rf"(?<![\w'])(?:{alone}|{word})")

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
            return self._undoubted(text, *max(stated))
        if (match := self._first.match(text)) and not _REJECTED.match(text, match.end()):
            return self._undoubted(text, 0, str(match[1] or match[2]).upper())
        named = set(self._chosen(self._named, text))
        if len({found for _, found in named}) != 1:
            return ABSTAINED
        return self._undoubted(text, *min(named), everywhere=True)

    def _undoubted(self, text: str, at: int, found: str, *, everywhere: bool = False) -> Hashable:
        """The letter, unless its sentence is in doubt or another one stands there or later."""
        start = max((match.end() for match in _SENTENCE.finditer(text, 0, at)), default=0)
        end = _SENTENCE.search(text, at + 1)
        sentence = text[start : end.start() if end else len(text)]
        if _DOUBTED.search(sentence):
            return ABSTAINED
        for match in self._capital.finditer(text, 0 if everywhere else start):
            name = match[1] or match[2]
            if name != found and not self._rejected(text, match):
                return ABSTAINED
        return found

    def _chosen(self, pattern: re.Pattern[str], text: str) -> list[tuple[int, str]]:
        """Where the pattern names a letter that is not rejected, and which."""
        return [
            (match.start(), next(group for group in match.groups() if group).upper())
            for match in pattern.finditer(text)
            if not self._rejected(text, match)
        ]

    @staticmethod
    def _rejected(text: str, match: re.Match[str]) -> bool:
        # What rejects a letter stands in its clause: reading all that comes before, for each letter
        # of a long text, would take minutes. A clause without end may hold anything.
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if len(before) == _NEAR and not _CLAUSE.search(before):
            return True
        return bool(
            _REJECTED.match(text, match.end())
            or _ASKED.match(text, match.end())
            or _NEGATED.search(before)
            or _AGAINST.search(before)
        )
