"""When do two answers of language models agree? A chain, written in one line of the file.

`tool_calls | json_fields(intent) | folded`: the first part that can read an answer gives its key.
Two answers agree if the same part read both and their keys agree; an answer that no part can read
is an abstention. Agreeing must imply equally right: too strict only costs money, too loose breaks
what is called certain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

from stopwise.checks import StopwiseError, fail
from stopwise.evidence import ABSTAINED
from stopwise.live import Comparator, by_key, exact, folded, json_fields, letter, number
from stopwise.openai.completions import Completion, Decided

_PART = re.compile(r"\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*")
_KNOWN = "tool_calls, exact, folded, letter(ABCD), number(0.5), json_fields(a, b)"


def parse_comparator(field: str, text: str) -> Comparator:
    """The comparator that a line of the configuration stands for.

    >>> compare = parse_comparator("comparator", "json_fields(intent) | folded")
    >>> compare.agrees('{"intent": "buy", "x": 1}', '{"intent": "buy", "x": 2}')
    True
    >>> compare.agrees(Completion(" Yes"), Completion("yes"))
    True
    >>> compare.agrees('{"intent": "buy"}', "buy")
    False
    """
    parts = [_part(field, text, part) for part in text.split("|")]

    def key(output: Any) -> Hashable:
        if isinstance(output, Decided):
            return ("decision", type(output.value).__name__, output.value)
        for at, part in enumerate(parts):
            if isinstance(output, Completion):
                if part.label == "tool_calls":
                    found = _tools(output)
                elif output.tool_calls:
                    # A text beside a tool call is not the answer: comparing it would be too loose.
                    found = ABSTAINED
                else:
                    found = _key(part, output.content)
            else:
                found = ABSTAINED if part.label == "tool_calls" else _key(part, output)
            if found is not ABSTAINED:
                return (at, found)
        return ABSTAINED

    def agree(one: Any, two: Any) -> bool:
        if one[0] != two[0] or isinstance(one[0], str):
            return bool(one == two)
        return not parts[one[0]].differ(one[1], two[1])

    label = " | ".join(part.label for part in parts)
    # With keys alone a learner compares many rounds at once; a tolerance needs the function.
    simple = all(part.agree is None for part in parts)
    return Comparator(label, key=key, agree=None if simple else agree)


def _tools(answer: Completion) -> Hashable:
    return tuple(call.key for call in answer.tool_calls) or ABSTAINED


def _key(part: Comparator, output: Any) -> Hashable:
    if part.key is not None:
        return part.key_of(output)  # type: ignore[no-any-return]
    return output if isinstance(output, str) else json.dumps(output, sort_keys=True, default=str)


def _part(field: str, whole: str, text: str) -> Comparator:
    match = _PART.fullmatch(text)
    if match is None:
        raise fail(field, whole, f"parts joined by |, each one of {_KNOWN}")
    name, given = match[1], match[2]
    arguments = [part.strip().strip("'\"") for part in (given or "").split(",") if part.strip()]
    if name == "tool_calls" and not arguments:
        return by_key(lambda output: ABSTAINED, "tool_calls")
    if name == "exact" and not arguments:
        return exact()
    if name == "folded" and not arguments:
        return folded()
    if name == "json_fields":
        return json_fields(*arguments)
    if name == "letter" and len(arguments) <= 1:
        return letter(*arguments)
    if name == "number":
        return _number(field, whole, arguments)
    raise fail(field, whole, f"parts joined by |, each one of {_KNOWN}")


def _number(field: str, whole: str, arguments: list[str]) -> Comparator:
    given: dict[str, float] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        name, value = (name.strip(), value) if equals else ("absolute", name)
        try:
            given[name] = float(value)
        except ValueError:
            raise fail(field, whole, "number(0.5) or number(relative=0.01)") from None
    if set(given) - {"absolute", "relative"}:
        raise StopwiseError(f"{field}: number takes absolute and relative, not {sorted(given)}")
    return number(given.get("absolute", 0.0), relative=given.get("relative", 0.0))
