"""What a docstring says a class has, it has."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

import stopwise


def documented_classes() -> list[type]:
    found = {}
    for module in pkgutil.walk_packages(stopwise.__path__, "stopwise."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # an optional library is not installed
            continue
        for _, thing in inspect.getmembers(loaded, inspect.isclass):
            if thing.__module__.startswith("stopwise") and thing.__doc__:
                found[thing.__module__, thing.__qualname__] = thing
    return list(found.values())


def attributes_named(docstring: str) -> list[str]:
    r"""Names before the colons of the section "Attributes:".

    >>> attributes_named("Line.\n\nAttributes:\n    a, b: two.\n        more: of b.\n    c: one.")
    ['a', 'b', 'c']
    """
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)*)", inspect.cleandoc(docstring), re.M)
    lines = section[1].splitlines() if section else []
    heads = [line.split(":")[0] for line in lines if re.match(r"    \S.*:", line)]
    names = [name.strip(" `*") for head in heads for name in head.split(",")]
    return [name for name in names if name != "..."]


def attributes_of(kind: type) -> set[str]:
    """What instances have: members, declared names, and what its methods set on `self`."""
    found = set(dir(kind))
    for parent in kind.__mro__:
        if parent.__module__.startswith("stopwise"):
            found |= {*inspect.get_annotations(parent)}
            found |= {*re.findall(r"self\.(\w+)", inspect.getsource(parent))}
    return found


@pytest.mark.parametrize("kind", documented_classes(), ids=lambda kind: kind.__qualname__)
def test_attributes_in_docstring_exist(kind):
    for name in attributes_named(kind.__doc__ or ""):
        assert name in attributes_of(kind), f"{kind.__qualname__} has no {name}"


def test_a_wrong_docstring_would_be_caught():
    assert attributes_named("X.\n\nAttributes:\n    missing: not there.") == ["missing"]
    assert "missing" not in attributes_of(stopwise.Evidence)
    assert {"seen", "stage_count"} <= attributes_of(stopwise.Evidence)
