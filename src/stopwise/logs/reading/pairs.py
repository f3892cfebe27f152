"""Pairs of stages: their order, and which of them can be compared at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import StopwiseError
from stopwise.evidence import Evidence


def pair_indices(stage_count: int) -> list[tuple[int, int]]:
    """All (shallow, deep), in order.

    >>> pair_indices(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(i, j) for i in range(stage_count) for j in range(i + 1, stage_count)]


def unseen_pairs(evidence: Evidence) -> NDArray[np.bool_]:
    """Which pairs i < j were never seen together.

    >>> unseen_pairs(Evidence.from_prefixes(2, [["a", "b"]])).any()
    np.False_
    """
    return np.asarray(np.triu(evidence.seen == 0, 1))


def refuse_no_overlap(stages: tuple[str, ...], evidence: Evidence) -> None:
    """Two stages that never answered the same item cannot be compared.

    >>> refuse_no_overlap(("a", "b"), Evidence(2))
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: stages a and b: no item was answered by both, so their ...
    """
    for i, j in pair_indices(evidence.stage_count):
        if evidence.seen[i, j] == 0:
            raise StopwiseError(
                f"stages {stages[i]} and {stages[j]}: no item was answered by both, so their"
                " disagreement is unknown; leave one out, or log both on some items (shadow mode)"
            )
