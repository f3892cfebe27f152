"""How patterns are read: labels become codes, and what is no label, pattern or name is refused."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stopwise.arrays import FloatArray
from stopwise.arrays import IntArray as IntArray
from stopwise.checks import StopwiseError, fail, known_names, number_within

LabelTuple = tuple[Hashable, ...]

SUM_TOLERANCE = 1e-6
"""How far probabilities that a person wrote may be from a sum of one."""


def code_patterns(
    patterns: Iterable[tuple[Hashable, Sequence[Hashable], float]], stage_count: int
) -> tuple[IntArray, FloatArray, LabelTuple]:
    """Code (truth, outputs, probability) triples; equal patterns are merged.

    Returns:
        A table with one row per pattern (truth, then outputs), the probabilities, and the labels.

    >>> code_patterns([("a", ["a", "b"], 0.5), ("a", ["a", "b"], 0.5)], 2)
    (array([[0, 0, 1]]), array([1.]), ('a', 'b'))
    """
    codes: dict[Hashable, int] = {}
    merged: dict[tuple[int, ...], float] = {}
    for at, pattern in enumerate(patterns):
        if isinstance(pattern, str) or not isinstance(pattern, Sequence) or len(pattern) != 3:
            raise fail(f"patterns[{at}]", pattern, "truth, outputs and probability")
        truth, outputs, p = pattern
        if isinstance(outputs, (str, bytes)) or not isinstance(outputs, Sequence | np.ndarray):
            raise fail(f"patterns[{at}].outputs", outputs, "a list, one output for each stage")
        if len(outputs) != stage_count:
            raise fail(
                f"patterns[{at}].outputs", list(outputs),
                f"{stage_count} outputs, one for each cost",
            )  # fmt: skip
        accepted = "a probability between 0 and 1"
        weight = number_within(f"patterns[{at}].p", p, accepted, least=0, most=1)
        key = (
            _code(codes, f"patterns[{at}].truth", truth),
            *(_code(codes, f"patterns[{at}].outputs", value) for value in outputs),
        )
        merged[key] = merged.get(key, 0.0) + weight
    if not merged:
        raise StopwiseError("patterns: got none, but need at least one")
    table = np.array(list(merged), dtype=np.int64)
    return table, np.array(list(merged.values())), tuple(codes)


def code_predictions(
    predictions: ArrayLike, truth: ArrayLike, stage_count: int
) -> tuple[IntArray, IntArray, LabelTuple]:
    """Code a table of predictions and the truth.

    Returns:
        The different patterns (truth, then outputs), the pattern of every row, and the labels.

    >>> code_predictions([["a", "b"], ["a", "b"]], ["b", "b"], 2)
    (array([[0, 1, 0]]), array([0, 0]), ('b', 'a'))
    """
    table = _as_table(predictions)
    answers = _as_table(truth)
    if table.ndim != 2 or table.shape[1] != stage_count:
        raise fail(
            "predictions", table.shape, f"a table of items by {stage_count} stages"
        )  # fmt: skip
    if answers.shape != (len(table),) or not len(table):
        raise fail("truth", answers.shape, f"{len(table)} values, one for each row, and not 0")
    codes: dict[Hashable, int] = {}
    coded = np.empty((len(table), stage_count + 1), dtype=np.int64)
    for at, (row, answer) in enumerate(zip(table.tolist(), answers.tolist(), strict=True)):
        coded[at, 0] = _code(codes, f"truth[{at}]", answer)
        for stage, value in enumerate(row):
            coded[at, stage + 1] = _code(codes, f"predictions[{at}][{stage}]", value)
    seen: dict[bytes, int] = {}
    rows = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in coded])
    patterns = np.array([np.frombuffer(key, dtype=np.int64) for key in seen])
    return patterns, rows, tuple(codes)


def _code(codes: dict[Hashable, int], field: str, label: Any) -> int:
    if isinstance(label, np.generic):
        label = label.item()
    if (
        label is None
        or isinstance(label, (list, dict, np.ndarray))
        or (isinstance(label, float) and not math.isfinite(label))
        or label != label
    ):
        accepted = "a label: text, a number or a boolean (not null, not NaN, not infinite)"
        raise fail(field, label, accepted)
    try:
        return codes.setdefault(label, len(codes))
    except TypeError:
        raise fail(field, label, "a label that can be hashed") from None


def json_patterns(patterns: Any) -> Iterable[tuple[Any, Any, Any]]:
    """The (truth, outputs, probability) triples of the JSON form.

    >>> list(json_patterns([{"truth": 0, "outputs": [0, 1], "p": 1}]))
    [(0, [0, 1], 1)]
    """
    if not isinstance(patterns, list):
        raise fail("patterns", patterns, "a list of objects with truth, outputs and p")
    written: dict[Any, bool] = {}
    for at, pattern in enumerate(patterns):
        if not isinstance(pattern, dict):
            raise fail(f"patterns[{at}]", pattern, "an object with truth, outputs and p")
        known_names(f"patterns[{at}]", pattern, ("truth", "outputs", "p"))
        for field in ("truth", "outputs", "p"):
            if field not in pattern:
                raise StopwiseError(f"patterns[{at}]: the field {field!r} is missing")
        _refuse_mixed_booleans(written, f"patterns[{at}].truth", [pattern["truth"]])
        if isinstance(pattern["outputs"], list):
            _refuse_mixed_booleans(written, f"patterns[{at}].outputs", pattern["outputs"])
        yield pattern["truth"], pattern["outputs"], pattern["p"]


def _refuse_mixed_booleans(written: dict[Any, bool], field: str, labels: Any) -> None:
    """In JSON `true` and `1` differ, in Python they are equal: do not guess which was meant."""
    for label in labels:
        if isinstance(label, (bool, int, float)):
            boolean = isinstance(label, bool)
            if written.setdefault(label, boolean) != boolean:
                raise fail(
                    field, label, "labels that are either true and false or 1 and 0, not both"
                )


def _as_table(values: ArrayLike) -> NDArray[Any]:
    """An array that keeps every label as it is: numpy alone would turn `["a", 1]` into text."""
    return np.asarray(values, dtype=None if hasattr(values, "__array__") else object)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """What was computed once must not be changed by a reader."""
    array.flags.writeable = False
    return array


def probabilities(p: FloatArray) -> FloatArray:
    """Refuse probabilities that do not sum to one, but for rounding.

    >>> probabilities(np.array([0.5, 0.4]))
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: patterns: probabilities sum to 0.9, but must sum to 1
    """
    p = np.asarray(p, dtype=np.float64)
    total = float(p.sum())
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise StopwiseError(f"patterns: probabilities sum to {total:.9g}, but must sum to 1")
    # Sums that are one but for rounding are left alone, so that a written problem reads back equal.
    # A merged pattern may come to one and a last bit, which would be refused when read back.
    return np.minimum(p if abs(total - 1) <= 1e-12 else p / total, 1.0)


def stage_names(stages: Sequence[str] | None, stage_count: int) -> tuple[str, ...]:
    """The names given, or the usual ones.

    >>> stage_names(None, 2)
    ('stage 1', 'stage 2')
    """
    if stages is None:
        return tuple(f"stage {i + 1}" for i in range(stage_count))
    accepted = "a list of names, each of printable characters"
    if isinstance(stages, (str, Mapping)) or not isinstance(stages, Iterable):
        raise fail("stages", stages, accepted)
    stages = list(stages)
    if not all(isinstance(name, str) and name.strip() and name.isprintable() for name in stages):
        raise fail("stages", stages, accepted)
    if len(stages) != stage_count or len(set(stages)) != stage_count:
        raise fail("stages", stages, f"{stage_count} different names, one for each cost")
    return tuple(stages)
