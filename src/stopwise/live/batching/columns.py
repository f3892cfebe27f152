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


class OutputColumns:
    """Outputs of the stages of one batch.

    Args:
        size: how many items the batch has.

    >>> columns = OutputColumns(3)
    >>> columns.add(np.arange(3), ["a", "b", "a"]), columns.add(np.array([1]), ["a"])
    (True, True)
    >>> columns.answers(), columns.codes().tolist()
    (['a', 'a', 'a'], [[0, -1], [0, 1], [0, -1]])
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.stages: list[tuple[IntArray, Any]] = []

    def add(self, rows: IntArray, outputs: Any) -> bool:
        """Add what the next stage said of these rows; False if it cannot stand in a column."""
        if not _is_column(outputs, len(rows)):
            return False
        self.stages.append((rows, outputs))
        return True

    def codes(self) -> IntArray:
        """A row for each item, a column for each stage called: equal where outputs are, else -1.

        Items that only the first stage was called for have nothing to compare: 0 for its output.
        """
        # Column by column in memory: that is how it is filled and read.
        table = np.full((len(self.stages), self._size), -1, dtype=np.int64).T
        table[:, 0] = 0
        if len(self.stages) > 1:
            deep = self.stages[1][0]
            columns = [_some(self.stages[0][1], deep), *(column for _, column in self.stages[1:])]
            for stage, coded in enumerate(_coded(columns)):
                _put(table[:, stage], self.stages[max(stage, 1)][0], coded)
        return table

    def answers(self) -> Any:
        """The deepest output of every item: an array where all stages gave arrays, else a list."""
        # A stage that was called for all items hides what came before it.
        last = max(at for at, (rows, _) in enumerate(self.stages) if len(rows) == self._size)
        stages = self.stages[last:]
        outputs = [column for _, column in stages]
        if not all(isinstance(column, np.ndarray) for _, column in self.stages):
            answers = list(_values(outputs[0]))
            for rows, column in stages[1:]:
                for row, value in zip(rows.tolist(), _values(column), strict=True):
                    answers[row] = value
            return answers
        found = _common_kind(outputs)
        if found is not None:
            array = outputs[0].astype(found)
            for rows, column in stages[1:]:
                array[rows] = column
            return array
        array = np.empty(self._size, dtype=object)
        for rows, column in stages:
            _put(array, rows, np.array([*_values(column), None], dtype=object)[:-1])
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
    columns = [_as_whole(column) for column in columns]
    if all(isinstance(column, np.ndarray) for column in columns):
        kinds = {column.dtype.kind for column in columns}
        if kinds <= set(_WHOLE) and np.result_type(*columns).kind in _WHOLE:
            low = min(int(column.min()) for column in columns)
            high = max(int(column.max()) for column in columns)
            if -(2**62) <= low <= high < 2**62:
                whole = [column.astype(np.int64, copy=False) for column in columns]
                return whole if low >= 0 else [column - low for column in whole]
        if kinds == {_REAL}:
            _, codes = np.unique(np.concatenate([*columns]), return_inverse=True)
            ends = np.cumsum([len(column) for column in columns])[:-1]
            return np.split(codes.ravel(), ends)
    known: dict[Hashable, int] = {}
    return [
        np.array([known.setdefault(value, len(known)) for value in _values(column)], dtype=np.int64)
        for column in columns
    ]


def _as_whole(column: Any) -> Any:
    """A list of whole numbers as an array of them, if they fit; all else as it is."""
    if isinstance(column, np.ndarray) or not set(map(type, column)) <= {int, bool}:
        return column
    try:
        return np.array(column, dtype=np.int64)
    except OverflowError:
        return column


def _put(column: IntArray, rows: IntArray, values: Any) -> None:
    if len(rows) == len(column):
        column[:] = values
    else:
        column[rows] = values


def _some(column: Any, rows: IntArray) -> Any:
    if len(rows) == len(column):
        return column
    return (
        column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows.tolist()]
    )


def _values(column: Any) -> Any:
    return column.tolist() if isinstance(column, np.ndarray) else column
