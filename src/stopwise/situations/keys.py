"""A situation as one whole number, whose leading parts are its coarser keys.

After a stage, an item's situation is: which outputs agree so far (the partition, not the labels),
the bin of the stage's confidence, the bin of its label, the confidence bin of the stage before, and
the cell of the item's features. They stand in this order in the bits of one number, so cutting bits
off the end gives the coarser keys that a situation with few rows leans on. After the last stage
nothing is left to decide: its situation is the partition and how sure the last stage is, which
tells whom to believe where stages differ (`stopwise.situations.sureness`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.situations.binning import ABSTAINED_LABEL, MISSING_BIN, Binning
from stopwise.situations.observations import NOT_CALLED, Observations

_BITS = {"confidence": 4, "label": 4, "previous": 4, "cell": 5}
LEVELS = (63, 17, 13, 9, 5, 0)
"""How many bits each level cuts off, from coarse (nothing known but the stage) to fine."""

_GROUP = 4  # bits for one stage's place in the partition: its group + 1, 0 if it abstained


class Situation(NamedTuple):
    """The parts of a key; `partition` gives each stage's group, -1 where it abstained."""

    partition: tuple[int, ...]
    confidence: int
    label: int
    previous: int
    cell: int


def encode(partition: int, confidence: int, label: int, previous: int, cell: int) -> int:
    """The number of a situation.

    >>> decode(encode(partition_code((0, 1)), 5, 2, 3, 0))
    Situation(partition=(0, 1), confidence=5, label=2, previous=3, cell=0)
    """
    return (((partition << 4 | confidence) << 4 | label) << 4 | previous) << 5 | cell


def decode(key: int) -> Situation:
    """The parts of a number."""
    return Situation(
        partition_of(key >> 17), key >> 13 & 15, key >> 9 & 15, key >> 5 & 15, key & 31
    )


def confidences_of(keys: IntArray) -> IntArray:
    """The confidence bins of many situations at once.

    >>> confidences_of(np.array([encode(partition_code((0,)), 5, 2, 3, 0)]))
    array([5])
    """
    return np.asarray(keys >> 13 & 15)


def groups_of(keys: IntArray, stage: int) -> IntArray:
    """The group of one stage in the partitions of many situations; -1 where it abstained.

    >>> groups_of(np.array([final_key(partition_code((0, 1, -1)))] * 2), 1)
    array([1, 1])
    """
    return np.asarray((keys >> 17 + _GROUP * stage & 15) - 1)


def partition_code(groups: tuple[int, ...]) -> int:
    """A partition as a number; the first stage stands in the lowest bits but for a leading 1.

    >>> partition_code((0, 1)), partition_of(partition_code((0, -1, 0)))
    (289, (0, -1, 0))
    """
    code = 1
    for group in reversed(groups):
        code = code << _GROUP | group + 1
    return code


def partition_of(code: int) -> tuple[int, ...]:
    """The partition behind a number."""
    groups = []
    while code > 1:
        groups.append((code & 15) - 1)
        code >>= _GROUP
    return tuple(groups)


def final_key(partition: int, confidence: int = MISSING_BIN) -> int:
    """The situation after the last stage: the partition and the bin of its confidence.

    >>> decode(final_key(partition_code((0, 1)), 3))
    Situation(partition=(0, 1), confidence=3, label=15, previous=15, cell=0)
    """
    return encode(partition, confidence, ABSTAINED_LABEL, MISSING_BIN, 0)


def situations(rows: Observations, binning: Binning) -> IntArray:
    """The key of every row after every stage; -1 after a stage that was not called.

    >>> rows = Observations(("a", "b"), np.array([[0, 1], [1, -2]]))
    >>> keys = situations(rows, Binning.fit(rows))
    >>> decode(int(keys[0, 0])), int(keys[1, 1])
    (Situation(partition=(0,), confidence=15, label=0, previous=15, cell=0), -1)
    """
    groups = partitions(np.where(rows.codes < 0, -1, rows.codes)) + 1
    confidence = binning.confidence_bins(rows)
    label = binning.label_bins(rows)
    cell = binning.cells(rows)
    stage_count = rows.stage_count
    result = np.full(rows.codes.shape, -1, dtype=np.int64)
    digits = np.zeros(len(rows), dtype=np.int64)
    for stage in range(stage_count):
        digits |= groups[:, stage] << (_GROUP * stage)
        partition = digits | np.int64(1) << np.int64(_GROUP * (stage + 1))
        called = rows.codes[:, stage] != NOT_CALLED
        if stage == stage_count - 1:
            key = (partition << 4 | confidence[:, stage]) << 4 | ABSTAINED_LABEL
            key = (key << 4 | MISSING_BIN) << 5
        else:
            previous = confidence[:, stage - 1] if stage else np.int64(MISSING_BIN)
            key = ((partition << 4 | confidence[:, stage]) << 4 | label[:, stage]) << 4 | previous
            key = key << 5 | cell
        result[called, stage] = key[called]
    return result
