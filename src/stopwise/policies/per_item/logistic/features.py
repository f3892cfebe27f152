"""Features of items as numbers: numbers are standardised, texts one-hot, vectors value by value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import FloatArray
from stopwise.checks import fail, finite_number, known_names

MOST_VALUES = 16
"""How many values of a text feature are told apart; all others count as one."""


@dataclass(frozen=True)
class FeatureColumn:
    """How one feature becomes numbers.

    Attributes:
        name: of the feature.
        means, scales: of a number or of each value of a vector; it is standardised by them.
        values: of a text, its most frequent ones.
        vector: whether each item has a row of numbers (an embedding).

    >>> column = FeatureColumn.fit("length", np.array([1.0, 3.0, np.nan]))
    >>> column.names(), column.matrix(np.array([3.0, np.nan])).tolist()
    (['length', 'length is blank'], [[1.0, 0.0], [0.0, 1.0]])
    """

    name: str
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    values: tuple[str, ...] = ()
    vector: bool = False

    @classmethod
    def fit(cls, name: str, column: NDArray[Any]) -> FeatureColumn:
        """From the values of many items.

        >>> FeatureColumn.fit("country", np.array(["de", "fr", "de"])).values
        ('de', 'fr')
        """
        array = np.asarray(column)
        if array.ndim > 2:
            raise fail(f"feature {name}", array.shape, "one value or one row of numbers per item")
        if np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_:
            numbers = array.astype(np.float64).reshape(len(array), -1)
            means, scales = standard(numbers)
            return cls(name, means, scales, vector=array.ndim == 2)
        if array.ndim == 2:
            raise fail(f"feature {name}", str(array.dtype), "numbers, where each item has a row")
        found, counts = np.unique([str(value) for value in array], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        return cls(name, values=tuple(str(found[at]) for at in order))

    def names(self) -> list[str]:
        """What each number is called."""
        if self.values:
            return [f"{self.name} = {value}" for value in self.values]
        if self.vector:
            return [f"{self.name}[{at}]" for at in range(len(self.means))]
        return [self.name, f"{self.name} is blank"]

    def matrix(self, column: NDArray[Any]) -> FloatArray:
        """One row of numbers per item; a value never met is 0 in all of them."""
        array = np.asarray(column)
        if self.values:
            texts = np.asarray([str(value) for value in array], dtype=object)
            return np.stack([texts == value for value in self.values], axis=1).astype(np.float64)
        try:
            numbers = array.astype(np.float64).reshape(len(array), -1)
        except (TypeError, ValueError):
            raise fail(f"feature {self.name}", array[:1].tolist(), "numbers, as fitted") from None
        if numbers.shape[1] != len(self.means):
            raise fail(f"feature {self.name}", numbers.shape[1], f"{len(self.means)} numbers each")
        scaled = scaled_by(numbers, self.means, self.scales)
        if self.vector:
            return scaled
        return np.concatenate([scaled, np.isnan(numbers).astype(np.float64)], axis=1)

    def of_one(self, value: Any) -> FloatArray:
        """The numbers of one item; a feature that is not given counts as blank."""
        if value is None:
            if self.values:
                return np.zeros(len(self.values))
            blank: Any = np.full(len(self.means), np.nan) if self.vector else np.nan
            return np.asarray(self.matrix(np.asarray([blank]))[0])
        return np.asarray(self.matrix(np.asarray([value]))[0])

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "name": self.name,
            "means": list(self.means),
            "scales": list(self.scales),
            "values": list(self.values),
            "vector": self.vector,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> FeatureColumn:
        """Read what `to_dict` wrote.

        >>> column = FeatureColumn.fit("country", np.array(["de", "fr", "de"]))
        >>> FeatureColumn.from_dict(column.to_dict()) == column
        True
        """
        known_names("feature", form, ("name", "means", "scales", "values", "vector"))
        try:
            column = cls(
                str(form["name"]),
                numbers_of("feature means", form["means"]),
                numbers_of("feature scales", form["scales"]),
                tuple(str(value) for value in form["values"]),
                bool(form["vector"]),
            )
        except (KeyError, TypeError) as error:
            raise fail("feature", str(error), "name, means, scales, values and vector") from None
        if len(column.means) != len(column.scales) or any(s <= 0 for s in column.scales):
            raise fail("feature scales", list(column.scales), "a number above 0 for each mean")
        if not column.values and not column.means:
            raise fail("feature", column.name, "means and scales, or values")
        return column


def standard(numbers: FloatArray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of every column, blanks and infinities left out; never 0.

    >>> standard(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]]))
    ((2.0, 5.0), (1.0, 1.0))
    """
    means, scales = [], []
    for column in numbers.T:
        given = np.clip(column[np.isfinite(column)], -LARGEST, LARGEST)
        means.append(float(given.mean()) if len(given) else 0.0)
        spread = float(given.std()) if len(given) else 0.0
        scales.append(spread if spread > 1e-12 * max(abs(means[-1]), 1e-300) else 1.0)
    return tuple(means), tuple(scales)


LARGEST = 1e100
"""Larger numbers count as this one: their squares must still be numbers."""

MOST_SCALED = 8.0
"""Standardised numbers are kept within this, so that no single value decides alone."""


def scaled_by(
    numbers: FloatArray, means: tuple[float, ...], scales: tuple[float, ...]
) -> FloatArray:
    """Standardised; blanks are 0, which is the mean.

    >>> scaled_by(np.array([[3.0], [np.nan], [np.inf]]), (2.0,), (0.5,)).tolist()
    [[2.0], [0.0], [8.0]]
    """
    with np.errstate(over="ignore"):
        result = (numbers - np.asarray(means)) / np.asarray(scales)
    return np.asarray(np.clip(np.nan_to_num(result, nan=0.0), -MOST_SCALED, MOST_SCALED))


def numbers_of(field: str, values: Any) -> tuple[float, ...]:
    """A list of finite numbers."""
    if not isinstance(values, list | tuple):
        raise fail(field, values, "a list of numbers")
    return tuple(finite_number(field, value) for value in values)
