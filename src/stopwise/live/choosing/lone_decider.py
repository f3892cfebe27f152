"""Decides live rounds per item where stages can be called alone: which first, which next.

Only full runs teach here: a round that jumped over a stage does not show what that stage would have
said. So full runs are counted as whole rows (`stopwise.situations.whole_rows`), and other rounds
not at all. The coin of a full run falls before anything is called and looks at nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stopwise.checks import fail
from stopwise.costs import Costs
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.comparing.reader import Reader
from stopwise.live.items.features import features_of
from stopwise.live.items.path import Deciding, Differ, ItemPath
from stopwise.live.items.row import ItemRow
from stopwise.live.record import RoundRecord
from stopwise.live.round import Round
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.rule import RuleDecision
from stopwise.situations.binning import MISSING_BIN, OTHER_LABEL
from stopwise.situations.keys import encode, partition_code
from stopwise.situations.transitions import Transitions
from stopwise.situations.whole_rows import whole_key


class LonePath(ItemPath):
    """What is known of one item whose stages are called alone.

    Attributes:
        wanted: the stage that the rule wants next.
        way: the stages that the rule has called, or would have called in a full run.
        said: the bins of the labels.
        asked: of which parts of the way the rule was asked, in which situation.
    """

    __slots__ = ("_first", "asked", "said", "wanted", "way")

    def __init__(self, by: Deciding, wanted: int) -> None:
        super().__init__(by)
        self.wanted = self._first = wanted
        self.way: tuple[int, ...] = ()
        self.said: list[int] = []
        self.asked: list[tuple[tuple[int, ...], int]] = []

    def clear(self) -> None:
        """Forget all outputs."""
        super().clear()
        self.wanted, self.way, self.said, self.asked = self._first, (), [], []

    def skip(self) -> None:
        """The next stage was jumped over."""
        self.groups.append(-1)
        self.labels.append(None)
        self.bins.append(MISSING_BIN)
        self.said.append(OTHER_LABEL)

    def extend(
        self, output: Any, confidence: float | None, cell: int, differ: Differ | None
    ) -> int:
        """Take the next stage's output."""
        stage, label, text = self.take(output, differ)
        binning = self.by.binning
        if binning is not None:
            self.bins.append(binning.confidence_bin(stage, confidence))
            said = binning.label_bin(stage, label)
            if said == OTHER_LABEL and label is not text:
                said = binning.label_bin(stage, text)
            self.said.append(said)
        return -1

    def key(self, cell: int) -> int:
        """The situation after the stages of the way."""
        stage = self.way[-1]
        seen: dict[int, int] = {}
        groups = tuple(
            -1 if group < 0 else seen.setdefault(group, len(seen))
            for group in (self.groups[at] for at in self.way)
        )
        previous = self.bins[self.way[-2]] if len(self.way) > 1 else MISSING_BIN
        return encode(partition_code(groups), self.bins[stage], self.said[stage], previous, cell)


