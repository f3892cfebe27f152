"""The per-item rule: stop where going on is not expected to pay for itself, given the situation.

After stage i, in situation z, with all numbers in mistakes:

    stop  iff  loss_i(z)  <=  going_on_i(z) = E[ c_(i+1) + min(loss_(i+1), going_on_(i+1)) | z ]

This is optimal stopping on the table of situations. By its own measure it is never worse than any
single stage, up to estimation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stopwise.arrays import IntArray
from stopwise.checks import fail
from stopwise.costs import Costs
from stopwise.decisions import optimal_stage, stopping_is_best
from stopwise.policies.per_item.rule_files import FiledRule, RuleHead, read_head
from stopwise.situations.binning import Binning
from stopwise.situations.keys import LEVELS, situations
from stopwise.situations.leaning import StageRisks
from stopwise.situations.observations import Observations
from stopwise.situations.references import Held, hold_against
from stopwise.situations.risks import StageMoves, carry_back, going_on
from stopwise.situations.transitions import Transitions

PER_ITEM = "per-item"
"""What a rule of this kind calls itself in a file."""


class RuleDecision(NamedTuple):
    """What the rule says of one situation.

    Attributes:
        stop: whether to stop here.
        losses: the expected loss of each stage's answer, in mistakes.
        here, deeper: what stopping here and what going on is expected to cost from now on, calls
            still to be made and mistakes, in the units of the costs.
        rows: how many items went on from the key that decided.
        level: which key that was: 0 knows nothing but the stage, 5 all parts of the situation.
    """

    stop: bool
    losses: tuple[float, ...]
    here: float
    deeper: float
    rows: int
    level: int


@dataclass(frozen=True, repr=False)
class Rule(FiledRule):
    """A rule that decides after each stage, made from counts; it does not change any more.

    Args:
        stages: names, cheapest first.
        counts: what was seen.
        costs: what stages and mistakes cost.
        reference: what answers are held against: "auto", "last", "consensus", a stage by number.
        trust: what a difference from a stage counts for; by default 0.7 for the last stage.

    >>> from stopwise.situations.observations import Observations
    >>> codes = np.array([[0, 0]] * 400 + [[1, 0]] * 200 + [[1, 1]] * 200)
    >>> rows = Observations(("no", "yes"), codes)
    >>> rule = Rule.fit(("small", "large"), rows, Costs.from_stages([1, 5], mistake_cost=20))
    >>> rule.depths(rows.where(np.array([0, 500]))).tolist()     # "yes" is often changed: go on
    [0, 1]
    """

    stages: tuple[str, ...]
    counts: Transitions
    costs: Costs
    reference: str | int = "auto"
    trust: float | None = None

    def __post_init__(self) -> None:
        if not len(self.stages) == self.costs.stage_count == self.counts.stage_count:
            raise fail(
                "stages", list(self.stages),
                f"{self.counts.stage_count} names and {self.counts.stage_count} costs, as counted",
            )  # fmt: skip

    @classmethod
    def fit(
        cls, stages: tuple[str, ...], rows: Observations, costs: Costs, **settings: Any
    ) -> Rule:
        """Make bins, count and settle on a reference, all from the rows of a log."""
        return cls(stages, Transitions.of(rows, Binning.fit(rows)), costs, **settings)

    @cached_property
    def held(self) -> Held:
        """What answers are held against."""
        return hold_against(self.counts, self.reference, self.trust)

    @cached_property
    def risks(self) -> tuple[StageRisks, ...]:
        """The expected losses after every stage but the last."""
        return carry_back(self.counts, self.held.loss, self._moved)

    @cached_property
    def going_on(self) -> tuple[StageRisks, ...]:
        """The expected cost of going on, in mistakes, after every stage but the last."""
        return going_on(self.counts, self.held.loss, self.risks, self.costs, self._moved)

    @cached_property
    def _moved(self) -> tuple[StageMoves, ...]:
        return StageMoves.all_of(self.counts)

    def at_costs(self, costs: Costs) -> Rule:
        """The same at other costs; what does not depend on them is not made again."""
        other = replace(self, costs=costs)
        vars(other).update(held=self.held, risks=self.risks, _moved=self._moved)
        return other

    # ---- deciding -----------------------------------------------------------------------------

    def depths(self, rows: Observations) -> IntArray:
        """Where each item would stop; the rows must have been called that far."""
        return self.depths_of(situations(rows, self.counts.binning))

    def depths_of(self, keys: IntArray) -> IntArray:
        """Where items stop, given their situations after every stage."""
        last = len(self.stages) - 1
        depths = np.full(len(keys), last, dtype=np.int64)
        on = np.arange(len(keys))  # the items that have not stopped yet
        for stage in range(last):
            risks = self.risks[stage]
            places = risks.places(keys[on, stage])
            here, deeper = risks.at(places)[:, stage], self.going_on[stage].at(places)[:, 0]
            stops = stopping_is_best(here, deeper)
            depths[on[stops]] = stage
            on = on[~stops]
        return depths

    def decide(self, stage: int, key: int) -> RuleDecision:
        """The decision after a stage, in a situation, with what it rests on."""
        level, at = self._finest(stage, key)
        losses = self.risks[stage].losses[level][at]
        deeper = self.going_on[stage].losses[level][at, 0]
        return RuleDecision(
            stop=bool(stopping_is_best(losses[stage], deeper)),
            losses=tuple(float(loss) for loss in losses),
            here=float(losses[stage] * self.costs.mistake_cost),
            deeper=float(deeper * self.costs.mistake_cost),
            rows=int(self.risks[stage].rows[level][at]),
            level=level,
        )

    def stops(self, stage: int, key: int) -> bool:
        """The decision alone, fast: a look-up for each level, from fine to coarse."""
        for shift, table in self._tables[stage]:
            found = table.get(key >> shift)
            if found is not None:
                return found
        raise AssertionError("the coarsest key is always there")

    def answering(self, groups: tuple[int, ...]) -> int:
        """After all stages: the one whose answer loses least, the deepest of equals.

        All calls are paid by then, so that the lowest expected cost is the lowest expected loss.

        Args:
            groups: which outputs agree; -1 where a stage abstained.

        >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
        >>> Rule.fit(("small", "large"), rows, Costs.from_stages([1, 5])).answering((0, 1))
        1
        """
        found = self._answering.get(groups)
        if found is None:
            losses = self.held.loss(np.asarray([groups], dtype=np.int64))[0]
            found = optimal_stage(losses)
            self._answering[groups] = found
        return found

    @cached_property
    def _answering(self) -> dict[tuple[int, ...], int]:
        """What `answering` has found: there are few ways in which outputs agree."""
        return {}

    @cached_property
    def _tables(self) -> list[list[tuple[int, dict[int, bool]]]]:
        """For each stage, from fine to coarse: what to do at each key."""
        tables = []
        for stage, (risks, deeper) in enumerate(zip(self.risks, self.going_on, strict=True)):
            levels = []
            for level in range(len(LEVELS) - 1, -1, -1):
                stop = stopping_is_best(risks.losses[level][:, stage], deeper.losses[level][:, 0])
                keys = risks.keys[level].tolist()
                levels.append((LEVELS[level], dict(zip(keys, stop.tolist(), strict=True))))
            tables.append(levels)
        return tables

    def _finest(self, stage: int, key: int) -> tuple[int, int]:
        keys = self.risks[stage].keys
        for level in range(len(LEVELS) - 1, 0, -1):
            at = int(np.searchsorted(keys[level], key >> LEVELS[level]))
            if at < len(keys[level]) and keys[level][at] == key >> LEVELS[level]:
                return level, at
        return 0, 0

    # ---- keeping ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """What it was made from: all else follows, and is made again when it is needed."""
        names = ("stages", "counts", "costs", "reference", "trust")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """As `rule.json` holds it."""
        return {
            **RuleHead(self.stages, self.costs, self.reference, self.trust).written(PER_ITEM),
            "counts": self.counts.to_dict(),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Rule:
        """Read what `to_dict` wrote; what is written for people beside it is passed over.

        >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
        >>> rule = Rule.fit(("small", "large"), rows, Costs.from_stages([1, 5]))
        >>> Rule.from_dict(rule.to_dict()).counts == rule.counts
        True
        """
        head = read_head(form, PER_ITEM, _FIELDS, needed=("counts",))
        counts = Transitions.from_dict(form["counts"])
        return cls(head.stages, counts, head.costs, head.reference, head.trust)


_FIELDS = ("counts", "reads")
