"""Deciding per item where each stage can be called alone: which one first, and which one then.

Everything is held out, as for a cascade: each half of a log is answered by the rule of the other.
Costs and savings are stated against the baseline called alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.costs import Costs
from stopwise.decisions import optimal_stage
from stopwise.logs.formatting import amount, share
from stopwise.logs.items.compared import ComparedWays
from stopwise.logs.items.gains import interval_of_mean
from stopwise.logs.items.held_out import (
    WayToStop,
    best_way,
    check_rows,
    errors_of_reference,
    expected_savings,
    mean_lower_bound,
    score_way,
    share_saved,
)
from stopwise.logs.items.words import reference
from stopwise.logs.reading.bills import spread_of
from stopwise.logs.reading.costs import mean_bounds
from stopwise.logs.reading.rows import LogRows
from stopwise.policies.per_item.alone.applying import Followed
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.situations.binning import Binning
from stopwise.situations.references import hold_against
from stopwise.situations.transitions import Transitions


@dataclass(frozen=True, repr=False)
class AloneItems(ComparedWays):
    """What deciding per item costs and saves where stages are called alone, held out.

    Attributes:
        stages: in the order of their own costs.
        own: what each costs by itself.
        baseline: the stage that savings are stated against.
        per_item: the rule.
        ways: each stage called alone for all items.
        saved_low, saved_high: ends of the 95 % interval, over items, of what the rule is expected
            to save per item against the best single stage.
        called: share of items on which the rule calls each stage.
        certified: with probability `level`, at least this much is saved per item against the
            baseline alone, whatever the truth; may be below 0.
        rule: fitted on all rows: the one to keep.
        doubt: how far the consensus takes the baseline's place as what answers are held against.
        trust: what share of the differences from the baseline counts as mistakes.
    """

    stages: tuple[str, ...]
    rows: int
    own: tuple[float, ...]
    mistake_cost: float
    baseline: int
    per_item: WayToStop
    ways: tuple[WayToStop, ...]
    saved_low: float
    saved_high: float
    called: tuple[float, ...]
    certified: float
    level: float
    rule: AloneRule
    doubt: float
    trust: float

    @property
    def best_single(self) -> WayToStop:
        """The stage that is expected to cost least for all items."""
        return best_way(self.ways, self.mistake_cost)

    @property
    def gain(self) -> float:
        """What the rule is expected to save against the best single stage, as a share of it."""
        return share_saved(self.per_item, self.best_single)

    @property
    def helps(self) -> bool:
        """Whether the rule beats every single stage, held out: by 1 %, and beyond chance."""
        return self.gain > 0.01 and self.saved_low > 0

    def sentences(self) -> list[str]:
        """What is to be said, the most important first."""
        own, best, base = self.per_item, self.best_single, self.stages[self.baseline]
        saving = expected_savings(own, best)
        if self.helps:
            first = (
                f"Per item, called alone: helps. The rule is {saving}, the best single stage"
                f" ({amount(self.saved_low)} to {amount(self.saved_high)}; {share(self.gain)} of"
                " its cost)."
            )
        else:
            reason = "that may be chance" if self.gain > 0.01 else "call one stage for all items"
            first = f"Per item, called alone: does not help here. The rule is {saving}: {reason}."
        cost = self.ways[self.baseline].cost
        saved = cost - own.cost
        if abs(saved) < 1e-9 * max(cost, own.cost):
            saved = 0.0  # sums in another order
        by = f"{amount(saved)} less" if saved >= 0 else f"{amount(-saved)} more"
        lines = [
            first,
            f"On rows it has not seen, calls cost {amount(own.cost)}"
            f" (± {amount(own.cost_half_width)}) per item, {by} than {base} alone, and"
            f" {share(own.changed)} (± {share(own.changed_half_width)}) of the answers differ from"
            f" those of {base}.",
        ]
        if self.certified > 0:
            lines.append(
                f"Certified, with {share(self.level)}: at least {amount(self.certified)} per item"
                f" is saved against {base} alone, even if every answer that differs from it is a"
                " mistake."
            )
        lines.append(reference(self.doubt, self.trust, base))
        # The halves' rules, which the figures above are of, may begin at another stage than this.
        lines.append(f"Fitted on all rows, the rule calls {self.stages[self.rule.first]} first:")
        return lines + list(self.rule.reads)

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise analyze --per-item --json` prints under "per_item_alone"."""
        return {
            "rows": self.rows,
            "stages": list(self.stages),
            "helps": self.helps,
            "gain_over_best_single_stage": self.gain,
            "best_single_stage": self.best_single.name,
            "saved_low": self.saved_low,
            "saved_high": self.saved_high,
            "per_item": asdict(self.per_item),
            "ways": [asdict(way) for way in self.ways],
            "called": list(self.called),
            "baseline": self.stages[self.baseline],
            "saved_against_baseline": self.ways[self.baseline].cost - self.per_item.cost,
            "certified_saving": self.certified,
            "certified_level": self.level,
            "doubt_of_baseline": self.doubt,
            "trust": self.trust,
            "first": self.stages[self.rule.first],
            "reads": list(self.rule.reads),
        }


