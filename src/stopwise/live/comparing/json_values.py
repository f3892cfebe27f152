"""JSON: objects whose fields are equal, fenced JSON, calls of tools."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from stopwise.checks import fail, names_settings
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator
from stopwise.live.comparing.fences import fenced, outside_fences
from stopwise.live.comparing.numbers import exact_number

_NOT_JSON = object()
_ARGUMENTS = ("arguments", "input", "parameters", "args")
_AROUND = frozenset({"id", "call_id", "index", "type", "status", "function"})
_CALL_TYPES = ("function", "function_call", "tool_use", "tool_call")


def json_fields(*fields: str) -> Comparator:
    """JSON objects (or their text) agree when these fields are equal; all fields if none is named.

    Numbers are equal by value (1 and 1.0), the order of fields does not matter. What is not an
    object, lacks a field that is named, or names a field twice is an abstention.

    >>> json_fields("city").agrees('{"city": "Rome", "zip": 1}', {"city": "Rome"})
    True
    """
    _check_fields(fields)

    def key(output: Any) -> Hashable:
        return _fields_key(read_json(output), fields)

    return Comparator(f"json_fields{fields!r}", key=key, quick=True)


def fenced_json(*fields: str) -> Comparator:
    r"""JSON in a text: in a fence of three backticks, or the whole text. Else as `json_fields`.

    A text with several fences of which more than one holds JSON is an abstention; so is one with a
    fence called JSON that cannot be read, or with braces outside of the fence. Without named fields
    any JSON value will do, not only an object.

    >>> fenced_json("city").agrees('Here:\n```json\n{"city": "Rome"}\n```', {"city": "Rome"})
    True
    """
    _check_fields(fields)

    def key(output: Any) -> Hashable:
        value = read_json(output)
        if value is _NOT_JSON and isinstance(output, str):
            value = _only_fence(output)
        if not fields:
            return ABSTAINED if value is _NOT_JSON else canonical(value)
        return _fields_key(value, fields)

    return Comparator(f"fenced_json{fields!r}", key=key, quick=True)


def _only_fence(text: str) -> Any:
    """The JSON of a text in which nothing else could be meant."""
    found = [read_json(block) for block in fenced(text, ("json",))]
    found = [block for block in found if block is not _NOT_JSON]
    unread = any(read_json(block) is _NOT_JSON for block in fenced(text, ("json",), named=True))
    if len(found) != 1 or unread or "{" in outside_fences(text):
        return _NOT_JSON
    return found[0]


@names_settings
def tool_call(*, ignore: Sequence[str] = ()) -> Comparator:
    """Calls of tools agree when they name the same tool with equal arguments.

    Reads an object (or its JSON text) with a name and arguments in one of the usual forms:
    `{"name", "arguments"}`, `{"name", "input"}`, `{"function": {"name", "arguments"}}`, a message
    with `tool_calls`, or a list of these, whose order counts. Arguments may be JSON text. A call
    with a field that is not known is an abstention.

    Args:
        ignore: names of arguments that do not matter, such as an identifier of the request.

    >>> one = {"name": "pay", "arguments": '{"sum": 5, "to": "Ann"}'}
    >>> tool_call().agrees(one, {"name": "pay", "input": {"to": "Ann", "sum": 5.0}})
    True
    """
    if not isinstance(ignore, Iterable):
        raise fail("ignore", ignore, "names of fields")
    ignored = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    _check_fields(ignored, "ignore")

    def key(output: Any) -> Hashable:
        value = read_json(output)
        if isinstance(value, Mapping) and isinstance(value.get("tool_calls"), list):
            value = value["tool_calls"]
        calls = value if isinstance(value, list) else [value]
        keys = [_call_key(call, ignored) for call in calls]
        return tuple(keys) if keys and ABSTAINED not in keys else ABSTAINED

    return Comparator(f"tool_call(ignore={sorted(ignored)!r})", key=key, quick=True)


def _call_key(call: Any, ignored: Sequence[str]) -> Hashable:
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        if set(call) - _AROUND:
            return ABSTAINED
        call = call["function"]
    if not isinstance(call, Mapping) or set(call) - _AROUND - {"name", *_ARGUMENTS}:
        return ABSTAINED
    named = [field for field in _ARGUMENTS if field in call]
    name, kind = call.get("name"), call.get("type", "function")
    if len(named) > 1 or not isinstance(name, str) or not name or kind not in _CALL_TYPES:
        return ABSTAINED
    given = call[named[0]] if named else {}
    given = read_json(given) if given != "" else {}
    if not isinstance(given, Mapping):
        return ABSTAINED
    text = canonical({field: given[field] for field in given if field not in ignored})
    return ABSTAINED if text is ABSTAINED else (name, text)


def read_json(output: Any) -> Any:
    """A value, or what its JSON text holds; a mark of its own where the text is not JSON."""
    if not isinstance(output, (str, bytes, bytearray)):
        return output
    try:
        return json.loads(output, object_pairs_hook=_each_once, parse_float=_number)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _each_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; which of two fields of one name is meant, nobody knows."""
    if len(dict(fields)) != len(fields):
        raise ValueError("a field stands there twice")
    return dict(fields)


def _number(text: str) -> Any:
    value = exact_number(text)
    if value is ABSTAINED:
        raise ValueError("a number that is too large or too small")
    return value


def canonical(value: Any) -> str | None:
    """The one text of a JSON value: fields in order, numbers by value; None if it is no JSON.

    >>> canonical({"b": 1.0, "a": [True, 2.5]})
    '{"a": [true, 2.5], "b": 1}'
    """
    try:
        return json.dumps(_by_value(value), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return ABSTAINED


def _by_value(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Fraction):
        # More digits than a float holds. The mark cannot be part of what JSON text means.
        return int(value) if value.denominator == 1 else f"\0{value}"
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("names of fields are text")
        return {name: _by_value(value[name]) for name in value}
    if isinstance(value, (list, tuple)):
        return [_by_value(one) for one in value]
    return value


def _fields_key(value: Any, fields: Sequence[str]) -> Hashable:
    if not isinstance(value, Mapping) or any(field not in value for field in fields):
        return ABSTAINED
    return canonical({field: value[field] for field in fields} if fields else value)


def _check_fields(fields: Sequence[str], name: str = "fields") -> None:
    for field in fields:
        if not isinstance(field, str) or not field:
            raise fail(name, field, "names of fields")
