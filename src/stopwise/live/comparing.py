"""When do two answers agree? Outputs are not always equal strings.

A comparator is a key (answers agree when their keys are equal; a key of None is an abstention) or a
function of two answers. Keys are to be preferred: they are taken once an answer, and a batch is
compared at once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.checks import fail, finite_number
from stopwise.evidence import ABSTAINED

Key = Callable[[Any], Hashable]
Agree = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Comparator:
    """How answers are compared; made by the functions of this module.

    Args:
        label: what stands in a snapshot, so that counts of another comparator are refused.
        key: answers agree when their keys are equal.
        agree: or, says of two answers whether they agree.
    """

    label: str
    key: Key | None = None
    agree: Agree | None = None

    def agrees(self, one: Any, two: Any) -> bool | None:
        """Whether two answers agree; None where one of them is an abstention.

        >>> folded().agrees("Yes ", "yes")
        True
        """
        if self.key is not None:
            one = ABSTAINED if one is ABSTAINED else self.key(one)
            two = ABSTAINED if two is ABSTAINED else self.key(two)
        if one is ABSTAINED or two is ABSTAINED:
            return None
        return bool(one == two if self.agree is None else self.agree(one, two))

    def keys(self, answers: Sequence[Any]) -> Sequence[Any]:
        """What is compared, in the place of each answer."""
        key = self.key
        if key is None:
            return answers
        return [ABSTAINED if answer is ABSTAINED else key(answer) for answer in answers]

    def differ(self, one: Any, two: Any) -> bool:
        """Whether two keys (answers, where there is no key) disagree."""
        return not (one == two if self.agree is None else self.agree(one, two))


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


def json_fields(*fields: str) -> Comparator:
    """JSON objects (or their text) agree when these fields are equal; all fields if none is named.

    What is not an object, or lacks a field that is named, is an abstention.

    >>> json_fields("city").agrees('{"city": "Rome", "zip": 1}', {"city": "Rome"})
    True
    """
    for field in fields:
        if not isinstance(field, str) or not field:
            raise fail("fields", field, "names of fields")

    def key(output: Any) -> Hashable:
        if isinstance(output, (str, bytes)):
            try:
                output = json.loads(output)
            except ValueError:
                return ABSTAINED
        if not isinstance(output, dict) or any(field not in output for field in fields):
            return ABSTAINED
        kept = {field: output[field] for field in fields} if fields else output
        try:
            return json.dumps(kept, sort_keys=True)
        except (TypeError, ValueError):
            return ABSTAINED

    return Comparator(f"json_fields{fields!r}", key=key)


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


def majority_vote(outputs: Sequence[Any]) -> Any:
    """A way to combine outputs: the commonest, and of equally common ones the latest.

    >>> majority_vote(["a", "b", "a"]), majority_vote(["a", "b"])
    ('a', 'b')
    """
    best, most = None, 0
    for output in outputs:
        votes = sum(1 for other in outputs if other == output)
        if votes >= most:
            best, most = output, votes
    return best


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


_EXACT = Comparator("exact")
_FOLDED = Comparator("folded", key=_fold)
