"""What the books say when they are asked: the next depth, the best stage, why, and the figures."""

from __future__ import annotations

from dataclasses import replace

from stopwise.evidence import Evidence
from stopwise.live.bookkeeping.bookkeeper import Bookkeeper
from stopwise.live.bookkeeping.funding import funded
from stopwise.live.choosing.readings import certain_stage, stage_by
from stopwise.live.watching.explain import Explanation, explain
from stopwise.live.watching.report import LiveReport, report_of


class Knowledge:
    """Answers questions from what is counted, under the lock; nothing of it changes a count.

    Args:
        books: what is asked.
        label: the policy, as it is shown.
    """

    def __init__(self, books: Bookkeeper, label: str) -> None:
        self._books = books
        self._settings = books.settings
        self._label = label

    @property
    def rounds(self) -> int:
        """How many rounds have ended, in all segments and by all who share the store."""
        with self._books.ledger.lock:
            self._books.settle()
            return self._books.counters.pool.rounds

    def evidence(self, segment: str) -> Evidence:
        """The exact counts of a segment."""
        with self._books.ledger.lock:
            self._books.settle()
            return self._books.counters.peek(segment).evidence()

    def probabilities(self, segment: str) -> list[float]:
        """The distribution of the next depth, with all that `begin` takes into account."""
        return funded(self._books.ledger, lambda: self._probabilities(segment))

    def _probabilities(self, segment: str) -> list[float]:
        ledger = self._books.ledger
        with ledger.lock:
            self._books.settle()
            deepest = ledger.budgets.deepest(ledger.prices.reach, ledger.spent)
            if self._settings.mode != "enforce":
                run_to = min(self._settings.run_to, deepest)
                return [float(stage == run_to) for stage in range(self._books.stage_count)]
            return self._advice(segment, deepest)

    def advice(self, segment: str) -> list[float]:
        """The distribution that enforcing would draw the next depth from, in any mode."""
        with self._books.ledger.lock:
            self._books.settle()
            return self._advice(segment, self._books.stage_count - 1)

    def _advice(self, segment: str, deepest: int) -> list[float]:
        ledger, counters = self._books.ledger, self._books.counters
        tally = counters.peek(segment)
        if tally.fast is not None and not tally.fast.sure:
            tally.renew_fast()
        number = counters.others + counters.begun + 1
        p = ledger.chooser.distribution(counters, tally, number, ledger.prices, deepest)
        return self._books.opener.with_full_runs(p, number)

    def best_stage(self, segment: str, reading: str) -> int | None:
        """Where to stop for good, by one reading of the evidence."""
        ledger = self._books.ledger
        with ledger.lock:
            self._books.settle()
            counters, costs = self._books.counters, ledger.prices.costs
            tally = counters.peek(segment)
            if reading == "certain":  # nothing lent by other segments, and no weights
                return certain_stage(tally.evidence(), costs)
            return stage_by(reading, counters.evidence_for(tally), costs)

    def explanation(self, segment: str) -> Explanation:
        """Why the next round of a segment goes as deep as it does."""
        ledger = self._books.ledger
        with ledger.lock:
            self._books.settle()
            counters, costs = self._books.counters, ledger.prices.costs
            evidence = counters.evidence_for(counters.peek(segment))
            return explain(
                segment,
                self._settings.stages,
                self._label,
                self._advice(segment, self._books.stage_count - 1),
                stage_by("weak-dominance", evidence, costs),
                evidence,
                costs,
            )

    def report(self, segment: str | None) -> LiveReport:
        """Counts of a segment, or of all together."""
        ledger = self._books.ledger
        with ledger.lock:
            self._books.settle()
            counters = self._books.counters
            tally = counters.pool if segment is None else counters.peek(segment)
            prices, unrecorded = ledger.prices, ledger.keeper.unrecorded
            last, through = prices.per_stage[-1], prices.cumulative[-1]
            settings = self._settings
            report = report_of(
                tally,
                settings.stages,
                settings.promise,
                last,
                through,
                settings.calls,
                tuple(prices.costs.in_mistakes.tolist()),
            )
            if segment is not None or not unrecorded:
                return report
            # Money is counted when it is spent, whether or not the round could be kept.
            return replace(
                report,
                spent=ledger.spent,
                unrecorded=unrecorded,
                saved_alone=(report.rounds + unrecorded) * last - ledger.spent,
                saved_through=(report.rounds + unrecorded) * through - ledger.spent,
            )
