"""Rounds counted as transitions: the same for what is kept in memory and in databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import FloatArray
from stopwise.checks import StopwiseError
from stopwise.live.items.row import ItemRow
from stopwise.policies.per_item.learning import EPOCHS
from stopwise.situations.binning import Binning
from stopwise.situations.observations import NOT_CALLED, Observations
from stopwise.situations.transitions import Transitions


def observations_of(rows: Sequence[ItemRow], stage_count: int) -> Observations:
    """Rounds as rows of outputs, for cutting bins.

    >>> rows = [ItemRow(("a", "b"), (0, 1), (0.5, None)), ItemRow(("a",), (0,), (0.7,))]
    >>> observations_of(rows, 2).codes.tolist()
    [[0, 1], [0, -2]]
    """
    labels: dict[str, int] = {}
    codes = np.full((len(rows), stage_count), NOT_CALLED, dtype=np.int64)
    confidences = np.full((len(rows), stage_count), np.nan)
    for at, row in enumerate(rows):
        for stage, label in enumerate(row.labels):
            codes[at, stage] = -1 if label is None else labels.setdefault(label, len(labels))
        for stage, sure in enumerate(row.confidences):
            if sure is not None:
                confidences[at, stage] = sure
    names = sorted({name for row in rows for name in row.features})
    features = {name: _column([row.features.get(name) for row in rows]) for name in names}
    return Observations(
        tuple(labels), codes, None if np.isnan(confidences).all() else confidences, features
    )


def _column(values: Sequence[Any]) -> NDArray[np.str_] | FloatArray:
    if any(isinstance(value, str) for value in values):
        return np.asarray(["nan" if value is None else str(value) for value in values])
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)


def count_rows(rows: Sequence[ItemRow], binning: Binning) -> Transitions:
    """The transitions of rounds under a binning.

    Rounds that were counted under the same bins have their situations; of others they are made from
    what the stages said. Where that was not kept, the round cannot be counted.
    """
    counts = Transitions(binning)
    epoch, whole = binning.epoch, binning.whole
    others = []
    for row in rows:
        if whole and not row.full:
            continue
        if row.epoch == epoch:
            counts.add(row.keys, full=row.full and not whole)
        elif row.groups:
            others.append(row)
    if others:
        found = _only_known(observations_of(others, binning.stage_count), binning)
        counts.merge(Transitions.of(found, binning, full=np.asarray([row.full for row in others])))
    return counts


def _only_known(rows: Observations, binning: Binning) -> Observations:
    """The rows with the features that the bins need; one that none of them has is blank."""
    blank: dict[str, NDArray[np.str_] | FloatArray] = {}
    for feature in binning.features:
        column = rows.features.get(feature.name)
        if column is None:
            empty = np.full(len(rows), np.nan)
            column = empty.astype(np.str_) if feature.values else empty
        elif not feature.values and column.dtype.kind == "U":
            raise StopwiseError(
                f"feature {feature.name}: got a text, but need a number, as the bins were cut"
            )
        blank[feature.name] = column
    return Observations(rows.labels, rows.codes, rows.confidences, blank)


def cut(rows: Sequence[ItemRow], stage_count: int, *, whole: bool = False) -> Binning:
    """New bins for rounds; `whole` where stages are called alone."""
    return Binning.fit(observations_of(rows, stage_count), whole=whole)


def is_cut_between(before: int, after: int, first_rounds: int) -> bool:
    """Whether bins are to be cut again when rounds have grown from one number to the other.

    >>> is_cut_between(31, 32, 32), is_cut_between(32, 33, 32), is_cut_between(100, 600, 32)
    (True, False, True)
    """
    return any(before < first_rounds * factor <= after for factor in EPOCHS)


def settles_at(first_rounds: int) -> int:
    """After this many rounds the bins stay as they are.

    >>> settles_at(32)
    2048
    """
    return first_rounds * EPOCHS[-1]


def copy_of(counts: Transitions) -> Transitions:
    """The same counts, to be changed apart.

    >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    >>> counts.add([5])
    >>> other = copy_of(counts)
    >>> other.add([5])
    >>> counts.rounds, other.rounds
    (1, 2)
    """
    other = Transitions(counts.binning)
    other.merge(counts)
    return other
