"""Rows of outputs with whatever else is known of them: the input of everything per item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import FloatArray as FloatArray
from stopwise.arrays import IntArray as IntArray
from stopwise.checks import fail

ABSTAINED = -1
NOT_CALLED = -2

MOST_STAGES = 10
"""A situation is one 64-bit number, and this many stages fit into it."""


@dataclass(frozen=True)
class Observations:
    """Rows of a cascade: a row per item, a column per stage.

    Args:
        labels: the written form of every output; a code is an index into it.
        codes: the outputs; -1 is *abstained*, -2 *not called* (and so are all stages after it).
        confidences: how sure each stage said it was; not a number where it said nothing. None
            where no stage ever did.
        features: what is known of an item before its first call, by name: numbers or texts.

    >>> rows = Observations(("no", "yes"), np.array([[0, 1], [1, -2]]))
    >>> rows.stage_count, len(rows), rows.depths.tolist()
    (2, 2, [1, 0])
    """

    labels: tuple[str, ...]
    codes: IntArray
    confidences: FloatArray | None = None
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes, dtype=np.int64)
        if codes.ndim != 2 or not 2 <= codes.shape[1] <= MOST_STAGES:
            raise fail("codes", codes.shape, f"rows of 2 to {MOST_STAGES} stages")
        if len(codes) and (codes.max() >= len(self.labels) or codes.min() < NOT_CALLED):
            raise fail("codes", int(codes.max()), f"codes of the {len(self.labels)} labels")
        called = codes != NOT_CALLED
        if not called[:, 0].all() or (called[:, 1:] & ~called[:, :-1]).any():
            raise fail("codes", "a gap", "rows that call every stage before the one they stop at")
        object.__setattr__(self, "codes", codes)
        if self.confidences is not None:
            values = np.asarray(self.confidences, dtype=np.float64)
            if values.shape != codes.shape:
                raise fail("confidences", values.shape, f"the shape of codes, {codes.shape}")
            object.__setattr__(self, "confidences", values)
        for name, column in self.features.items():
            if len(column) != len(codes):
                raise fail(f"feature {name}", len(column), f"{len(codes)} values, one per row")

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def stage_count(self) -> int:
        """How many stages the cascade has."""
        return int(self.codes.shape[1])

    @property
    def depths(self) -> IntArray:
        """The stage at which each row stopped."""
        return np.asarray((self.codes != NOT_CALLED).sum(axis=1) - 1)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows called every stage."""
        return np.asarray((self.codes != NOT_CALLED).all(axis=1))

    def where(self, index: NDArray[Any] | slice) -> Observations:
        """Only these rows, by number, by mask or by slice.

        >>> rows = Observations(("a",), np.array([[0, 0], [0, -1]]))
        >>> rows.where(np.array([1])).codes.tolist()
        [[0, -1]]
        """
        return Observations(
            self.labels,
            self.codes[index],
            None if self.confidences is None else self.confidences[index],
            {name: np.asarray(column)[index] for name, column in self.features.items()},
        )
