"""The situations that a live round goes through, told stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stopwise.evidence import ABSTAINED
from stopwise.situations.binning import MISSING_BIN, Binning, written
from stopwise.situations.keys import encode, final_key, partition_code

Differ = Callable[[int, int], bool]
"""Whether the outputs of two stages, given by number, differ."""


class ItemPath:
    """What is known of one item so far.

    >>> binning = Binning(edges=((0.5,), ()), labels=(("no", "yes"), ("no", "yes")))
    >>> path = ItemPath()
    >>> key = path.extend(binning, "yes", 0.9, 0, None)
    >>> from stopwise.situations.keys import decode
    >>> decode(key)
    Situation(partition=(0,), confidence=1, label=1, previous=15, cell=0)
    """

    __slots__ = ("bins", "groups", "keys", "texts")

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.texts: list[str | None] = []
        self.bins: list[int] = []
        self.keys: list[int] = []

    def extend(
        self,
        binning: Binning | None,
        output: Any,
        confidence: float | None,
        cell: int,
        differ: Differ | None,
    ) -> int:
        """Take the next stage's output; its situation, or -1 while there are no bins."""
        stage = len(self.groups)
        text = None if output is ABSTAINED else written(output)
        self.groups.append(self._group(stage, text, differ))
        self.texts.append(text)
        if binning is None:
            return -1
        sure = binning.confidence_bin(stage, confidence)
        partition = partition_code(tuple(self.groups))
        if stage == binning.stage_count - 1:
            key = final_key(partition)
        else:
            previous = self.bins[-1] if self.bins else MISSING_BIN
            key = encode(partition, sure, binning.label_bin(stage, text), previous, cell)
        self.bins.append(sure)
        self.keys.append(key)
        return key

    def _group(self, stage: int, text: str | None, differ: Differ | None) -> int:
        """The group of equal outputs that the newest one belongs to."""
        if text is None:
            return -1
        for earlier, group in enumerate(self.groups):
            if group >= 0:
                same = self.texts[earlier] == text if differ is None else not differ(earlier, stage)
                if same:
                    return group
        return max(self.groups, default=-1) + 1


def codes_of(
    path: Sequence[str | None], groups: Sequence[int], labels: dict[str, int], most: int
) -> list[int]:
    """The outputs of a round as codes of labels; equal outputs have equal codes.

    Labels beyond `most` share the codes that follow, one for each group of the round: which of them
    agree is kept, what they say is not.

    >>> labels = {}
    >>> codes_of(["a", "b", "a"], [0, 1, 0], labels, 1), labels
    ([0, 2, 0], {'a': 0})
    """
    known: dict[int, int] = {}
    codes = []
    for text, group in zip(path, groups, strict=True):
        if text is None:
            codes.append(-1)
            continue
        if group not in known:
            if text not in labels and len(labels) < most:
                labels[text] = len(labels)
            known[group] = labels.get(text, most + group)
        codes.append(known[group])
    return codes
