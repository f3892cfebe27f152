"""All that a learner has learned: a tally for every segment, their sum, rounds begun."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stopwise.checks import StopwiseError, fail, known_keys, whole_number
from stopwise.evidence import Evidence
from stopwise.live.counters.carried import FastTs
from stopwise.live.counters.pairs import Added
from stopwise.live.counters.tally import Tally, checked_counters, real_evidence
from stopwise.live.record import RoundRecord
from stopwise.policies.base import Policy


class SegmentCounters:
    """The memory of a learner.

    Whatever changes several tallies at once (a segment and the sum of all) is worked out first and
    then noted as one list of replacements: an interrupt at any moment leaves either all old values
    or a list from which `settle` goes on.

    Args:
        count: how many stages.
        discount: see `Tally`.
        strength: how many rounds the other segments' evidence may count for in one segment.
        recorder: a policy that counts rounds in its own way, or None.
        fast: makes the carried distribution of a segment, or None where the policy has none.
    """

    __slots__ = (
        "_fast", "_replacements", "begun", "discount", "order", "others", "pending", "pool",
        "recorder", "stage_count", "strength", "tallies",
    )  # fmt: skip

    def __init__(
        self,
        count: int,
        *,
        discount: float = 1.0,
        strength: float = 0.0,
        recorder: Policy | None = None,
        fast: Callable[[], FastTs] | None = None,
    ) -> None:
        self.stage_count = count
        self.discount = discount
        self.strength = strength
        self.recorder = recorder
        self._fast = fast
        self._replacements: Sequence[tuple[Tally, list[Any]]] = ()
        # Rounds that have ended and are yet to be added up; or, where rounds go to a store, the
        # number of the last that was added up.
        self.pending: list[tuple[Tally, Added] | RoundRecord] = []
        self.order = 0
        self.begun = 0
        self.others = 0  # rounds that other writers of a shared store have finished
        self.tallies: dict[str, Tally] = {}
        self.pool = Tally(count)

    def empty(self) -> SegmentCounters:
        """Another memory of the same kind that knows nothing yet."""
        return SegmentCounters(
            self.stage_count,
            discount=self.discount,
            strength=self.strength,
            recorder=self.recorder,
            fast=self._fast,
        )

    def tally(self, segment: str) -> Tally:
        """The counters of a segment, which begins here if it is new."""
        found = self.tallies.get(segment)
        if found is None:
            check_segment(segment)
            found = self._new_tally()
            self.tallies[segment] = found
            if len(self.tallies) == 1:
                self.pool = found  # one segment is its own sum, and is not counted twice
            elif len(self.tallies) == 2:
                self.renew_pool()
                if self.strength > 0:
                    for tally in self.tallies.values():
                        tally.fast = None
        return found

    def peek(self, segment: str) -> Tally:
        """The counters of a segment for reading: a new one is shown but does not begin."""
        return self.tallies.get(segment) or self._new_tally()

    def _new_tally(self) -> Tally:
        tally = Tally(self.stage_count, self.discount, self.recorder)
        # Distributions are carried along only where a segment's own rounds alone move them.
        if (
            self._fast is not None
            and self.discount == 1.0
            and (self.strength == 0 or not self.tallies)
        ):
            tally.fast = self._fast()
            tally.renew_fast()
        return tally

    def borrows(self, tally: Tally) -> bool:
        """Whether a segment is lent evidence: there are others, and a strength above 0."""
        return self.strength > 0 and any(other is not tally for other in self.tallies.values())

    # ---- counting ----------------------------------------------------------------------------

    def apply(self, record: RoundRecord) -> None:
        """Count a finished round."""
        self.count([record])

    def count_pending(self, costs: Sequence[float]) -> list[RoundRecord]:
        """Count what is pending; return the rounds of it of which there is a record."""
        records = [one for one in self.pending if isinstance(one, RoundRecord)]
        plain = [one for one in self.pending if not isinstance(one, RoundRecord)]
        self.count(records, plain, costs, pending=True)
        return records

    def count(
        self,
        records: Sequence[RoundRecord],
        plain: Sequence[tuple[Tally, Added]] = (),
        costs: Sequence[float] = (),
        *,
        pending: bool = False,
        order: int | None = None,
    ) -> None:
        """Count rounds, as one step.

        Args:
            records: rounds as records.
            plain: rounds that went to their depth, told to the carried distributions already.
            costs: of those, by their last stage.
            pending: whether these are all rounds that were pending.
            order: the number of the last of them, where they go to a store.
        """
        self.settle()
        changed: dict[int, tuple[Tally, Tally]] = {}
        moves: list[tuple[FastTs, Added]] = []
        for (tally, added), times in Counter(plain).items():
            copy = _copy(tally, changed)
            copy.values = copy.with_rounds(added, times, costs[added.last])
        for record in records:
            tally = self.tally(record.segment)
            copy = _copy(tally, changed)
            added = copy.what_adds(record)
            copy.values = copy.with_round(record, added)
            if tally.fast is not None and added.pairs:
                tally.fast.sure = False
                moves.append((tally.fast, added))
        self._replace(
            [(tally, copy.values) for tally, copy in changed.values()],
            pending=pending,
            order=order,
        )
        for fast, added in moves:
            fast.move(added.pairs)
        for fast, _ in moves:
            fast.sure = True

    def add(self, segment: str, delta: Tally) -> None:
        """Add many rounds at once."""
        self.settle()
        tally = self.tally(segment)
        pairs = zip(tally.values, delta.values, strict=True)
        self._replace([(tally, [mine + theirs for mine, theirs in pairs])])
        tally.renew_fast()

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere."""
        self.settle()
        self.check_evidence(evidence)
        tally = self.tally(segment)
        self._replace([(tally, tally.with_evidence(evidence))])
        tally.renew_fast()

    def check_evidence(self, evidence: Evidence) -> None:
        """Refuse evidence of another number of stages."""
        if evidence.stage_count != self.stage_count:
            raise fail("evidence", f"{evidence.stage_count} stages", f"{self.stage_count} stages")

    def set_tally(self, segment: str, counters: Mapping[str, Any]) -> None:
        """Replace a segment's counters (from a snapshot or a store), and with them the sum."""
        self.settle()
        values = checked_counters(self.stage_count, counters)
        tally = self.tally(segment)
        self._replace([(tally, values)])
        tally.renew_fast()

    def _replace(
        self,
        changes: list[tuple[Tally, list[Any]]],
        *,
        pending: bool = False,
        order: int | None = None,
    ) -> None:
        """Give tallies new values and the sum their differences, as one step."""
        pool = self.pool
        if changes and changes[0][0] is not pool:
            total = pool.values
            for tally, values in changes:
                before = tally.values
                total = [
                    a if b is c else a + (c - b)
                    for a, b, c in zip(total, before, values, strict=True)
                ]
            changes.append((pool, total))
        # Python runs signal handlers after calls, not between these assignments.
        self._replacements = changes
        if pending:
            self.pending = []
        if order is not None:
            self.order = order
        self.settle()

    def settle(self) -> None:
        """Finish a replacement that an interrupt has cut in two."""
        if self._replacements:
            for tally, values in self._replacements:
                tally.values = values
            self._replacements = ()

    def take(
        self, segments: Mapping[str, Mapping[str, Any]], queued: Sequence[RoundRecord]
    ) -> None:
        """Replace the counters of segments by those of a store, and add what is yet to go there."""
        self.settle()
        changes = []
        for segment, counters in segments.items():
            tally = self.tally(segment)
            copy = Tally(self.stage_count, self.discount, self.recorder)
            copy.values = checked_counters(self.stage_count, counters)
            for record in queued:
                if record.segment == segment:
                    copy.apply(record)
            changes.append((tally, copy.values))
            if tally.fast is not None:
                tally.fast.sure = False
        self._replace(changes)
        for tally, _ in changes:
            tally.renew_fast()

    def renew_pool(self) -> None:
        """Sum the segments again, after some were replaced."""
        if len(self.tallies) == 1:
            return
        pool = Tally(self.stage_count, recorder=self.recorder)
        for tally in self.tallies.values():
            pool.add(tally)
        self.pool = pool

    # ---- reading -----------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """Rounds finished, by all writers."""
        return self.pool.rounds

    def evidence_for(self, tally: Tally) -> Evidence:
        """What a policy is to read for a segment: its own evidence and what the others lend."""
        recent = self.discount != 1.0
        if not self.borrows(tally):
            return tally.recent_evidence() if recent else tally.evidence()
        at, pool = tally.layout, self.pool
        if recent:
            first, second = at.recent_seen, at.recent_disagreed
            once, twice = at.recent_switched, at.recent_switched_twice
        else:
            first, second = at.seen, at.disagreed
            once, twice = at.switched, at.switched_twice
        n = [float(value) for value in tally.of_pairs(first)]
        d = [float(value) for value in tally.of_pairs(second)]
        more = zip(pool.of_pairs(first), pool.of_pairs(second), strict=True)
        for number, (all_n, all_d) in enumerate(more):
            # What the others have; discounted sums carry rounding, which must not turn negative.
            lent = all_n - n[number]
            share = min(1.0, self.strength / lent) if lent > 0 else 0.0
            d[number] += share * min(max(all_d - d[number], 0.0), max(lent, 0.0))
            n[number] += share * lent
        switched, switched_twice = tally.values[once], tally.values[twice]
        more_switched = pool.values[once] - switched
        share = min(1.0, self.strength / more_switched) if more_switched > 0 else 0.0
        return real_evidence(
            self.stage_count,
            n,
            d,
            switched + share * more_switched,
            switched_twice + share * max(pool.values[twice] - switched_twice, 0),
        )

    # ---- as a snapshot holds it --------------------------------------------------------------

    def to_form(self) -> dict[str, Any]:
        """As a snapshot holds it."""
        segments = {}
        for name, tally in self.tallies.items():
            form: dict[str, Any] = {"counters": tally.to_counters()}
            if tally.fast is not None:
                form["carried"] = tally.fast.to_form()
            segments[name] = form
        form = {"begun": self.begun, "segments": segments}
        if len(self.tallies) > 1:
            # Real sums depend on their order in the last bit, so the sum over segments is kept too.
            form["pool"] = self.pool.to_counters()
        return form

    @classmethod
    def check_form(cls, form: Any) -> None:
        """Refuse what `to_form` does not write."""
        if not isinstance(form, Mapping):
            raise fail("state", form, "an object")
        known_keys("state", form, ("begun", "segments", "pool"))
        whole_number("begun", form.get("begun"), least=0)
        if not isinstance(form.get("segments"), Mapping):
            raise fail("segments", form.get("segments"), "an object, a field for each segment")
        for name, part in form["segments"].items():
            if not isinstance(part, Mapping) or not isinstance(part.get("counters"), Mapping):
                raise StopwiseError(f"segments[{name!r}]: the field 'counters' is missing")
            known_keys(f"segments[{name!r}]", part, ("counters", "carried", "drift"))

    def restored(self, form: Any) -> SegmentCounters:
        """A memory like this one that holds what `to_form` gave; this one is not changed."""
        self.check_form(form)
        made = self.empty()
        for name, part in form["segments"].items():
            made.tally(name).values = checked_counters(self.stage_count, part["counters"])
        for name, part in form["segments"].items():
            tally = made.tallies[name]
            if tally.fast is not None:
                tally.fast.restore(part.get("carried"), tally.seen, tally.disagreed)
        made.begun = int(form["begun"])
        made.renew_pool()
        made._restore_pool(form.get("pool"))
        return made

    def _restore_pool(self, counters: Any) -> None:
        """Take the sum that was saved, if it is the sum of the segments but for its last bits."""
        summed = self.pool.to_counters()
        if (
            len(self.tallies) > 1
            and isinstance(counters, Mapping)
            and summed.keys() == set(counters)
        ):
            values = [(value, counters[name]) for name, value in summed.items()]
            if all(type(b) in (int, float) and math.isclose(a, b) for a, b in values):
                self.pool.set_counters(counters)


def _copy(tally: Tally, copies: dict[int, tuple[Tally, Tally]]) -> Tally:
    """The copy of a tally that is worked on."""
    found = copies.get(id(tally))
    if found is None:
        copy = Tally(tally.stage_count, tally.discount, tally.recorder)
        copy.values = tally.values
        found = copies[id(tally)] = (tally, copy)
    return found[1]


def check_segment(segment: object) -> None:
    """Refuse a segment that no store can hold.

    >>> check_segment("fi")
    """
    if not isinstance(segment, str):
        raise fail("segment", segment, "text")
    if "\0" in segment or any("\ud800" <= character <= "\udfff" for character in segment):
        raise fail("segment", segment, "text without zero characters and lone surrogates")