def analyze_items_alone(
    rows: LogRows,
    *,
    reference: str | int = "auto",
    trust: float | None = None,
    level: float = 0.99,
    seed: int = 0,
    errors: float | None = None,
) -> AloneItems:
    """Analyse complete rows whose stages can be called alone, and stand in the order of costs.

    Args:
        errors: the share of errors that is stated of the baseline beside this analysis.

    >>> import polars
    >>> from stopwise.logs.reading.rows import read_rows
    >>> from stopwise.logs.settings import LogSettings
    >>> frame = polars.DataFrame({"small": ["keep", "refund"] * 200, "large": ["keep"] * 400})
    >>> settings = LogSettings(
    ...     stages=("small", "large"), costs=(1, 4), mistake_cost=20, calls="alone"
    ... )
    >>> found = analyze_items_alone(read_rows(frame, settings))
    >>> found.helps, found.per_item.cost, found.called
    (True, 3.0, (1.0, 0.5))
    """
    check_rows(len(rows.stages), len(rows.codes))
    own = Costs.from_stages(rows.own, rows.costs.mistake_cost)
    alone = Costs.from_cumulative(tuple(np.maximum.accumulate(rows.own)), own.mistake_cost)
    met = rows.observations()
    held_to = rows.held_to(reference)
    order = np.random.default_rng(seed).permutation(len(met))
    halves = (order[::2], order[1::2])
    stage_count = len(rows.stages)
    answered = np.zeros(len(met), dtype=np.int64)
    spent = np.zeros(len(met))
    called = np.zeros((len(met), stage_count), dtype=np.int64)
    certified = 0.0
    for fitted, scored in (halves, halves[::-1]):
        rule = AloneRule.fit(rows.stages, met.where(fitted), own, reference=held_to, trust=trust)
        found = rule.follow(met.where(scored))
        answered[scored] = found.answered_by
        spent[scored] = (found.called * rows.bills[scored]).sum(axis=1)
        called[scored] = found.called
        low = _certified(rows.where(scored), found, (1 - level) / 2)
        certified += low * len(scored) / len(met)
    held = hold_against(Transitions.of(met, Binning.fit(met)), held_to, trust)
    losses = held.loss(partitions(rows.codes))
    base = rows.codes[:, rows.baseline]
    in_all = losses + errors_of_reference(losses, rows.answered_at(rows.baseline), errors)

    def way(name: str, stages: IntArray, calls: np.ndarray[Any, Any]) -> WayToStop:
        return score_way(
            name, stages, rows.codes, alone, rows.truth, in_all, spent=calls, against=base
        )

    at = np.arange(len(met))
    mistakes = own.mistake_cost * losses
    totals = np.stack(
        [rows.spent[:, s] + mistakes[at, rows.answered_at(s)] for s in range(stage_count)], axis=1
    )
    best = totals[:, optimal_stage(totals.mean(axis=0) / own.mistake_cost)]
    low, high = interval_of_mean(best - spent - mistakes[at, answered])
    return AloneItems(
        stages=rows.stages,
        rows=len(met),
        own=rows.own,
        mistake_cost=own.mistake_cost,
        baseline=rows.baseline,
        per_item=way("per item", answered, spent),
        ways=tuple(
            way(f"{name} alone", rows.answered_at(stage), rows.spent[:, stage])
            for stage, name in enumerate(rows.stages)
        ),
        saved_low=low,
        saved_high=high,
        called=tuple(float(value) for value in called.mean(axis=0)),
        certified=certified,
        level=level,
        rule=AloneRule.fit(rows.stages, met, own, reference=held_to, trust=trust),
        doubt=held.doubt,
        trust=held.trust,
    )


def _certified(rows: LogRows, found: Followed, tail: float) -> float:
    """A lower bound on what is saved per item against the baseline alone, whatever the truth.

    Bills have no known bound: what the baseline costs, and a mistake where the answer is the same,
    is bounded below, and what the rule pays above (by twice the largest bill; see `mean_bounds`).
    """
    codes = rows.codes
    answers = codes[np.arange(len(codes)), found.answered_by]
    changed = (answers != codes[:, rows.baseline]) | (answers < 0)
    mistake = rows.costs.mistake_cost
    if rows.billed:
        paid = (found.called * rows.bills).sum(axis=1)
        worth = rows.bills[:, rows.baseline] + mistake * ~changed
        low, _ = mean_bounds(spread_of(worth), tail / 2)
        return low - mistake - mean_bounds(spread_of(paid), tail / 2)[1]
    saved = rows.own[rows.baseline] - found.spent - mistake * changed
    return mean_lower_bound(saved, sum(rows.own) - min(rows.own) + mistake, tail)
