"""Evidence of one part of a log, to be summed: for clusters and logs larger than one machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stopwise.evidence import Evidence
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.labels import plain_label
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.settings import LogSettings


def evidence_of_frame(frame: Any, stages: Sequence[str]) -> Evidence:
    """Count the rows of a pandas or polars frame, say a partition of a Dask frame.

    >>> import polars
    >>> parts = [polars.DataFrame({"a": [0, 1], "b": [0, 0]}), polars.DataFrame({"a": [], "b": []})]
    >>> total = sum((evidence_of_frame(part, ["a", "b"]) for part in parts), Evidence(2))
    >>> total.seen[0, 1], total.disagreed[0, 1]
    (np.int64(2), np.int64(1))
    """
    if not len(frame):
        return Evidence(len(stages))
    settings = LogSettings(stages=tuple(stages), costs=(0.0,) * len(stages), max_labels=10**9)
    return count(open_log(frame, settings), compare_labels=False).evidence()


def evidence_of_groups(
    groups: Iterable[tuple[Sequence[object], int]], stage_count: int
) -> Evidence:
    """Count the rows of a query that groups by the outputs: (outputs in order, number of rows).

    >>> groups = [(("yes", "yes"), 90), (("yes", "no"), 8), ((None, "no"), 2)]
    >>> evidence_of_groups(groups, 2).disagreement[0, 1].round(4)
    np.float64(0.0816)
    """
    evidence = Evidence(stage_count)
    for outputs, number in groups:
        evidence.add([plain_label(output) for output in outputs], times=int(number))
    return evidence
