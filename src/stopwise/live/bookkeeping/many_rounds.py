"""Many rounds at once: begun together, and counted from columns of outputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stopwise.costs import FloatArray
from stopwise.live.bookkeeping.bookkeeper import Bookkeeper
from stopwise.live.counters.many import count_columns
from stopwise.live.interrupts import Counted
from stopwise.live.round import Round
from stopwise.problem import IntArray


class BegunRounds(NamedTuple):
    """Rounds of one segment that were begun together.

    Attributes:
        segment: whose evidence they use and add to.
        sequence: of the first of them among the rounds of this learner; the others follow.
        number: of the first of them among all rounds.
        depths: of every round.
        distribution: that the depths were drawn from.
    """

    segment: str
    sequence: int
    number: int
    depths: IntArray
    distribution: list[float]


class ManyRounds:
    """Begins and counts many rounds at once, where there is nothing about them but outputs.

    Args:
        books: whose rounds.

    >>> from stopwise.live import Learner
    >>> many = Learner([0, 1], "fixed", mistake_cost=4).many
    >>> many.possible
    True
    >>> begun = many.begin(3, "")
    >>> many.end(begun, np.array([[0, 0], [0, 1], [0, 0]])).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, books: Bookkeeper) -> None:
        self._books = books

    @property
    def possible(self) -> bool:
        """Whether rounds can be counted at once: nothing about them but outputs and depth."""
        books, ledger, settings = self._books, self._books.ledger, self._books.settings
        return (
            books.sole
            and not (books.watched or books.heard)
            and settings.mode == "enforce"
            and settings.half_life is None
            and ledger.direct
            and ledger.budgets.item_budget is None
        )

    def begin(self, size: int, segment: str) -> BegunRounds:
        """Begin rounds together: their depths are drawn from one distribution."""
        ledger = self._books.ledger
        with ledger.lock:
            self._books.settle()
            counters = ledger.counters
            tally = counters.tally(counters.place(segment))
            if tally.fast is not None and not tally.fast.sure:
                tally.renew_fast()
            first = counters.begun + 1
            number = counters.others + first
            depths, p = ledger.chooser.draw_many(
                counters, tally, number, first, ledger.prices, self._books.stage_count - 1, size
            )
            counters.begun = first + size - 1
            return BegunRounds(segment, first, number, depths, p)

    def one(self, begun: BegunRounds, at: int) -> Round:
        """One of them as an object."""
        depth = int(begun.depths[at])
        return self._books.ledger.round_class(
            self._books,
            begun.sequence + at,
            begun.number + at,
            begun.segment,
            depth,
            begun.distribution[depth],
        )

    def end(self, begun: BegunRounds, codes: IntArray, mark: Counted | None = None) -> FloatArray:
        """Count rounds that all went to their depths; return what each cost.

        Args:
            begun: what `begin` gave.
            codes: a row for each round, a column for each stage: equal where outputs are, else -1.
            mark: its attribute `counted` becomes True when they are, in the same step.
        """
        ledger = self._books.ledger
        delta = count_columns(self._books.stage_count, begun.depths, codes)
        costs = np.asarray(ledger.prices.cumulative)[begun.depths]
        delta.values[delta.layout.spent] = float(costs.sum())
        with ledger.lock:
            self._books.settle()
            ledger.counters.add(ledger.counters.place(begun.segment), delta, mark)
        return costs
