"""The cell of an item by its features, quickly: one look-up for each feature."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

from stopwise.checks import fail, known_names
from stopwise.live.items.row import Features
from stopwise.policies.per_item.any_rule import AnyRule
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import MOST_FEATURES, Binning, FeatureBins

SEGMENT = "segment"
"""The feature that every round has, if segments are used."""

Finder = Callable[[Features], int]


def cell_finder(binning: Binning) -> Finder | None:
    """A function from the features of an item to its cell; None where there are no features.

    >>> binning = Binning(((), ()), ((), ()), (FeatureBins("length", edges=(10.0,)),))
    >>> find = cell_finder(binning)
    >>> find({"length": 12.0}), find({})
    (1, 2)
    """
    if not binning.features:
        return None
    parts = [(feature.name, feature.cells, _bin_finder(feature)) for feature in binning.features]

    def find(features: Features) -> int:
        cell = 0
        for name, cells, bin_of in parts:
            cell = cell * cells + bin_of(features.get(name))
        return cell

    return find


def check_cells(features: Features, segment: str) -> None:
    """Refuse features that a table of situations cannot be cut by.

    >>> check_cells({"meaning": (0.1, 0.2)}, "")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: feature meaning: got (0.1, 0.2), but need a number or a text; ...
    """
    for name, value in features.items():
        if isinstance(value, tuple):
            raise fail(
                f"feature {name}", value,
                "a number or a text; a rule of per-item-logistic takes vectors",
            )  # fmt: skip
    names = [SEGMENT, *features] if segment else list(features)
    if len(names) > MOST_FEATURES:
        raise fail(
            "features", names,
            f"at most {MOST_FEATURES}, the segment included, or a rule that was fitted on them",
        )  # fmt: skip


def check_names(features: Features, fitted_on: Iterable[str]) -> None:
    """Refuse features that a rule was not fitted on: a misspelt one would count as not given.

    >>> check_names({"lenght": 7.0}, ["length"])
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: features: unknown feature 'lenght'; did you mean 'length'?
    """
    known_names("features", features, fitted_on, "feature")


def features_of(rule: AnyRule) -> tuple[str, ...]:
    """The names of the features that a rule was fitted on.

    >>> import numpy as np
    >>> from stopwise import Costs
    >>> from stopwise.situations.observations import Observations
    >>> rows = Observations(("no",), np.zeros((9, 2), int), None, {"length": np.arange(9.0)})
    >>> features_of(Rule.fit(("small", "large"), rows, Costs.from_stages([1, 5])))
    ('length',)
    """
    if isinstance(rule, LogisticRule):
        return tuple(feature.name for feature in rule.columns.features)
    binning = rule.counts.binning if isinstance(rule, Rule) else rule.binning
    return tuple(feature.name for feature in binning.features)


def _bin_finder(feature: FeatureBins) -> Callable[[Any], int]:
    if feature.values:
        known = {value: at for at, value in enumerate(feature.values)}
        other = len(known)
        return lambda value: known.get("nan" if value is None else _as_text(value), other)
    edges = feature.edges

    def bin_of(value: Any) -> int:
        if value is None:
            return len(edges) + 1
        if type(value) is not float:
            raise fail(f"feature {feature.name}", value, "a number, as the rule was fitted on")
        return bisect_right(edges, value)

    return bin_of


def _as_text(value: Any) -> str:
    """A number as a log writes it: 3, not 3.0."""
    if type(value) is float and value == int(value):
        return str(int(value))
    return str(value)
