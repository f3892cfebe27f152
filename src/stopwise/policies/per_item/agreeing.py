"""A stream under a promise of agreement: the per-item rule, a price of differences, and the guard.

Between two makings of the rule, an item that the rule would stop is looked at with the guard's
chance, else stops if the guard lets it; all others go to the end as far as the rule sends them. The
price of a difference is the lowest that is expected to keep the guard open (`promised`), so that
the share that may differ is used where it saves most. A live cascade does the same, round by round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.costs import Costs
from stopwise.policies.per_item.agreement_guard import AgreementGuard
from stopwise.policies.per_item.learning import Learned, called
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.promised import promised_rule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations
from stopwise.situations.transitions import Transitions


@dataclass(frozen=True)
class AgreedStream:
    """What became of a stream.

    Attributes:
        depths: the stage that answered each round.
        looked: which rounds might have stopped early and ran to the end.
        guard: as it stands after the last round.
        price: of a difference, at the end; None before there is a rule.
    """

    depths: IntArray
    looked: NDArray[np.bool_]
    guard: AgreementGuard
    price: float | None


def agree_over(
    stages: tuple[str, ...],
    rows: Observations,
    costs: Costs,
    guard: AgreementGuard,
    rng: np.random.Generator,
) -> AgreedStream:
    """Run over complete rows as if live, learning as it goes; the guard counts every round.

    >>> rng = np.random.default_rng(1)
    >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 4000))
    >>> costs = Costs.from_stages([1, 5])
    >>> guard = AgreementGuard(agree=0.9, look_rate=0.1)
    >>> found = agree_over(("small", "large"), rows, costs, guard, rng)
    >>> differs = rows.codes[np.arange(8000), found.depths] != rows.codes[:, 1]
    >>> bool((found.depths == 0).mean() > 0.3), bool(differs.mean() <= 0.1)
    (True, True)
    """
    learned = Learned(_Promised(guard=guard), stages, costs, steady=True)
    last = rows.stage_count - 1
    depths = np.full(len(rows), last, dtype=np.int64)
    looked = np.zeros(len(rows), dtype=np.bool_)
    start = 0
    while start < len(rows):
        end = min(start + learned.until_next(), len(rows))
        part = rows.where(np.arange(start, end))
        wanted = np.full(len(part), last, dtype=np.int64)
        if learned.rule is not None and learned.counts is not None:
            wanted = learned.rule.depths_of(situations(part, learned.counts.binning))
        heads = rng.random(len(part)) < guard.look_rate
        differs = _differs(part, wanted)
        open_ = _through_the_guard(guard, wanted < last, heads, differs)
        open_ &= learned.rule is not None
        early = open_ & (wanted < last)
        looked[start:end] = early & heads
        depths[start:end] = np.where(early & ~heads, wanted, last)
        # A full run is one that went to the end whatever its outputs: by the coin, or because the
        # guard was shut, or because there was no rule yet.
        full = heads | ~open_
        learned.record(called(part, depths[start:end]), full)
        learned.refresh()
        start = end
    made = learned.rule
    price = made.costs.mistake_cost if isinstance(made, Rule) else None
    return AgreedStream(depths, looked, guard, price)


@dataclass(frozen=True)
class _Promised(PerItem):
    """Makes the rule that keeps a promise as it stands at that moment."""

    guard: AgreementGuard = field(default_factory=AgreementGuard)

    def rule(self, stages: tuple[str, ...], counts: Transitions, costs: Costs) -> Rule:
        return promised_rule(stages, counts, costs, self.guard)


def _differs(rows: Observations, depths: IntArray) -> NDArray[np.bool_]:
    """Whether the answer at a depth is not the last stage's; read by the guard for looks alone."""
    answers = rows.codes[np.arange(len(rows)), depths]
    return np.asarray(answers != rows.codes[:, -1])


def _through_the_guard(
    guard: AgreementGuard,
    wanted: NDArray[np.bool_],
    heads: NDArray[np.bool_],
    differs: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """In which rounds the guard was open; it counts them all.

    Only what is found changes the guard beside the passing of rounds, so it is asked once for each.
    """
    opened = np.zeros(len(wanted), dtype=np.bool_)
    begin, count = guard.rounds, len(wanted)
    found_at = np.flatnonzero(wanted & heads & differs).tolist()
    at = 0
    for event in [*found_at, count]:
        opens = max(guard.opens_at - begin - 1, 0)
        opened[max(at, opens) : event] = True
        if event < count and event >= opens:
            opened[event] = True
            guard.found += 1
        at = event + 1
        if event < count and event < opens:
            opened[event] = False
    guard.rounds = begin + count
    return opened
