"""Stages for tests of cascades."""

from stopwise.live import (
    Cascade,
    Stage,
)


class Spy:
    """A stage function that notes what it was called with."""

    def __init__(self, function):
        self.function = function
        self.calls = []

    def __call__(self, item):
        self.calls.append(item)
        return self.function(item)


def boom(item):
    raise RuntimeError("down")


def three(*functions, costs=(0, 1, 1), **settings):
    names = "abc"
    stages = [
        Stage(name, function, cost)
        for name, function, cost in zip(names, functions, costs, strict=False)
    ]
    return Cascade(stages, settings.pop("policy", "fixed"), **settings)
