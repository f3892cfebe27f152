"""Every public method of the classes that users meet says what it does, and shows it."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from stopwise.live.stores.base import Store

STORE = {name for name in vars(Store) if not name.startswith("_")}
PACKAGES = ("stopwise", "stopwise.live", "stopwise.logs", "stopwise.estimating")


def public_classes():
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                found[thing] = name
    return sorted(found, key=found.__getitem__)


def own_methods(kind):
    """The public methods and properties that a class itself defines, as functions."""
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else member
        function = inspect.unwrap(getattr(function, "__func__", function))
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function, isinstance(member, property)


def examples_of(thing):
    return "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) .*", thing.__doc__ or "", re.MULTILINE))


def is_shown(kind, name, function):
    """In its own docstring, in that of its class, or where it is first defined."""
    if examples_of(function) or f".{name}(" in examples_of(kind):
        return True
    return any(
        is_shown(parent, name, own)
        for parent in kind.__mro__[1:]
        for own_name, own, _ in own_methods(parent)
        if own_name == name and parent.__module__.startswith("stopwise")
    )


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_every_method_says_what_it_does_and_shows_it(kind):
    for name, function, is_property in own_methods(kind):
        assert function.__doc__, f"{kind.__name__}.{name} has no docstring"
        # What a store does is called by a learner, and a property is shown by its value.
        if not is_property and not set(dir(kind)) >= STORE:
            assert is_shown(kind, name, function), f"{kind.__name__}.{name} has no example"
