"""`analyze_items`: everything about stopping per item that a log tells, without a label."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import first_passing_stage
from stopwise.logs.items.compared import ComparedWays
from stopwise.logs.items.frontier import Frontier, frontier_of
from stopwise.logs.items.gains import Gain, StoppedEverywhere, gains_of
from stopwise.logs.items.held_out import (
    HeldOut,
    WayToStop,
    best_way,
    check_rows,
    errors_of_reference,
    hold_out,
    score_way,
    share_saved,
)
from stopwise.logs.items.why import Reason, reasons
from stopwise.logs.reading.rows import LogRows
from stopwise.policies.per_item.rule import Rule


@dataclass(frozen=True, repr=False)
class ItemAnalysis(ComparedWays):
    """What stopping per item would cost and save, held out, and why it stops where it does.

    Attributes:
        per_item: the per-item rule.
        ways: the single-stage rule, always-last and each fixed stage beside it.
        held_out: depths, calibration and what is certified.
        rule: fitted on all rows: the one to keep.
        reasons: its lines that carry most items.
        frontier: cost against changed answers, over mistake costs.
        gains: what it saves against the best single stage, with an interval: under the reference it
            is held to first, then if the last stage, and if the consensus is right.
    """

    stages: tuple[str, ...]
    rows: int
    costs: Costs
    per_item: WayToStop
    ways: tuple[WayToStop, ...]
    held_out: HeldOut
    rule: Rule
    reasons: tuple[Reason, ...]
    frontier: Frontier
    has_confidences: bool
    gains: tuple[Gain, ...]

    @property
    def always_last(self) -> WayToStop:
        """The last stage for all items."""
        return self.ways[1]

    @property
    def best_single(self) -> WayToStop:
        """The fixed stage that is expected to cost least, held against the same reference."""
        return best_way(self.ways[2:], self.costs.mistake_cost)

    @property
    def gain(self) -> float:
        """What the rule is expected to save against the best single stage, as a share of it."""
        return share_saved(self.per_item, self.best_single)

    @property
    def helps(self) -> bool:
        """Whether the rule beats every single stage, held out: by 1 %, and beyond chance."""
        return self.gain > 0.01 and self.gains[0].low > 0

    @property
    def depends_on(self) -> tuple[str, ...]:
        """References under which it would not help, though it does under the one it is held to."""
        if not self.helps:
            return ()
        return tuple(gain.reference for gain in self.gains[1:] if gain.high < 0)

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise analyze --per-item --json` prints under "per_item"."""
        held = self.rule.held
        return {
            "rows": self.rows,
            "helps": self.helps,
            "gain_over_best_single_stage": self.gain,
            "best_single_stage": self.best_single.name,
            "gains": [asdict(gain) for gain in self.gains],
            "depends_on": list(self.depends_on),
            "per_item": asdict(self.per_item),
            "ways": [asdict(way) for way in self.ways],
            "saved_against_last": self.always_last.cost - self.per_item.cost,
            "certified_saving": self.held_out.certified,
            "certified_level": self.held_out.level,
            "calibration_error": self.held_out.calibration,
            "reference": {
                "asked": held.reference,
                "trust": held.trust,
                "doubt_of_last_stage": held.doubt,
                "accuracies": None if held.accuracies is None else list(held.accuracies),
            },
            "reasons": [asdict(reason) for reason in self.reasons],
            "frontier": asdict(self.frontier),
        }


def analyze_items(
    rows: LogRows,
    *,
    reference: str | int = "auto",
    trust: float | None = None,
    level: float = 0.99,
    seed: int = 0,
    errors: float | None = None,
) -> ItemAnalysis:
    """Analyse complete rows of a log.

    Args:
        errors: the share of errors that is stated of the last stage beside this analysis.

    >>> import polars
    >>> from stopwise.logs.reading.rows import read_rows
    >>> from stopwise.logs.settings import LogSettings
    >>> frame = polars.DataFrame({"small": ["keep", "refund"] * 200, "large": ["keep"] * 400})
    >>> settings = LogSettings(stages=("small", "large"), costs=(1, 4), mistake_cost=20)
    >>> found = analyze_items(read_rows(frame, settings))
    >>> found.helps, found.per_item.stage_share, round(found.per_item.changed, 2)
    (True, (0.5, 0.5), 0.0)
    """
    check_rows(len(rows.stages), len(rows.codes))
    stage_count = len(rows.stages)
    met = rows.observations()
    held_out = hold_out(
        met, rows.stages, rows.costs, reference=reference, trust=trust, level=level, seed=seed,
        bills=rows.bills if rows.billed else None,
    )  # fmt: skip
    rule = Rule.fit(rows.stages, met, rows.costs, reference=reference, trust=trust)
    losses = rule.held.loss(partitions(rows.codes))
    single = first_passing_stage(rows.costs.thresholds, rows.evidence().disagreement)

    stops = StoppedEverywhere(
        answered=np.stack([rows.answered_at(stage) for stage in range(stage_count)], axis=1),
        spent=rows.spent,
        through=np.cumsum(rows.bills, axis=1),
    )

    in_all = losses + errors_of_reference(losses, stops.answered[:, -1], errors)

    def way(name: str, depths: IntArray, spent: FloatArray) -> WayToStop:
        return score_way(name, depths, rows.codes, rows.costs, rows.truth, in_all, spent=spent)

    def fixed(name: str, stage: int) -> WayToStop:
        return way(name, stops.answered[:, stage], stops.spent[:, stage])

    ways = (
        fixed(f"single-stage rule ({rows.stages[single]})", single),
        fixed(f"always last ({rows.stages[-1]})", stage_count - 1),
        *(fixed(f"always {name}", stage) for stage, name in enumerate(rows.stages)),
    )
    return ItemAnalysis(
        stages=rows.stages,
        rows=len(rows.codes),
        costs=rows.costs,
        per_item=way(
            "per item", held_out.depths, stops.through[np.arange(len(rows.codes)), held_out.depths]
        ),
        ways=ways,
        held_out=held_out,
        rule=rule,
        reasons=tuple(reasons(rule)),
        frontier=frontier_of(met, held_out, rows.stages, rows.costs, stops, seed=seed),
        has_confidences=rows.confidences is not None,
        gains=gains_of(rule, held_out.depths, rows.codes, stops),
    )
