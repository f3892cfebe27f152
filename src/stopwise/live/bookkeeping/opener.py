"""Opens rounds: from what has been counted to the depth of the next round."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from stopwise.checks import fail
from stopwise.live.bookkeeping.ledger import Ledger
from stopwise.live.bookkeeping.lone_calls import LoneCalls
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.counters.distributions.carrying import has_clock
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.round import Books, Round


class Opener:
    """Opens rounds.

    Args:
        books: who ends the rounds.
        ledger: what has been counted.
        items: what decides per item, if the policy does.
        settle: counts all rounds that have ended or were dropped.
    """

    __slots__ = (
        "_books", "_clock", "_counted", "_enforced", "_items", "_last", "_ledger", "_left",
        "_limited", "_lone", "_plain", "_run_to", "_settle",
    )  # fmt: skip

    def __init__(
        self, books: Books, ledger: Ledger, items: ItemDecider | None, settle: Callable[[], None]
    ) -> None:
        settings, budgets, cumulative = ledger.settings, ledger.budgets, ledger.prices.reach
        self._books = books
        self._ledger = ledger
        self._items = items
        self._settle = settle
        self._last = len(cumulative) - 1
        self._enforced = settings.mode == "enforce"
        self._limited = budgets.run_budget is not None
        # What is left of that budget by these counters, rounds on their way into them left out.
        self._counted: list[Any] | None = None
        self._left = 0.0
        limit = budgets.item_limit(cumulative)
        self._run_to = settings.run_to if limit is None else min(settings.run_to, limit)
        # The short way: where the policy's distribution is carried along, and nothing but the draw
        # is between it and the round. `_plain`: moreover no budget or mode is to be seen to.
        ledger.direct = (
            items is None
            and not settings.alone
            and limit != -1
            and not (self._limited and ledger.keeper.queue is not None)
        )
        self._lone = LoneCalls(ledger) if settings.alone else None
        self._plain = self._enforced and not self._limited
        self._clock = has_clock(ledger.chooser.policy)

    def begin(self, segment: str = "", features: Mapping[str, Any] | None = None) -> Round:
        """Open a round: its depth is drawn now, from all rounds that have ended so far.

        Args:
            segment: whose evidence it uses and adds to.
            features: what is known of the item, by name, for a policy that decides per item.
        """
        if features is not None:
            return self._begin_knowing(segment, features)
        ledger = self._ledger
        with ledger.lock:
            if ledger.dropped:
                self._settle()
            counters = ledger.counters
            try:
                fast = counters.tallies[segment].fast
            except (KeyError, TypeError):
                return self._begin_with_care(segment)
            if fast is None or not ledger.direct:
                return self._begin_with_care(segment)
            current = fast.current
            if current is None or len(counters.pending) > counters.free:
                if not counters.follow():
                    ledger.add_up()
                if not fast.sure:
                    return self._begin_with_care(segment)
                current = fast.current
            sequence = counters.begun + 1
            number = counters.others + sequence
            if self._limited and not self._has_room(ledger, counters):
                return self._begin_with_care(segment)
            if current is None or (self._clock and number > fast.until):
                current = fast.renew(number)
            p, sums, total = current
            counters.begun = sequence
            draws = ledger.chooser.draws
            try:
                u = draws.block[sequence - draws.first]
            except IndexError:
                u = self._turn(sequence)
            depth = bisect_right(sums, u * total)
            if depth > self._last:
                depth = self._last
            if not self._plain:
                return self._limited_round(sequence, number, segment, depth, p[depth])
            kind = ledger.round_class
            return kind(self._books, sequence, number, segment, depth, p[depth])

    def _begin_knowing(self, segment: str, features: Mapping[str, Any]) -> Round:
        """Open a round on an item of which something is known beforehand."""
        if self._items is None:
            policy = self._ledger.chooser.policy.label()
            raise fail("policy", policy, "one that decides per item, where features are given")
        round = self.begin(segment)
        try:
            self._items.know(round, features)
        except BaseException:
            round.abandon()
            raise
        return round

    def _turn(self, sequence: int) -> float:
        """The random number of a round, made with many others; rounds that wait are counted."""
        self._ledger.add_up()
        return self._ledger.chooser.draws.uniform(sequence)

    def _limited_round(
        self, sequence: int, number: int, segment: str, depth: int, probability: float
    ) -> Round:
        """The round, where a budget or a mode is to be seen to."""
        ledger = self._ledger
        if self._enforced:
            round = ledger.round_class(self._books, sequence, number, segment, depth, probability)
        else:
            round = ledger.round_class(self._books, sequence, number, segment, self._run_to, 1.0)
            round.advised, round.advised_probability = depth, probability
        if self._limited:
            ledger.budgets.reserve(round, ledger.prices.now.cumulative[round.depth])
        return round

    def _has_room(self, ledger: Ledger, counters: SegmentCounters) -> bool:
        """Whether what is left of the budget of the run would pay any round."""
        budgets, most, values = (
            ledger.budgets,
            ledger.prices.now.cumulative[-1],
            counters.pool.values,
        )
        if values is not self._counted and budgets.run_budget is not None:
            self._left = budgets.run_budget - counters.pool.spent - ledger.keeper.unrecorded_cost
            self._counted = values
        if most + budgets.held + counters.pending_cost <= self._left:
            return True  # most often there is plenty
        return budgets.has(most, ledger.spent)

    def _begin_with_care(self, segment: str) -> Round:
        """The same with lent evidence, another policy, rules per item, or a budget at its end."""
        self._settle()
        ledger, settings = self._ledger, self._ledger.settings
        counters = ledger.counters
        segment = counters.place(segment)
        tally = counters.tally(segment)
        sequence = counters.begun + 1
        number = counters.others + sequence
        if tally.fast is not None and not tally.fast.sure:
            tally.renew_fast()
        # Called alone, the stages of shadow and advise are still called one after the other.
        # Per item a round may call any of them, so all must be paid for beforehand.
        sole = self._enforced and self._items is None
        bills = ledger.prices.reach if sole else ledger.prices.cumulative
        deepest = ledger.budgets.deepest(bills, ledger.spent)
        run_to = deepest if self._enforced else min(settings.run_to, deepest)
        if self._items is not None:
            # Decided after each stage: it may go as deep as can be paid.
            counters.begun = sequence
            round = ledger.round_class(self._books, sequence, number, segment, run_to, 1.0)
            round.unusual |= 1
            uniform = ledger.chooser.draws.uniform(sequence)
            rate = settings.full_run_rate
            if self._lone is not None:
                number += self._items.base
                rate = self._lone.full_chance(number) if deepest == self._last else 0.0
            self._items.begin(round, uniform, rate)
            if self._enforced:
                if self._lone is not None:
                    self._books.stops(round)  # which jumps to the first stage that it wants
            else:
                round.per_item = False
                round.advised, round.advised_probability = run_to, 1.0
        else:
            skips = 0
            if self._lone is None:
                depth, probability = ledger.chooser.draw(
                    counters, tally, number, sequence, ledger.prices, deepest
                )
            else:
                depth, probability, skips = self._lone.draw(tally, number, sequence, deepest)
            counters.begun = sequence
            if self._enforced:
                round = ledger.round_class(
                    self._books, sequence, number, segment, depth, probability
                )
                round.skip_to(depth if skips else 0)
            else:
                round = ledger.round_class(self._books, sequence, number, segment, run_to, 1.0)
                round.advised, round.advised_probability = depth, probability
                round.advised_skipped = skips
        if ledger.budgets.limited:
            cost = ledger.prices.of_calls(None, round.depth + 1, round.skipped)
            ledger.budgets.reserve(round, cost)
        return round

    # Users know it as this, which is what Python calls it where a keyword is misspelt.
    begin.__qualname__ = "Learner.begin"

    def with_full_runs(self, p: list[float], number: int) -> list[float]:
        """The distribution of the depth of a round, where full runs are drawn apart from it."""
        return p if self._lone is None else self._lone.mixed(p, number)
