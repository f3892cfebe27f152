"""The outputs of a batch as columns: coded to be counted, and put together to answers.

Outputs never become one NumPy array of text, in which one long text makes all of them as long, and
numbers of different kinds never become one array, in which whole numbers would be rounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from stopwise.problem import IntArray

_WHOLE, _REAL, _TEXT = "iub", "f", "U"
_PLAIN_TYPES = {int, bool, str}


class Columns:
    """Outputs of the stages of one batch.

    Args:
        size: how many items the batch has.
        stage_count: how many stages the cascade has.

    >>> columns = Columns(3, 2)
    >>> columns.add(np.arange(3), ["a", "b", "a"]), columns.add(np.array([1]), ["a"])
    (True, True)
    >>> columns.answers(), columns.codes().tolist()
    (['a', 'a', 'a'], [[0, -1], [1, 0], [0, -1]])
    """

    def __init__(self, size: int, stage_count: int) -> None:
        self._size = size
        self._stage_count = stage_count
        self.stages: list[tuple[IntArray, Any]] = []

    def add(self, rows: IntArray, outputs: Any) -> bool:
        """Add what the next stage said of these rows; False if it cannot stand in a column."""
        if not _is_column(outputs, len(rows)):
            return False
        self.stages.append((rows, outputs))
        return True

    def codes(self) -> IntArray:
        """A row for each item, a column for each stage: equal where outputs are, -1 for none."""
        table = np.full((self._size, self._stage_count), -1, dtype=np.int64)
        outputs = [column for _, column in self.stages]
        for stage, ((rows, _), coded) in enumerate(zip(self.stages, _coded(outputs), strict=True)):
            table[rows, stage] = coded
        return table

    def answers(self) -> Any:
        """The deepest output of every item: an array where all stages gave arrays, else a list."""
        outputs = [column for _, column in self.stages]
        if not all(isinstance(column, np.ndarray) for column in outputs):
            answers = list(_values(outputs[0]))
            for rows, column in self.stages[1:]:
                for row, value in zip(rows.tolist(), _values(column), strict=True):
                    answers[row] = value
            return answers
        found = _common_kind(outputs)
        if found is not None:
            array = outputs[0].astype(found)
            for rows, column in self.stages[1:]:
                array[rows] = column
            return array
        array = np.empty(self._size, dtype=object)
        for rows, column in self.stages:
            array[rows] = np.array([*_values(column), None], dtype=object)[:-1]
        return array


def join(answers: Sequence[Any]) -> Any:
    """The answers of several batches: an array if all are, without changing any of them.

    >>> join([np.array([1]), np.array([0.5])]).tolist()
    [1, 0.5]
    """
    if not answers or not all(isinstance(part, np.ndarray) for part in answers):
        return [answer for part in answers for answer in _values(part)]
    if _common_kind(answers) is None:
        answers = [np.array([*_values(part), None], dtype=object)[:-1] for part in answers]
    return np.concatenate(answers)


def _is_column(outputs: Any, size: int) -> bool:
    if isinstance(outputs, np.ndarray):
        if outputs.shape != (size,) or outputs.dtype.kind not in _WHOLE + _REAL + _TEXT:
            return False
        return outputs.dtype.kind != _REAL or not bool(np.isnan(outputs).any())
    if not isinstance(outputs, (list, tuple)) or len(outputs) != size or not outputs:
        return False
    return set(map(type, outputs)) <= _PLAIN_TYPES


def _common_kind(columns: Sequence[Any]) -> np.dtype[Any] | None:
    """The type in which numbers of all columns stand unchanged, as one array; None if none."""
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) != 1 or not kinds <= set(_WHOLE + _REAL):
        return None
    found = np.result_type(*columns)
    return found if found.kind in kinds else None


def _coded(columns: Sequence[Any]) -> list[IntArray]:
    """Outputs as whole numbers, equal where Python calls the outputs equal."""
    if all(isinstance(column, np.ndarray) for column in columns):
        kinds = {column.dtype.kind for column in columns}
        whole = kinds <= set(_WHOLE) and np.result_type(*columns).kind in _WHOLE
        if whole or kinds == {_REAL}:
            _, codes = np.unique(np.concatenate([*columns]), return_inverse=True)
            ends = np.cumsum([len(column) for column in columns])[:-1]
            return np.split(codes.ravel(), ends)
    known: dict[Hashable, int] = {}
    return [
        np.array([known.setdefault(value, len(known)) for value in _values(column)], dtype=np.int64)
        for column in columns
    ]


def _values(column: Any) -> Any:
    return column.tolist() if isinstance(column, np.ndarray) else column
