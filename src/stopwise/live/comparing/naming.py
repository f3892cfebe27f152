"""Names of a user's functions in snapshots: functions that may differ have different names."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from types import CellType, CodeType, ModuleType
from typing import Any

from stopwise.checks import StopwiseError

_DEEPEST = 6
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def name_of(function: Any) -> str:
    """A name that tells functions apart, the same in every run.

    A function of a module has its own name. Lambdas and inner functions are told apart by a hash of
    their code, defaults and closure; methods and objects that are called, by a hash of the object's
    attributes; where these cannot be written down, by its attribute `label`.

    >>> name_of(len), name_of(lambda text: text[0]) == name_of(lambda text: text[1])
    ('len', False)
    >>> name_of("abc".startswith) == name_of("abd".startswith)
    False
    """
    label = getattr(function, "label", None)
    if isinstance(label, str):
        return label
    if isinstance(function, functools.partial):
        given = _digest([_text(function.args), _text(function.keywords)])
        return f"{name_of(function.func)}, {given}"
    function = inspect.unwrap(function)
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        return f"{name} {_state_of(owner, name)}"
    if not hasattr(function, "__qualname__"):
        return f"{name} {_state_of(function, name)}"
    code = getattr(function, "__code__", None)
    if code is None or "<" not in name:
        return name
    cells = [_content(cell) for cell in getattr(function, "__closure__", None) or ()]
    defaults = (getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None))
    return f"{name.rpartition('.')[2]} {_digest([_code(code), *map(_text, (*cells, *defaults))])}"


def _state_of(owner: Any, name: str) -> str:
    """What tells an object from others of its type."""
    try:
        return _digest([_exact(owner, 0)])
    except _UnknownError:
        raise StopwiseError(
            f"{name}: what tells this {type(owner).__qualname__} from another cannot be written"
            " down, so that counts of the two could be mixed; name it: label=... for a comparator,"
            " or an attribute `label`"
        ) from None


class _UnknownError(Exception):
    """A value has no text that is the same in every run."""


def _text(value: Any) -> str:
    """Text that is the same in every run; what has none, such as a connection, by its type."""
    try:
        return _exact(value, 0)
    except (_UnknownError, StopwiseError):
        return type(value).__qualname__


def _exact(value: Any, depth: int) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)
    if depth > _DEEPEST:
        raise _UnknownError
    kind = type(value).__qualname__
    if isinstance(value, type):
        return value.__qualname__
    if isinstance(value, Mapping):
        parts = [f"{_exact(key, depth + 1)}: {_exact(value[key], depth + 1)}" for key in value]
        return f"{kind} {sorted(parts)}"
    if isinstance(value, (set, frozenset)):
        return f"{kind} {sorted(_exact(one, depth + 1) for one in value)}"
    if isinstance(value, (list, tuple)):
        return f"{kind} {[_exact(one, depth + 1) for one in value]}"
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        return name_of(value)
    return f"{kind} {_attributes(value, depth)}"


def _attributes(value: Any, depth: int) -> str:
    found = dict(getattr(value, "__dict__", {}))
    written: object = type(value).__repr__
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, slot) and not slot.startswith("__"):
                found[slot] = getattr(value, slot)
    if found or written is object.__repr__:
        if not found and not _is_empty(type(value)):
            raise _UnknownError
        return _exact(found, depth + 1)
    text = repr(value)
    if " at 0x" in text:
        raise _UnknownError
    return text


def _is_empty(kind: type) -> bool:
    """Whether objects of a type are made in Python, and so have no attributes that are hidden."""
    return all(hasattr(one, "__module__") and one.__flags__ & (1 << 9) for one in kind.__mro__[:-1])


def _code(code: CodeType) -> str:
    parts = [code.co_code.hex(), repr((code.co_names, code.co_varnames, code.co_freevars))]
    parts += [_code(one) if isinstance(one, CodeType) else _text(one) for one in code.co_consts]
    return _digest(parts)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _digest(parts: list[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:12]
