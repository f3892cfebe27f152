"""What stands beside the outputs of a log: `NAME:confidence` columns and features of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import fail
from stopwise.costs import FloatArray
from stopwise.logs.reading.files import need_polars
from stopwise.logs.reading.log import CONFIDENCE_SUFFIX, confidence_column

if TYPE_CHECKING:
    import polars as pl

BESIDE = ("confidence", "feature")
"""First words of the names of these columns in a wide frame."""

_FEATURE = "feature "


def beside_wide(
    types: Mapping[str, Any], stages: Sequence[str], features: Sequence[str]
) -> list[pl.Expr]:
    """The columns of a wide log to be read beside its outputs, under names of their own."""
    polars = need_polars()
    chosen = [
        polars.col(stage + CONFIDENCE_SUFFIX).alias(confidence_column(at))
        for at, stage in enumerate(stages)
        if stage + CONFIDENCE_SUFFIX in types
    ]
    return chosen + [_feature(types, name) for name in features]


def beside_long(
    types: Mapping[str, Any],
    stages: Sequence[str],
    features: Sequence[str],
    stage_of: Any,
) -> list[pl.Expr]:
    """The same of a long log: its column `confidence`, stage by stage."""
    polars = need_polars()
    chosen: list[Any] = []
    if "confidence" in types:
        chosen = [
            polars.col("confidence").filter(stage_of == stage).first().alias(confidence_column(at))
            for at, stage in enumerate(stages)
        ]
    return chosen + [_feature(types, name).drop_nulls().first() for name in features]


def _feature(types: Mapping[str, Any], name: str) -> Any:
    if name not in types:
        raise fail("features", name, f"columns of the log: {', '.join(list(types)[:12])}")
    return need_polars().col(name).alias(f"{_FEATURE}{name}")


def read_confidences(table: pl.DataFrame, stages: Sequence[str]) -> FloatArray | None:
    """The confidences, not a number where there is none; None where no stage gives any.

    >>> import polars
    >>> table = polars.DataFrame({"confidence 1": ["0.5", "", None]})
    >>> read_confidences(table, ["small", "large"])
    array([[nan, 0.5],
           [nan, nan],
           [nan, nan]])
    """
    found = [at for at in range(len(stages)) if confidence_column(at) in table.columns]
    if not found:
        return None
    result = np.full((table.height, len(stages)), np.nan)
    for at in found:
        column, bad = _numbers(table[confidence_column(at)])
        if bad is not None:
            raise fail(
                f"column {stages[at]}{CONFIDENCE_SUFFIX}", bad, "numbers, or blanks where a stage"
                " does not say how sure it is",
            )  # fmt: skip
        result[:, at] = column
    return result


def read_features(table: pl.DataFrame) -> dict[str, NDArray[Any]]:
    """The features by name: numbers where every value is one, vectors for lists, else texts.

    >>> import polars
    >>> table = polars.DataFrame({"feature length": ["3", "4"], "feature country": ["de", "fr"]})
    >>> read_features(table)
    {'length': array([3., 4.]), 'country': array(['de', 'fr'], dtype='<U2')}
    >>> read_features(polars.DataFrame({"feature embedding": [[0.5, 1.0], [2.0, 0.0]]}))
    {'embedding': array([[0.5, 1. ],
           [2. , 0. ]])}
    """
    polars = need_polars()
    features: dict[str, NDArray[Any]] = {}
    for name in table.columns:
        if name.startswith(_FEATURE) and table[name].dtype in (polars.List, polars.Array):
            plain = name.removeprefix(_FEATURE)
            features[plain] = _vectors(plain, table[name])
        elif name.startswith(_FEATURE):
            numbers, bad = _numbers(table[name])
            texts = ["" if value is None else str(value) for value in table[name].to_list()]
            features[name.removeprefix(_FEATURE)] = numbers if bad is None else np.asarray(texts)
    return features


def _vectors(name: str, column: pl.Series) -> FloatArray:
    """A column of lists, an embedding for each item; a blank is a row of no numbers."""
    lists = column.to_list()
    wide = {len(value) for value in lists if value is not None}
    if len(wide) != 1 or not wide.isdisjoint({0}):
        raise fail(f"features {name}", sorted(wide), "lists of the same length for all items")
    blank = [None] * wide.pop()
    try:
        return np.asarray([value or blank for value in lists], dtype=np.float64)
    except (TypeError, ValueError):
        raise fail(f"features {name}", str(column.dtype), "lists of numbers") from None


def _numbers(column: pl.Series) -> tuple[FloatArray, object]:
    """A column as numbers, and the first value that is none."""
    polars = need_polars()
    if column.dtype == polars.String:
        column = column.str.strip_chars()
        values = column.cast(polars.Float64, strict=False)
        bad = column.filter(values.is_null() & column.is_not_null() & (column != ""))
    elif column.dtype.is_numeric() or column.dtype in (polars.Null, polars.Boolean):
        values = column.cast(polars.Float64)
        bad = column.clear()
    else:
        return np.zeros(0), str(column.dtype)
    numbers = values.fill_null(float("nan")).to_numpy().astype(np.float64)
    return numbers, (bad[0] if len(bad) else None)
