"""A promise of agreement kept live: counters in every store, and a guard that knows open rounds.

Whether the rule may stop a round early is settled when the round begins, and so is the coin that
makes it a *look*: a round that runs to the end all the same. What a look found is known only when
it has ended. Until then it is taken for one that found a difference; or, if that is less, all
rounds since the last moment without an open one are taken to differ. So the promise holds for
threads and batches too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stopwise.live.items.path import ItemPath
from stopwise.live.items.row import PROMISED, ItemRow
from stopwise.policies.per_item.agreement_guard import AgreementGuard, most_missed
from stopwise.policies.per_item.learning import rounds_until_next

PROMISE_NAMES = ("promise_rounds", *(f"promise_{event}" for event in PROMISED))
"""Counters: they add up over segments, machines and days, as all evidence does."""


def add_promise(values: list[Any], start: int, row: ItemRow) -> None:
    """Add one round to the counters of a promise, if there was one.

    Args:
        values: all counters; those of `PROMISE_NAMES` begin at `start`.
        row: what the round showed.

    >>> values = [0] * len(PROMISE_NAMES)
    >>> add_promise(values, 0, ItemRow(promised=("open", "look", "found")))
    >>> PROMISE_NAMES[3], values
    ('promise_found', [1, 1, 1, 1, 0])
    """
    if row.promised is None:
        return
    values[start] += 1
    for at, event in enumerate(PROMISED, start + 1):
        values[at] += event in row.promised


def standing(promise: AgreementGuard, counters: Sequence[int]) -> AgreementGuard:
    """A promise as it stands, by its counters.

    >>> standing(AgreementGuard(), [1000, 60, 5, 1, 0]).found
    1
    """
    rounds, _, _, found, cut = counters
    return replace(promise, rounds=rounds, found=found, cut=cut)


def next_price(rounds: int) -> int:
    """With how many rounds under the promise the rule is priced again, if it was at this many.

    >>> next_price(0), next_price(1000)
    (1, 1600)
    """
    return rounds + rounds_until_next(rounds, 0, settled=True)


class LiveGuard:
    """Says, when a round begins, whether the rule may stop it. The learner's lock is held.

    Args:
        promise: what was promised; its own counts are not used.

    >>> guard = LiveGuard(AgreementGuard(agree=0.9, level=0.9, look_rate=0.2))
    >>> guard.may_stop()                                # nothing is proven yet
    False
    >>> guard.read = lambda: (1000, 60, 5, 0, 0)        # counters as in `PROMISE_NAMES`
    >>> guard.may_stop()
    True
    """

    def __init__(self, promise: AgreementGuard) -> None:
        self.promise = promise
        self.read: Callable[[], Sequence[int]] = lambda: (0,) * len(PROMISE_NAMES)
        self._process = os.getpid()
        self._open = 0  # rounds that may stop early and have not ended
        self._looks = 0  # of them, those that run to the end
        self._base = 0  # found at the last moment without an open round
        self._early = 0  # rounds begun since that may stop early and are no looks

    def may_stop(self) -> bool:
        """Whether a round that begins now may be answered early without danger to the promise."""
        rounds, _, _, found, cut = self.read()
        promise = self.promise
        rate, alpha = promise.look_rate, 1 - promise.level
        if self._process != os.getpid():  # a child: the rounds of its parent end there
            self._process, self._open, self._looks = os.getpid(), 0, 0
        if not self._open:
            self._base, self._early = found, 0
        missed = most_missed(found + self._looks, rate, alpha)
        if self._open:
            missed = min(missed, most_missed(self._base, rate, alpha) + self._early + 1)
        return missed + cut <= (1 - promise.agree) * (rounds + 1) + 1e-6

    # Signal handlers run after calls: each of these is done, or not, and noted as well.

    def begun(self, path: ItemPath) -> None:
        """A round has begun that may stop early."""
        look = path.looked
        self._open += 1
        self._looks += look
        self._early += not look
        path.guarded = True

    def ended(self, path: ItemPath) -> None:
        """One of them has ended; heeded once."""
        guarded, path.guarded = path.guarded, False
        if guarded and self._open:
            self._open -= 1
            self._looks -= path.looked


@dataclass(frozen=True)
class PromiseFigures:
    """How a promise of agreement stands.

    Attributes:
        agree, level, look_rate: what was promised, and how often it is looked at.
        rounds: all rounds under it; in `open` of them the rule was allowed to stop early.
        looks: of those, the ones that ran to the end all the same; `found` of them showed that the
            rule would have given another answer.
        cut: rounds that a budget or a deadline kept from going as far as they should; they count
            as different.
        least_agreement: at least this share of the rounds has the answer of a full run, with the
            promised confidence at all times together.

    >>> print(PromiseFigures(0.95, 0.95, 0.1, 4000, 3000, 300, 8, 0, 0.96))
    promise: at least 95.0% agree (95% sure); shown so far: at least 96.0% of 4000 rounds, ...
    """

    agree: float
    level: float
    look_rate: float
    rounds: int
    open: int
    looks: int
    found: int
    cut: int
    least_agreement: float

    def __str__(self) -> str:
        return (
            f"promise: at least {self.agree:.1%} agree ({self.level:.0%} sure); shown so far: at"
            f" least {self.least_agreement:.1%} of {self.rounds} rounds, {self.found} differences"
            f" in {self.looks} looks"
        )


def figures_of_promise(
    values: Sequence[Any], start: int, promise: AgreementGuard
) -> PromiseFigures:
    """Read the counters.

    >>> found = figures_of_promise([1000, 60, 5, 1, 0], 0, AgreementGuard(0.9, 0.9, 0.2))
    >>> found.found, found.least_agreement
    (1, 0.974)
    """
    rounds, opened, looks, found, cut = (
        int(one) for one in values[start : start + len(PROMISE_NAMES)]
    )
    missed = most_missed(found, promise.look_rate, 1 - promise.level) + cut
    # No more can differ than were not sent to the end.
    missed = min(missed, max(opened - looks, 0) + cut)
    least = 1 - missed / rounds if rounds else 1.0
    return PromiseFigures(
        promise.agree, promise.level, promise.look_rate, rounds, opened, looks, found, cut, least
    )
