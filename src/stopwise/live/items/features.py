"""The cell of an item by its features, quickly: one look-up for each feature."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping

from stopwise.checks import fail
from stopwise.situations.binning import Binning, FeatureBins

SEGMENT = "segment"
"""The feature that every round has, if segments are used."""

Finder = Callable[[Mapping[str, float | str]], int]


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

    def find(features: Mapping[str, float | str]) -> int:
        cell = 0
        for name, cells, bin_of in parts:
            cell = cell * cells + bin_of(features.get(name))
        return cell

    return find


def _bin_finder(feature: FeatureBins) -> Callable[[float | str | None], int]:
    if feature.values:
        known = {value: at for at, value in enumerate(feature.values)}
        other = len(known)
        return lambda value: known.get("nan" if value is None else _as_text(value), other)
    edges = feature.edges

    def bin_of(value: float | str | None) -> int:
        if value is None:
            return len(edges) + 1
        if isinstance(value, str):
            raise fail(f"feature {feature.name}", value, "a number, as the rule was fitted on")
        return bisect_right(edges, value)

    return bin_of


def _as_text(value: float | str) -> str:
    """A number as a log writes it: 3, not 3.0."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else str(value)
