"""The situations that a live round goes through, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stopwise.evidence import ABSTAINED
from stopwise.live.items.features import Finder, cell_finder
from stopwise.live.items.row import LONGEST_LABEL, label_of
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.situation import StoppingRule
from stopwise.situations.binning import MISSING_BIN, OTHER_LABEL, Binning, written
from stopwise.situations.keys import encode, final_key, partition_code

Differ = Callable[[int, int], bool]
"""Whether the outputs of two stages, given by number, differ."""


class Deciding(NamedTuple):
    """What rounds are decided by: replaced as a whole, and one round keeps to one of them.

    Attributes:
        rule: None before there is one.
        binning: the bins that its situations are made by; None before the first are cut.
        epoch: the name of the binning.
        cell_of: the cell of an item by its features; None where there are none.
        settled: whether the bins are not cut again.
        regressions: a rule that looks at the numbers themselves, in the place of `rule`.
        alone: a rule of stages that are called alone, in its place.
    """

    rule: StoppingRule | None = None
    binning: Binning | None = None
    epoch: str | None = None
    cell_of: Finder | None = None
    settled: bool = False
    regressions: LogisticRule | None = None
    alone: AloneRule | None = None

    @classmethod
    def by(
        cls,
        rule: StoppingRule | None,
        binning: Binning,
        *,
        settled: bool,
        regressions: LogisticRule | None = None,
        alone: AloneRule | None = None,
    ) -> Deciding:
        """From now on by this rule."""
        cell_of = cell_finder(binning)
        return cls(rule, binning, binning.epoch, cell_of, settled, regressions, alone)

    @property
    def decides(self) -> bool:
        """Whether there is anything yet to decide by."""
        return not (self.rule is None and self.regressions is None and self.alone is None)


def stop_probability(stop: int | None, last: int, chance: float, *, full_run: bool) -> float:
    """With which probability a round goes as deep as it does, given its outputs.

    Args:
        stop: where the rule stops it, or would.
        last: the last stage, where full runs end.
        chance: the probability of a full run.
        full_run: whether it is one.

    >>> stop_probability(0, 2, 0.25, full_run=False), stop_probability(2, 2, 0.25, full_run=True)
    (0.75, 1.0)
    """
    if stop is None or stop >= last:
        return 1.0
    return chance if full_run else 1 - chance


class ItemPath:
    """What is known of one item so far.

    >>> binning = Binning(edges=((0.5,), ()), labels=(("no", "yes"), ("no", "yes")))
    >>> path = ItemPath(Deciding.by(None, binning, settled=True))
    >>> key = path.extend("yes", 0.9, 0, None)
    >>> from stopwise.situations.keys import decode
    >>> decode(key)
    Situation(partition=(0,), confidence=1, label=1, previous=15, cell=0)
    """

    __slots__ = (
        "_torn", "bins", "by", "groups", "guarded", "keys", "labels", "looked", "promised",
    )  # fmt: skip

    def __init__(self, by: Deciding) -> None:
        self.by = by
        self.groups: list[int] = []
        self.labels: list[str | None] = []
        self.bins: list[int] = []
        self.keys: list[int] = []
        self.promised: bool | None = None  # under a promise, whether the rule may stop it early
        self.looked = False  # whether it runs to the end all the same, to look
        self.guarded = False  # whether the guard counts it among the open rounds
        self._torn = False

    def follow(self) -> bool:
        """Begin to follow a round; False where it is to be followed from its first stage again.

        That is so where an interrupt cut the last time in two: `followed` was not come to.
        """
        whole, self._torn = not self._torn, True
        if not whole:
            self.clear()
        return whole

    def followed(self) -> None:
        """All outputs so far have been taken."""
        self._torn = False

    def clear(self) -> None:
        """Forget all outputs."""
        self.groups, self.labels, self.bins, self.keys = [], [], [], []

    def extend(
        self, output: Any, confidence: float | None, cell: int, differ: Differ | None
    ) -> int:
        """Take the next stage's output; its situation, or -1 while there are no bins."""
        binning = self.by.binning
        stage, label, text = self.take(output, differ)
        if binning is None:
            return -1
        sure = binning.confidence_bin(stage, confidence)
        partition = partition_code(tuple(self.groups))
        if stage == binning.stage_count - 1:
            key = final_key(partition, sure)
        else:
            said = binning.label_bin(stage, label)
            if said == OTHER_LABEL and label is not text:
                said = binning.label_bin(stage, text)
            previous = self.bins[-1] if self.bins else MISSING_BIN
            key = encode(partition, sure, said, previous, cell)
        self.bins.append(sure)
        self.keys.append(key)
        return key

    def take(self, output: Any, differ: Differ | None) -> tuple[int, str | None, str | None]:
        """Note the next stage's output; its stage, its label, and the text of the output."""
        groups = self.groups
        stage = len(groups)
        text = None if output is ABSTAINED else written(output)
        label = text if text is None or len(text) <= LONGEST_LABEL else label_of(text)
        group = -1 if label is None else self._group(stage, label, differ)
        if group >= 0 and group in groups:
            label = self.labels[groups.index(group)]  # what agrees says the same
        groups.append(group)
        self.labels.append(label)
        return stage, label, text

    def _group(self, stage: int, label: str, differ: Differ | None) -> int:
        """The group of equal outputs that the newest one belongs to."""
        for earlier, group in enumerate(self.groups):
            if group >= 0:
                if differ is None:
                    same = self.labels[earlier] == label
                else:
                    same = not differ(earlier, stage)
                if same:
                    return group
        return max(self.groups, default=-1) + 1