class LoneDecider(ItemDecider):
    """Asked after each call which stage comes next. Takes what `ItemDecider` takes.

    Args:
        rule: one that `stopwise fit --calls alone` made; what it was made from is added to.
    """

    whole = True

    def __init__(
        self,
        policy: PerItem,
        stages: tuple[str, ...],
        costs: Callable[[], Costs],
        reader: Reader,
        rule: AloneRule | None = None,
    ) -> None:
        super().__init__(policy, stages, costs, reader)
        if rule is not None:
            if rule.stages != stages:
                raise fail("rule", list(rule.stages), f"a rule of {list(stages)}")
            if rule.counts is None:
                raise fail(
                    "rule", "a rule without the rows that it was made from",
                    "one that this version of stopwise fit --calls alone wrote: fit it again",
                )  # fmt: skip
            self.given, self.fitted_on = rule.counts, features_of(rule)
            self.begin_with(rule.counts)

    def _decide_by(self, counts: Transitions, *, settled: bool) -> None:
        policy = self.policy
        assert isinstance(policy, PerItem)
        rule = AloneRule.from_counts(
            self.stages, counts, self._costs(), reference=policy.reference, trust=policy.trust
        )
        self._by = Deciding.by(None, counts.binning, settled=settled, alone=rule)

    # ---- deciding -----------------------------------------------------------------------------

    def begin(self, round: Round, uniform: float, rate: float = 0.0) -> None:
        """Say whether a round is a full run, and if not, which stage it calls first.

        Args:
            uniform: the round's random number.
            rate: the chance of a full run.
        """
        rule = self._by.alone
        last = len(self.stages) - 1
        # Without a rule there is nothing to learn, or nothing learned yet.
        first = (last if rate else 0) if rule is None else rule.first
        round.full_chance = rate
        round.full_run = uniform < rate
        round.per_item = True
        round.path = LonePath(self._by, min(first, round.depth))

    def next_stage(self, round: Round) -> int | None:
        """The stage that a round calls next; None where it is done."""
        self._walk(round)
        if round.full_run:
            return len(round.outputs)
        if round.rule_depth is not None:
            return None
        assert isinstance(round.path, LonePath)
        return round.path.wanted

    def _walk(self, round: Round) -> None:
        path, last = round.path, len(self.stages) - 1
        assert isinstance(path, LonePath)
        cell = 0 if path.by.cell_of is None else path.by.cell_of(self._features(round))
        if not path.follow():
            round.rule_depth = None
        while len(path.groups) < len(round.outputs):
            stage = len(path.groups)
            if round.skipped >> stage & 1:
                path.skip()
                continue
            sure = None
            if round.confidences is not None and stage < len(round.confidences):
                sure = round.confidences[stage]
            path.extend(round.outputs[stage], sure, cell, self._differ(round, stage))
            if stage == path.wanted and round.rule_depth is None:
                path.way = (*path.way, stage)
                to = stage if stage == last else self._next(path, cell)
                if to == stage:
                    round.rule_depth = stage
                else:
                    path.wanted = to
        path.followed()

    @staticmethod
    def _next(path: LonePath, cell: int) -> int:
        """The stage after those of the way; the last of them: stop."""
        rule, stage = path.by.alone, path.way[-1]
        if all(path.groups[at] < 0 for at in path.way):
            return stage + 1  # none has answered: there is nothing to stop with
        if rule is None:
            return stage
        key = path.key(cell)
        path.asked.append((path.way, key))
        return rule.next_stage(path.way, key)

    def conclude(self, round: Round, *, enforced: bool) -> None:
        """Settle with which probability a round went the way it did, before it is written."""
        self._walk(round)
        path = round.path
        assert isinstance(path, LonePath)
        whole = len(round.outputs) == len(self.stages) and not round.skipped
        if enforced:
            round.probability = round.full_chance if round.full_run else 1 - round.full_chance
            round.full_run = round.full_run and whole
            return
        round.full_run = whole
        if round.rule_depth is not None:
            round.advised, round.advised_probability = round.rule_depth, 1 - round.full_chance
            called = sum(1 << stage for stage in path.way)
            round.advised_skipped = ((1 << round.rule_depth) - 1) & ~called

    def answering(self, round: Round) -> int | None:
        """After a full run, the stage whose answer is expected to lose least."""
        path = round.path
        if path is None or not round.full_run or round.failed or path.by.alone is None:
            return None
        found = path.by.alone.answering(np.asarray([path.groups], dtype=np.int64))
        if found is None:
            return None
        stage = int(found[0])
        return stage if path.groups[stage] >= 0 else None

    def row_of(self, round: Round, record: RoundRecord, *, enforced: bool) -> ItemRow | None:
        """What is to be counted of a round; of one that is no full run, only its figures."""
        path = round.path
        if not isinstance(path, LonePath) or not path.groups:
            return None
        sure = tuple(round.confidences or ())
        by, full = path.by, round.full_run
        keys: tuple[int, ...] = ()
        features = self._features(round) if full else {}
        if full and by.binning is not None:
            cell = 0 if by.cell_of is None else by.cell_of(features)
            keys = whole_key(path.groups, path.bins, path.said, cell)
        return ItemRow(
            tuple(path.labels),
            tuple(path.groups),
            sure + (None,) * (len(path.groups) - len(sure)),
            features,
            by.epoch if full else None,
            keys,
            full,
            round.full_chance if enforced else 1.0,
            round.rule_depth,
            settled=by.settled and full,
            whole=True,
        )

    def explain(self, round: Round) -> list[RuleDecision]:
        """What the rule says of each situation on its way."""
        path = round.path
        if not isinstance(path, LonePath) or path.by.alone is None:
            return []
        found = (path.by.alone.decide(way, key) for way, key in path.asked)
        return [decision for decision in found if decision is not None]
