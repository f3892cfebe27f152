"""What has been counted per item, in memory: rounds in, counts and from time to time a rule out.

All that it does follows from the rounds in their order, so that a log of rounds, read again, gives
the same counts, the same bins and the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopwise.checks import StopwiseError, fail, known_keys, known_version, whole_number
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
from stopwise.situations.transitions import Transitions

VERSION = 2
_FIELDS = ("version", "rounds", "base", "due", "settled", "counts", "ruled", "rows", "confidences")

_PROMISE = ("promise", "promise_ruled")


class ItemMemory:
    """Counts rounds in the order in which they ended.

    Args:
        stage_count: how many stages.
        first_rounds: after this many rounds bins are cut for the first time.
        whole: whether only full runs count, as whole rows; all numbers of rounds are then theirs.

    Attributes:
        rounds: counted so far, those of a fitted rule included.
        base: of them, those that a fitted rule brought.
        counts: under the present bins; None until the first are cut.
        ruled: the counts that the present rule is made from.
        settled: whether the bins are not cut again.
        promise: the counters of a promise of agreement, and `promise_ruled` those that the present
            rule is made from.

    >>> memory = ItemMemory(2, first_rounds=2)
    >>> row = ItemRow(("a", "a"), (0, 0), (None, None), full=True, chance=1.0)
    >>> memory.add(row), memory.add(row)               # the second time a rule is due
    (False, True)
    >>> memory.counts.rounds
    2
    """

    def __init__(self, stage_count: int, first_rounds: int, *, whole: bool = False) -> None:
        self._stages = stage_count
        self._whole = whole
        self._first = first_rounds
        self.rounds = 0
        self.base = 0
        self.counts: Transitions | None = None
        self.ruled: Transitions | None = None
        self.settled = False
        self._epoch: str | None = None
        self._rows: list[ItemRow] = []  # as long as bins may still be cut again
        self._due = first_rounds
        self.promise = [0] * len(PROMISE_NAMES)
        self.promise_ruled = [0] * len(PROMISE_NAMES)

    # ---- counting -----------------------------------------------------------------------------

    def add(self, row: ItemRow) -> bool:
        """Count a round; whether a new rule is to be made.

        Where the round says which bins were cut after it (a log that is read again), those are
        taken; where new bins are cut now, the round knows.
        """
        add_promise(self.promise, 0, row)
        if self._whole and not row.full:
            return False
        if self.settled and row.epoch != self._epoch and not row.groups:
            return False  # kept by the bins of another rule
        self.rounds += 1
        if self.counts is not None:
            if row.epoch == self._epoch:
                self.counts.add(row.keys, full=row.full and not self._whole)
            else:
                self.counts.merge(count_rows([row], self.counts.binning))
        if not self.settled:
            self._rows.append(row)
        if row.cut is not None and not self.settled:
            self._cut(Binning.from_dict(row.cut))
        elif self.rounds < self._due:
            return self._price_again()
        elif not self.settled and (
            self.counts is None or is_cut_between(self.rounds - 1, self.rounds, self._first)
        ):
            self._cut(cut(self._rows, self._stages, whole=self._whole))
            assert self.counts is not None
            row.cut = self.counts.binning.to_dict()
        self._rule()
        return True

    def _price_again(self) -> bool:
        """Whether the promise stands so differently that the rule is due to be priced again.

        With the counts of a fitted rule, that is long before these have grown by much.
        """
        if self.ruled is None or self.promise[0] < next_price(self.promise_ruled[0]):
            return False
        self.promise_ruled = list(self.promise)
        return True

    def _cut(self, binning: Binning) -> None:
        """Count all rounds so far by new bins."""
        self.counts, self._epoch = count_rows(self._rows, binning), binning.epoch
        if self.rounds >= settles_at(self._first):
            self._rows, self.settled = [], True

    def _rule(self) -> None:
        """From here on the rule is that of all counts so far."""
        assert self.counts is not None
        self.ruled = copy_of(self.counts)
        self.promise_ruled = list(self.promise)
        self._due = self.rounds + rounds_until_next(self.rounds, self._first, settled=self.settled)

    def start_from(self, counts: Transitions) -> None:
        """Begin with the counts of a rule that was fitted elsewhere; its bins are settled."""
        self.counts, self._epoch = copy_of(counts), counts.binning.epoch
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
        if "binning" in form:  # the counts alone, as earlier snapshots had them
            self.start_from(Transitions.from_dict(form))
            self.base = 0
            return
        known_keys("items", form, (*_FIELDS, *_PROMISE))
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
        self.counts, self.ruled, self.settled, self._rows = counts, ruled, form["settled"], read
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
