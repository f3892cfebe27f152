"""Everything that was found of a log: what words, plots and pages are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.evidence import Evidence
from stopwise.logs.judging.alone import CalledAlone
from stopwise.logs.judging.mistake_costs import MistakeCostRange
from stopwise.logs.judging.over_time import LogPart
from stopwise.logs.judging.readings import Readings
from stopwise.logs.judging.scoring import TruthScore
from stopwise.logs.judging.segments import Segment
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.judging.warnings.log_warning import LogWarning
from stopwise.logs.judging.what_if import WhatIf
from stopwise.logs.reading.counting import PatternCounts

if TYPE_CHECKING:
    from stopwise.logs.items.alone import AloneItems
    from stopwise.logs.items.analysis import ItemAnalysis


@dataclass(frozen=True, repr=False)
class Findings:
    """Everything known of a log.

    Attributes:
        name: what to call the log.
        rows: items of the log.
        verdict: what is certain, and where the paper's rule stops.
        readings: where each reading stops, and which one the headline takes.
        evidence: the pair counters of all rows.
        mistake_cost_ranges: which stage the rule chooses at which mistake cost.
        what_ifs: what dropping a stage or swapping two would change.
        warnings: what a careful reader of the log would point out.
        over_time: the parts of the log in order; empty from evidence alone.
        segments: a verdict for each value of the segment column.
        counts: the counted patterns of outputs; None from evidence alone.
        alone: what holds if each stage can be called alone, where the settings do not say whether.
        truth: how the verdict holds against the truth, if there is one.
        per_item: what a rule that decides per item would cost and save, if it was asked for.
        per_item_alone: the same where each stage can be called alone.
    """

    name: str
    rows: int
    verdict: Verdict
    readings: Readings
    evidence: Evidence
    mistake_cost_ranges: tuple[MistakeCostRange, ...]
    what_ifs: tuple[WhatIf, ...]
    warnings: tuple[LogWarning, ...]
    over_time: tuple[LogPart, ...] = ()
    segments: tuple[Segment, ...] = ()
    counts: PatternCounts | None = None
    alone: CalledAlone | None = None
    truth: TruthScore | None = None
    per_item: ItemAnalysis | None = None
    per_item_alone: AloneItems | None = None
