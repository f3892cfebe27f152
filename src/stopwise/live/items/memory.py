"""What has been counted per item, in memory: rounds in, counts and from time to time a rule out.

All that it does follows from the rounds in their order, so that a log of rounds, read again, gives
the same counts, the same bins and the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopwise.checks import StopwiseError, fail, known_names, known_version, whole_number
from stopwise.live.interrupts import Counted
from stopwise.live.items.counting import (
    copy_of,
    count_rows,
    cut,
    is_cut_between,
    settles_at,
)
from stopwise.live.items.promise import PROMISE_NAMES, add_promise, next_price
from stopwise.live.items.row import ItemRow
from stopwise.policies.per_item.learning import rounds_until_next
from stopwise.situations.binning import Binning
from stopwise.situations.transitions import Change, Transitions

VERSION = 2
_FIELDS = ("version", "rounds", "base", "due", "settled", "counts", "ruled", "rows", "confidences")

_PROMISE = ("promise", "promise_ruled")


class ItemMemory:
    """Counts rounds in the order in which they ended.

    Args:
        stage_count: how many stages.
        first_rounds: after this many rounds bins are cut for the first time.
        whole: whether only full runs count, as whole rows; all numbers of rounds are then theirs.
        promised: whether rules keep a promise, whose price follows the rounds.

    Attributes:
        rounds: counted so far, those of a fitted rule included.
        base: of them, those that a fitted rule brought.
        counts: under the present bins; None until the first are cut.
        ruled: the counts that the present rule is made from.
        settled: whether the bins are not cut again.
        rule_due: whether a new rule is to be made from `ruled`; who makes it says so here.
        promise: the counters of a promise of agreement, and `promise_ruled` those that the present
            rule is made from.

    >>> memory = ItemMemory(2, first_rounds=2)
    >>> row = ItemRow(("a", "a"), (0, 0), (None, None), full=True, chance=1.0)
    >>> memory.add(row)
    >>> memory.add(row)
    >>> memory.rule_due
    True
    >>> memory.counts.rounds
    2
    """

    def __init__(
        self, stage_count: int, first_rounds: int, *, whole: bool = False, promised: bool = False
    ) -> None:
        self._stages = stage_count
        self._whole = whole
        self._steady = whole or promised
        self._first = first_rounds
        self.rounds = 0
        self.base = 0
        self._counts: Transitions | None = None
        self._changes: list[Change] = []  # of `counts`, as long as they may not all be made
        self.rule_due = False
        self.ruled: Transitions | None = None
        self.settled = False
        self._epoch: str | None = None
        self._rows: list[ItemRow] = []  # as long as bins may still be cut again
        self._due = first_rounds
        self.promise = [0] * len(PROMISE_NAMES)
        self.promise_ruled = [0] * len(PROMISE_NAMES)

    # ---- counting -----------------------------------------------------------------------------

    @property
    def counts(self) -> Transitions | None:
        """The counts under the present bins; None until the first are cut."""
        for counts, key, number in self._changes:
            counts[key] = number  # made twice, after an interrupt, it is the same
        self._changes = []
        return self._counts

    def add(self, row: ItemRow, mark: Counted | None = None) -> None:
        """Count a round, all of it or nothing, whatever is raised.

        Where the round says which bins were cut after it (a log that is read again), those are
        taken; where new bins are cut now, the round knows.

        Args:
            row: what the round showed.
            mark: its attribute `counted` becomes True when it is counted, in the same step.
        """
        after = ItemMemory.__new__(ItemMemory)
        after.__dict__ = {**self.__dict__, "_counts": self.counts, "promise": [*self.promise]}
        after._count(row)
        # Signal handlers run after calls: from here to the mark, all of it is done, or none.
        self.__dict__ = after.__dict__
        if mark is not None:
            mark.counted = True

    def _count(self, row: ItemRow) -> None:
        """Count a round into a memory that shares its lists and counts with another."""
        add_promise(self.promise, 0, row)
        if self._whole and not row.full:
            return
        if self.settled and row.epoch != self._epoch and not row.groups:
            return  # kept by the bins of another rule
        self.rounds += 1
        cuts = row.cut is not None and not self.settled
        counts, quiet = self._counts, self.rounds < self._due and not cuts
        if counts is not None:
            known, full = row.epoch == self._epoch, row.full and not self._whole
            if known and quiet:
                self._changes = counts.changes(row.keys, full=full)
            else:
                self._counts = counts = copy_of(counts)
                if known:
                    counts.add(row.keys, full=full)
                else:
                    counts.merge(count_rows([row], counts.binning))
        if not self.settled:
            self._rows = [*self._rows, row]
        if cuts:
            assert row.cut is not None
            self._cut(Binning.from_dict(row.cut))
        elif quiet:
            self._price_again()
            return
        elif not self.settled and (
            counts is None or is_cut_between(self.rounds - 1, self.rounds, self._first)
        ):
            binning = cut(self._rows, self._stages, whole=self._whole)
            self._cut(binning)
            row.cut = binning.to_dict()
        self._rule()

    def _price_again(self) -> None:
        """Make the rule again where the promise stands so differently that its price is due.

        With the counts of a fitted rule, that is long before these have grown by much.
        """
        if self.ruled is not None and self.promise[0] >= next_price(self.promise_ruled[0]):
            self.promise_ruled = list(self.promise)
            self.rule_due = True

    def _cut(self, binning: Binning) -> None:
        """Count all rounds so far by new bins."""
        self._counts, self._epoch = count_rows(self._rows, binning), binning.epoch
        if self.rounds >= settles_at(self._first):
            self._rows, self.settled = [], True

    def _rule(self) -> None:
        """From here on the rule is that of all counts so far."""
        assert self._counts is not None
        self.ruled, self.rule_due = copy_of(self._counts), True
        self.promise_ruled = list(self.promise)
        self._due = self.rounds + rounds_until_next(
            self.rounds, self._first, settled=self.settled, steady=self._steady
        )

    def start_from(self, counts: Transitions) -> None:
        """Begin with the counts of a rule that was fitted elsewhere; its bins are settled."""
        self._changes = []
        self._counts, self._epoch = copy_of(counts), counts.binning.epoch
        self._rows, self.settled = [], True
        self.rounds = self.base = counts.rounds
        self._rule()

    def fits(self, counts: Transitions) -> bool:
        """Whether counts of another machine can be added."""
        return self.settled and self._epoch == counts.binning.epoch

    def check_merge(self, counts: Transitions) -> None:
        """Refuse counts that cannot be added: of other bins, or while bins are still cut."""
        if self.counts is None and not self._rows:
            return
        if not self.fits(counts):
            raise StopwiseError(
                f"transitions: got counts of the binning {counts.binning.epoch}, but need those of"
                f" the settled binning here ({self._epoch if self.settled else 'none yet'})"
            )

    def merge(self, counts: Transitions) -> None:
        """Add what another machine counted by the same bins, and make the rule again.

        Without rounds of its own, it begins with them.
        """
        self.check_merge(counts)
        if self.counts is None:
            self.start_from(counts)
            return
        self.counts.merge(counts)
        self.rounds += counts.rounds
        self.base += counts.rounds
        self._rule()

    # ---- keeping ------------------------------------------------------------------------------

    def to_form(self) -> dict[str, Any]:
        """What a snapshot holds."""
        return {
            "version": VERSION,
            "rounds": self.rounds,
            "base": self.base,
            "due": self._due,
            "settled": self.settled,
            "counts": None if self.counts is None else self.counts.to_dict(),
            "ruled": None if self.ruled is None else self.ruled.to_dict(),
            "rows": [row.to_form() for row in self._rows],
            "confidences": [list(row.confidences) for row in self._rows],
            "promise": self.promise,
            "promise_ruled": self.promise_ruled,
        }

    def restore(self, form: Mapping[str, Any]) -> None:
        """Go on exactly from what `to_form` gave."""
        if not isinstance(form, Mapping):
            raise fail("items", form, "an object")
        if "binning" in form:  # the counts alone, as earlier snapshots had them
            self.start_from(Transitions.from_dict(form))
            self.base = 0
            return
        known_names("items", form, (*_FIELDS, *_PROMISE))
        known_version(form, VERSION, needed=True)
        for name in _FIELDS:
            if name not in form:
                raise StopwiseError(f"items: the field {name!r} is missing")
        counts, ruled = (
            None if form[name] is None else Transitions.from_dict(form[name])
            for name in ("counts", "ruled")
        )
        if not isinstance(form["settled"], bool):
            raise fail("settled", form["settled"], "true or false")
        rows, sure = form["rows"], form["confidences"]
        if not isinstance(rows, list) or not isinstance(sure, list) or len(rows) != len(sure):
            raise fail("rows", rows, "a list of rounds, with the confidences of each")
        read = [
            ItemRow.from_form(row, len(given), given) for row, given in zip(rows, sure, strict=True)
        ]
        self.rounds, self.base, self._due = (
            whole_number(name, form[name], least=0) for name in ("rounds", "base", "due")
        )
        self._counts, self.ruled, self.settled, self._rows = counts, ruled, form["settled"], read
        if counts is not None and counts.binning.whole != self._whole:
            raise fail(
                "items", "whole rows" if counts.binning.whole else "transitions",
                "counts of the same `calls`: stages called alone count whole rows",
            )  # fmt: skip
        self._epoch = None if counts is None else counts.binning.epoch
        self.promise, self.promise_ruled = (_counters(name, form.get(name)) for name in _PROMISE)


def _counters(name: str, values: Any) -> list[int]:
    """The counters of a promise; none where a snapshot is older than promises."""
    if values is None:
        return [0] * len(PROMISE_NAMES)
    if not isinstance(values, list) or len(values) != len(PROMISE_NAMES):
        raise fail(name, values, f"a list of {len(PROMISE_NAMES)} whole numbers")
    return [whole_number(name, value, least=0) for value in values]
