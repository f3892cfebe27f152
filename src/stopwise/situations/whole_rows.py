"""Whole rows, binned and counted: the evidence of stages that can be called alone.

Where stages may be called in any choice, what was called before a stage is not fixed, and counts of
transitions from one stage to the next do not tell what some stages say of another. Full runs do:
all that a rule can look at is which outputs of a row agree, the bins of its confidences and labels,
and its cell. So rows that are alike in these are counted together, as two whole numbers. Such
counts add up over machines and days and are kept where transitions are (`Transitions`, under a
binning that is marked `whole`, so that the two never mix).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import FloatArray, IntArray
from stopwise.situations.binning import ABSTAINED_LABEL, MISSING_BIN, Binning
from stopwise.situations.observations import Observations

_IN_FIRST = 5  # stages in the first of the two numbers
_BITS = 12  # of a stage: 4 for its group + 1, 4 for its confidence, 4 for its label
_CELL = 5
_LAST_SURE = 57
"""From which bit of the second number on the last stage's confidence stands, behind all others.

It is counted down from `MISSING_BIN`, so that rows counted before it was kept read as rows without.
"""


@dataclass(frozen=True)
class WholeRows:
    """Rows as far as a rule can tell them apart.

    Attributes:
        groups: which outputs agree: equal numbers in a row; -1 where a stage abstained.
        confidence: the bins of each stage. That of the last decides nothing, but tells whom to
            believe where stages differ.
        label: the bins of each stage but the last, after which nothing is decided.
        cell: of the item's features.
        number: how many rows are like this.

    >>> rows = Observations(("a", "b"), np.array([[0, 1], [0, 1], [1, 1]]))
    >>> binning = Binning.fit(rows, whole=True)
    >>> WholeRows.of(rows, binning).groups.tolist()
    [[0, 1], [0, 1], [0, 0]]
    """

    groups: IntArray
    confidence: IntArray
    label: IntArray
    cell: IntArray
    number: FloatArray

    @classmethod
    def of(cls, rows: Observations, binning: Binning) -> WholeRows:
        """Complete rows, one by one."""
        last = rows.stage_count - 1
        return cls(
            partitions(np.where(rows.codes < 0, -1, rows.codes)),
            binning.confidence_bins(rows),
            binning.label_bins(rows)[:, :last],
            binning.cells(rows),
            np.ones(len(rows)),
        )

    @classmethod
    def of_counts(cls, counts: Mapping[tuple[int, int], int], stage_count: int) -> WholeRows:
        """Rows that were counted by their two numbers, in the order of these.

        >>> rows = WholeRows.of_counts({whole_key([0, 1], [15, 4], [2], 0): 3}, 2)
        >>> rows.groups.tolist(), rows.confidence.tolist(), rows.label.tolist()
        ([[0, 1]], [[15, 4]], [[2]])
        >>> rows.number.tolist()
        [3.0]
        """
        last = stage_count - 1
        found = sorted(counts.items())
        keys = np.asarray([pair for pair, _ in found], dtype=np.int64).reshape(-1, 2)
        number = np.asarray([times for _, times in found], dtype=np.float64)
        cell = keys[:, 1] & (1 << _CELL) - 1
        groups = [keys[:, 1] >> _CELL & 15]
        stages = []
        for stage in range(last):
            part, shift = _place(stage)
            stages.append(keys[:, part] >> shift)
        groups = [*(one >> 8 & 15 for one in stages), *groups]
        return cls(
            np.stack(groups, axis=1) - 1,
            np.stack(
                [*(one >> 4 & 15 for one in stages), MISSING_BIN - (keys[:, 1] >> _LAST_SURE)],
                axis=1,
            ),
            np.stack([one & 15 for one in stages], axis=1),
            cell,
            number,
        )

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def stage_count(self) -> int:
        """How many stages there are."""
        return int(self.groups.shape[1])

    def where(self, index: IntArray) -> WholeRows:
        """Only these rows."""
        return WholeRows(
            self.groups[index], self.confidence[index], self.label[index], self.cell[index],
            self.number[index],
        )  # fmt: skip

    def keys(self) -> IntArray:
        """The two numbers of every row."""
        return np.stack(_keys(self.groups.T, self.confidence.T, self.label.T, self.cell), axis=1)

    def halves(self) -> tuple[WholeRows, WholeRows]:
        """The rows in two halves, like ones split as evenly as can be: the same for equal counts.

        >>> none = np.zeros((2, 1), dtype=int)
        >>> both = np.zeros((2, 2), dtype=int)
        >>> rows = WholeRows(both, both, none, none[:, 0], np.array([3.0, 1.0]))
        >>> [half.number.tolist() for half in rows.halves()]
        [[2.0], [1.0, 1.0]]
        """
        odd = self.number % 2 == 1
        extra = odd & (np.cumsum(odd) % 2 == 1)  # of those that do not split, every second
        first = self.number // 2 + extra
        second = self.number - first
        return self._times(first), self._times(second)

    def _times(self, number: FloatArray) -> WholeRows:
        some = np.flatnonzero(number > 0)
        kept = self.where(some)
        return WholeRows(kept.groups, kept.confidence, kept.label, kept.cell, number[some])

    def without_last_confidence(self) -> WholeRows:
        """The same rows, those together that a rule cannot tell apart: by the last's confidence.

        >>> both = {whole_key([0, 1], [15, at], [2], 0): 2 for at in (3, 4)}
        >>> WholeRows.of_counts(both, 2).without_last_confidence().number.tolist()
        [4.0]
        """
        found: dict[tuple[int, int], int] = {}
        behind = (1 << _LAST_SURE) - 1
        for (one, two), number in zip(self.keys().tolist(), self.number.tolist(), strict=True):
            key = one, two & behind
            found[key] = found.get(key, 0) + int(number)
        return WholeRows.of_counts(found, self.stage_count)

    def ends(self) -> dict[int, int]:
        """How many rows end in each situation."""
        found: dict[int, int] = {}
        for key, number in zip(self._end_keys().tolist(), self.number.tolist(), strict=True):
            found[key] = found.get(key, 0) + int(number)
        return found

    def moves_to_end(self) -> list[dict[tuple[int, int], int]]:
        """For each stage but the last: how many rows go from its situation to which at the end.

        >>> none = np.zeros((2, 1), dtype=int)
        >>> rows = WholeRows(np.zeros((2, 2), int), np.zeros((2, 2), int), none, none[:, 0],
        ...                  np.array([3.0, 1.0]))
        >>> [list(moves.values()) for moves in rows.moves_to_end()]
        [[4]]
        """
        ends = self._end_keys().tolist()
        found: list[dict[tuple[int, int], int]] = []
        for stage in range(self.stage_count - 1):
            before = path_keys(self, tuple(range(stage + 1))).tolist()
            moves: dict[tuple[int, int], int] = {}
            for move, number in zip(zip(before, ends, strict=True), self.number, strict=True):
                moves[move] = moves.get(move, 0) + int(number)
            found.append(moves)
        return found

    def _end_keys(self) -> IntArray:
        """The situation of every row after the last stage."""
        partition = np.full(len(self), 1, dtype=np.int64)
        for stage in range(self.stage_count - 1, -1, -1):
            partition = partition << 4 | self.groups[:, stage] + 1
        keys = (partition << 4 | self.confidence[:, -1]) << 4 | ABSTAINED_LABEL
        return np.asarray((keys << 4 | MISSING_BIN) << 5)


def whole_key(
    groups: Sequence[int], confidence: Sequence[int], label: Sequence[int], cell: int
) -> tuple[int, int]:
    """The two numbers of one row.

    Args:
        groups, confidence: of all stages; the bins of how sure they are.
        label: the bins of all but the last.
        cell: of its features.

    >>> whole_key([0, 1], [15, 15], [2], 0)
    (498, 64)
    """
    first, second = _keys(groups, confidence, label, cell)
    return int(first), int(second)


def _keys(groups: Any, confidence: Any, label: Any, cell: Any) -> list[Any]:
    """Of numbers, or of columns of them."""
    sure = MISSING_BIN - confidence[-1]
    found: list[Any] = [0, sure << _LAST_SURE | (groups[-1] + 1) << _CELL | cell]
    for stage in range(len(groups) - 1):
        part, shift = _place(stage)
        of_stage = (groups[stage] + 1) << 8 | confidence[stage] << 4 | label[stage]
        found[part] = found[part] | of_stage << shift
    return found


def _place(stage: int) -> tuple[int, int]:
    """In which of the two numbers a stage stands, and from which bit on."""
    if stage < _IN_FIRST:
        return 0, _BITS * stage
    return 1, _CELL + 4 + _BITS * (stage - _IN_FIRST)


def path_keys(rows: WholeRows, path: tuple[int, ...]) -> IntArray:
    """The situation of every row after some stages: that of a cascade of these stages alone."""
    groups = partitions(rows.groups[:, list(path)]) + 1
    key = np.full(len(rows), 1, dtype=np.int64)
    for at in range(len(path) - 1, -1, -1):
        key = key << 4 | groups[:, at]
    stage = path[-1]
    previous = rows.confidence[:, path[-2]] if len(path) > 1 else np.int64(MISSING_BIN)
    key = (key << 4 | rows.confidence[:, stage]) << 4 | rows.label[:, stage]
    return np.asarray((key << 4 | previous) << 5 | rows.cell)
