"""The rule itself, and the file it is kept in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stopwise.arrays import IntArray
from stopwise.checks import fail, whole_number
from stopwise.costs import Costs
from stopwise.decisions import first_choice, optimal_stages
from stopwise.policies.per_item.alone.applying import Followed, follow, in_words
from stopwise.policies.per_item.alone.paths import KeyTable, StagePath
from stopwise.policies.per_item.alone.working_back import (
    WorkedBack,
    held_out_values,
    work_back,
)
from stopwise.policies.per_item.rule import RuleDecision
from stopwise.policies.per_item.rule_files import FiledRule, RuleHead, read_head
from stopwise.situations.binning import Binning
from stopwise.situations.keys import LEVELS
from stopwise.situations.observations import Observations
from stopwise.situations.references import Held, hold_against
from stopwise.situations.transitions import Transitions
from stopwise.situations.whole_rows import WholeRows

ALONE = "per-item-alone"
"""What a rule of this kind calls itself in a file."""


@dataclass(frozen=True, repr=False)
class AloneRule(FiledRule):
    """A rule that decides which stage to call first, and after each call which one next, if any.

    Args:
        stages: names, cheapest first.
        costs: what each stage costs when it is called alone, and what a mistake costs.
        binning: the cuts by which situations are made.
        first: the stage that every item calls.
        tables: for every path, the stage to call next by situation; the path's own last: stop.
        reads: what it did on the rows that it was made from, in words.
        rows: how many those were.
        counts: the whole rows that it was made from, counted: what a live cascade goes on from.
        reference, trust: what answers were held against, as it was asked for.

    >>> codes = np.array([[0, 0, 0]] * 400 + [[1, 0, 0]] * 200 + [[1, 1, 1]] * 200)
    >>> rows = Observations(("no", "yes"), codes)
    >>> costs = Costs.from_stages([1, 5, 6], mistake_cost=40)
    >>> rule = AloneRule.fit(("small", "middle", "large"), rows, costs)
    >>> rule.first, rule.follow(rows.where(np.array([0, 500]))).answered_by.tolist()
    (0, [0, 1])
    """

    stages: tuple[str, ...]
    costs: Costs
    binning: Binning
    first: int
    tables: Mapping[StagePath, KeyTable]
    reads: tuple[str, ...] = ()
    rows: int = 0
    counts: Transitions | None = None
    reference: str | int = "auto"
    trust: float | None = None
    worked: WorkedBack | None = field(default=None, compare=False, repr=False)
    held: Held | None = field(default=None, compare=False, repr=False)

    @classmethod
    def fit(
        cls,
        stages: tuple[str, ...],
        rows: Observations,
        costs: Costs,
        *,
        reference: str | int = "auto",
        trust: float | None = None,
        first: int | None = None,
        labelled: tuple[Observations, IntArray] | None = None,
    ) -> AloneRule:
        """Make the rule from complete rows; the first stage is chosen unless it is given.

        Args:
            labelled: rows that somebody labelled, and the code of each right answer.
        """
        if not rows.complete.all():
            raise fail("rows", "rows that stopped early", "rows on which every stage was called")
        if not len(stages) == rows.stage_count == costs.stage_count:
            raise fail("stages", list(stages), f"{rows.stage_count} names and costs, as the rows")
        counts = Transitions.of(rows, Binning.fit(rows, whole=True))
        if labelled is not None:
            counts.add_labels(*labelled)
        return cls.from_counts(stages, counts, costs, reference=reference, trust=trust, first=first)

    @classmethod
    def from_counts(
        cls,
        stages: tuple[str, ...],
        counts: Transitions,
        costs: Costs,
        *,
        reference: str | int = "auto",
        trust: float | None = None,
        first: int | None = None,
    ) -> AloneRule:
        """Make the rule from whole rows that were counted: a pure function of its arguments."""
        rows = WholeRows.of_counts(counts.moves[0], counts.stage_count)
        # What answers are held against follows from how rows end, and from labels.
        ends = Transitions(counts.binning)
        ends.full, ends.labelled = rows.ends(), dict(counts.labelled)
        held = hold_against(ends, reference, trust)
        if first is None:
            first = first_choice(held_out_values(rows, held, costs))
        elif not 0 <= first < len(stages):
            raise fail("first", first, f"the number of a stage, 0 to {len(stages) - 1}")
        worked = work_back(rows, held, costs)
        called = follow(rows, worked.tables, first, costs).called
        reads = in_words(stages, called, rows.number)
        return cls(
            stages, costs, counts.binning, first, worked.tables, reads, counts.rounds, counts,
            reference, trust, worked, held,
        )  # fmt: skip

    def follow(self, rows: Observations) -> Followed:
        """Where items are answered and what they cost, given all outputs."""
        whole = WholeRows.of(rows, self.binning)
        return follow(whole, self.tables, self.first, self.costs)

    def answering(self, groups: IntArray) -> IntArray | None:
        """Of items that called every stage: whose answer loses least; the deepest of equals.

        None where the rule was read from a file, which says what to do and not why.
        """
        if self.held is None:
            return None
        losses = self.held.loss(groups)
        return optimal_stages(losses)

    def decide(self, path: StagePath, key: int) -> RuleDecision | None:
        """What it says of an item in a situation after a path; None where nothing is decided.

        As for `answering`, a rule that was read from a file does not know.
        """
        if self.worked is None or path not in self.worked.means:
            return None
        means, options = self.worked.means[path], self.worked.options[path]
        values = means.look_up(np.asarray([key]))[0]
        level = max(
            at for at, shift in enumerate(LEVELS) if at == 0 or key >> shift in means.keys[at]
        )
        at = int(np.searchsorted(means.keys[level], key >> LEVELS[level])) if level else 0
        losses = [float("nan")] * len(self.stages)
        losses[path[-1]] = float(values[0])
        mistake = self.costs.mistake_cost
        return RuleDecision(
            options[first_choice(values)] == path[-1],
            tuple(losses),
            mistake * float(values[0]),
            mistake * float(values[1:].min(initial=np.inf)),
            int(means.rows[level][at]),
            level,
        )

    def next_stage(self, path: StagePath, key: int) -> int:
        """The stage to call after a path in a situation; the last of the path means: stop."""
        for shift, table in self.tables.get(path, ()):
            found = table.get(key >> shift)
            if found is not None:
                return found
        return path[-1]

    # ---- keeping ------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        """What it was made from: all else follows. One that was read from a file is as it reads."""
        if self.counts is None or self.held is None:
            return type(self).from_dict, (self.to_dict(),)
        made_from = (self.stages, self.counts, self.costs, self.reference, self.trust, self.first)
        return _made_again, made_from

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            **RuleHead(self.stages, self.costs, self.reference, self.trust).written(ALONE),
            "binning": self.binning.to_dict(),
            "first": self.first,
            "rows": self.rows,
            "reads": list(self.reads),
            "counts": None if self.counts is None else self.counts.to_dict(),
            "paths": [
                {
                    "path": list(path),
                    "levels": [
                        [shift, {f"{key:x}": stage for key, stage in sorted(table.items())}]
                        for shift, table in levels
                    ],
                }
                for path, levels in sorted(self.tables.items())
            ],
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> AloneRule:
        """Read what `to_dict` wrote.

        >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
        >>> rule = AloneRule.fit(("small", "large"), rows, Costs.from_stages([1, 5]))
        >>> AloneRule.from_dict(rule.to_dict()) == rule
        True
        """
        head = read_head(form, ALONE, _FIELDS, needed=("binning", "first", "paths"))
        try:
            first = whole_number("first", form["first"], least=0)
            reads = tuple(str(line) for line in form.get("reads", ()))
            rows = whole_number("rows", form.get("rows", 0), least=0)
            given = form.get("counts")
            counts = None if given is None else Transitions.from_dict(given)
            tables = {
                tuple(whole_number("path", at, least=0) for at in entry["path"]): tuple(
                    (
                        whole_number("levels", shift, least=0),
                        {int(key, 16): whole_number("levels", to, least=0)
                         for key, to in table.items()},
                    )
                    for shift, table in entry["levels"]
                )
                for entry in form["paths"]
            }  # fmt: skip
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise fail("rule", str(error), "a rule as to_dict writes it") from None
        _check_tables(head.stages, first, tables)
        binning = Binning.from_dict(form["binning"])
        if counts is not None and counts.binning != binning:
            raise fail("counts", counts.binning.epoch, f"counts of the binning {binning.epoch}")
        return cls(
            head.stages, head.costs, binning, first, tables, reads, rows, counts, head.reference,
            head.trust,
        )  # fmt: skip


_FIELDS = ("binning", "first", "rows", "reads", "paths", "counts")


def _made_again(
    stages: tuple[str, ...],
    counts: Transitions,
    costs: Costs,
    reference: str | int,
    trust: float | None,
    first: int,
) -> AloneRule:
    return AloneRule.from_counts(
        stages, counts, costs, reference=reference, trust=trust, first=first
    )


def _check_tables(
    stages: tuple[str, ...], first: int, tables: Mapping[StagePath, KeyTable]
) -> None:
    """Refuse a rule that names stages that are not there, or goes back."""
    stage_count = len(stages)
    if first >= stage_count:
        raise fail("first", first, f"the number of a stage, 0 to {stage_count - 1}")
    for path, levels in tables.items():
        if not path or list(path) != sorted(set(path)) or path[-1] >= stage_count:
            raise fail("path", list(path), f"numbers of stages, 0 to {stage_count - 1}, rising")
        for _, table in levels:
            for stage in table.values():
                if not path[-1] <= stage < stage_count:
                    raise fail(
                        "levels",
                        stage,
                        f"a stage from {path[-1]} to {stage_count - 1} after this path",
                    )
