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


def stages_by_item(called):
    """The stages that each item was called at, in order, from pairs of item and stage."""
    by_item: dict[int, list[int]] = {}
    for item, stage in called:
        by_item.setdefault(item, []).append(stage)
    return by_item


def boom(item):
    raise RuntimeError("down")


def three(*functions, costs=(0, 1, 1), **settings):
    names = "abc"
    stages = [
        Stage(name, function, cost)
        for name, function, cost in zip(names, functions, costs, strict=False)
    ]
    return Cascade(stages, settings.pop("policy", "fixed"), **settings)
