"""Where each counter of a segment stands in one flat list, and what it is called in a store."""

from __future__ import annotations

from functools import lru_cache

from stopwise.live.items.figures import NAMES as ITEMS
from stopwise.live.items.figures import SUMS
from stopwise.live.items.promise import PROMISE_NAMES
from stopwise.live.pairs import pair_count, pair_list

_SINGLES = (
    "rounds", "switched", "switched_twice", "abandoned", "spent",
    "advised_rounds", "advised_cost", "advised_paid", "advised_same", "advised_known",
    "recent_switched", "recent_switched_twice",
)  # fmt: skip
_PER_PAIR = ("seen", "disagreed", "recent_seen", "recent_disagreed")
# How often stopping at one stage calls another beyond it, and calls that say nothing of that. They
# stand at the end, for only cascades that go on after an abstention have them.
_BEYOND, _UNCOUNTED = "beyond", "uncounted"
_PER_STAGE = (
    "lengths", "stops", "failures", "abstained", "cost_sums", "cost_counts", "advised",
    "skipped",
)  # fmt: skip
_REAL = ("spent", "advised_cost", "advised_paid", "cost_sums", *SUMS)
RECENT = "recent_"
"""How the names of discounted counters begin."""


class Layout:
    """The places of the counters of a cascade.

    Attributes:
        rounds, spent, ...: the place of each single counter.
        seen, lengths, ...: the place of the first of the counters of that kind.
        names: the name of every counter, in order.
        real: whether a counter may be a fraction, in order.

    >>> layout_of(3).names[layout_of(3).seen + 1]
    'seen 0-2'
    """

    def __init__(self, stage_count: int) -> None:
        self.pairs = pair_count(stage_count)
        self.stages = stage_count
        self.rounds, self.switched, self.switched_twice, self.abandoned, self.spent = range(5)
        self.advised_rounds, self.advised_cost, self.advised_paid = range(5, 8)
        self.advised_same, self.advised_known = 8, 9
        self.recent_switched, self.recent_switched_twice = 10, 11
        start = len(_SINGLES)
        self.seen, self.disagreed, self.recent_seen, self.recent_disagreed = (
            start + at * self.pairs for at in range(len(_PER_PAIR))
        )
        start += len(_PER_PAIR) * self.pairs
        (
            self.lengths, self.stops, self.failures, self.abstained, self.cost_sums,
            self.cost_counts, self.advised, self.skipped,
        ) = (start + at * stage_count for at in range(len(_PER_STAGE)))  # fmt: skip
        self.items = start + len(_PER_STAGE) * stage_count
        self.promise = self.items + len(ITEMS)
        self.beyond = self.promise + len(PROMISE_NAMES)
        self.uncounted = self.beyond + self.pairs
        self.size = self.uncounted + stage_count
        names = list(_SINGLES)
        names += [f"{name} {i}-{j}" for name in _PER_PAIR for i, j in pair_list(stage_count)]
        names += [f"{name} {stage}" for name in _PER_STAGE for stage in range(stage_count)]
        names += ITEMS
        names += PROMISE_NAMES
        names += [f"{_BEYOND} {i}-{j}" for i, j in pair_list(stage_count)]
        names += [f"{_UNCOUNTED} {stage}" for stage in range(stage_count)]
        self.names = tuple(names)
        self.real = tuple(
            name.split(" ")[0] in _REAL or name.startswith(RECENT) for name in self.names
        )
        self.places = {name: at for at, name in enumerate(self.names)}


@lru_cache(maxsize=64)
def layout_of(stage_count: int) -> Layout:
    """The layout for a number of stages."""
    return Layout(stage_count)
