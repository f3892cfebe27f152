"""How a log changes from its first row to its last: the same figures, part by part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.logs.reading.counting import PatternCounts
from stopwise.policies.uss_ts import UssTs


@dataclass(frozen=True)
class LogPart:
    """One of the parts of equal length into which the rows are cut, in their order.

    Attributes:
        rows: rows up to the end of this part.
        disagreement: share of disagreements of every pair within it; nan where never seen.
        stage_share: what USS-TS, having seen all rows up to here, would do.
    """

    rows: int
    disagreement: FloatArray
    stage_share: FloatArray


def parts_over_time(counts: PatternCounts, costs: Costs) -> tuple[LogPart, ...]:
    """The parts that have rows, in order."""
    parts = []
    so_far = Evidence(len(counts.stages))
    rows = 0
    for block in range(counts.blocks):
        here = counts.where(counts.block == block)
        if not here.rows:
            continue
        evidence = here.evidence()
        so_far.merge(evidence)
        rows += here.rows
        share = np.abs(UssTs().probabilities(so_far, max(rows, 1), costs))
        parts.append(LogPart(rows, evidence.disagreement, share))
    return tuple(parts)
