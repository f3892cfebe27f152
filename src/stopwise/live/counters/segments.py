"""All that a learner has learned: a tally for every segment, their sum, rounds begun."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from stopwise.checks import fail
from stopwise.evidence import Evidence
from stopwise.live.counters.distributions.carried import Carried
from stopwise.live.counters.distributions.recounted import Lent, PoolCounts
from stopwise.live.counters.segment_tallies import SegmentTallies, TallyKind
from stopwise.live.counters.tally import Tally, checked_counters
from stopwise.live.interrupts import Counted
from stopwise.live.pairs import Added, Billed
from stopwise.live.record import RoundRecord

_MANY = 256
_FEW = 8
Pending = tuple[Tally, Added, "int | None"]
"""Whose counters a round adds to, what it adds, and the depth advised, if any."""


class SegmentCounters(SegmentTallies):
    """The memory of a learner: the tallies, and rounds on their way into them.

    Whatever changes several tallies at once (a segment and the sum of all) is worked out first and
    then noted as one list of replacements: an interrupt at any moment leaves either all old values
    or a list from which `settle` goes on.

    Arguments are those of `SegmentTallies`.
    """

    __slots__ = (
        "_replacements", "begun", "free", "moved", "order", "others", "pending", "pending_cost",
        "quiet", "records", "unwatched", "watched",
    )  # fmt: skip

    def __init__(self, stage_count: int, **kind: Unpack[TallyKind]) -> None:
        super().__init__(stage_count, **kind)
        self._replacements: Sequence[tuple[Tally, list[Any]]] = ()
        # Rounds that have ended and are yet to be added up. Of most there is only what they add:
        # `quiet` ones saw no pair. Of others there is a record. The first `moved` of `pending` have
        # moved the carried distributions; up to `free` of them need not. The first `watched` of
        # them were seen by the watch for drift, which need not look before there are `unwatched`.
        # Where rounds go to a store, `order` is the number of the last that was added up.
        self.pending: list[Pending] = []
        self.quiet: list[Pending] = []
        self.records: list[RoundRecord] = []
        self.pending_cost = 0.0  # of the pending ones, where a budget counts it
        self.moved = 0
        self.free = 0
        self.watched = self.unwatched = 0
        self.order = 0
        self.begun = 0
        self.others = 0  # rounds that other writers of a shared store have finished

    def empty(self) -> SegmentCounters:
        """Another memory of the same kind that knows nothing yet."""
        return SegmentCounters(
            self.stage_count,
            discount=self.discount,
            strength=self.strength,
            recorder=self.recorder,
            fast=self._fast,
            from_counts=self._from_counts,
            most=self.most,
            abstentions=self.abstentions,
        )

    # ---- counting ----------------------------------------------------------------------------

    def apply(self, record: RoundRecord) -> None:
        """Count a finished round."""
        self.count([record])

    def count_pending(self, costs: Sequence[float]) -> list[RoundRecord]:
        """Count what is pending; return the rounds of it of which there is a record.

        Args:
            costs: of rounds of which there is no record, by their last stage.
        """
        records, pending, quiet = self.records[:], self.pending[:], self.quiet[:]
        self.count(records, pending, quiet, costs)
        return records

    def count_ordered(self, last: int, costs: Sequence[float]) -> bool:
        """Count what is pending, where rounds go to a store.

        Args:
            last: the number of the last round that was queued there.
            costs: see `count_pending`.

        Returns:
            False where these are not all the rounds since `order`: some have a record alone, or an
            interrupt came after one was queued. Then all are to be counted from their records.
        """
        pending, quiet = self.pending[:], self.quiet[:]
        if self.order + len(pending) + len(quiet) == last:
            self.count([], pending, quiet, costs, order=last)
            return True
        if pending or quiet:
            for tally in self.tallies.values():
                self._doubt(tally)  # some may have moved it already
            self.pending.clear()
            self.quiet.clear()
            self.moved = self.free = 0
        return False

    @property
    def has_pending(self) -> bool:
        """Whether there are rounds to add up."""
        return bool(self.pending or self.quiet or self.records)

    def follow(self) -> bool:
        """Let the carried distributions follow rounds that have ended; False if that is not all."""
        pending, at = self.pending, self.moved
        many = len(pending)
        if many >= _MANY:
            return False
        if self._pool_counts is not None and len(self.tallies) > 1:
            return self._follow_lent(self._pool_counts)
        still = 0
        fast: Carried | None = None
        while at < many:
            tally, added, _ = pending[at]
            fast = tally.fast
            at += 1
            if fast is not None and fast.sure:
                fast.sure = False
                fast.move(added)
                fast.sure = True
                still = fast.still
            self.moved = at
        if still and fast is not None and fast.unseen and len(self.tallies) <= _FEW:
            # This number of rounds may end before any distribution can change at all.
            at += min(one.fast.unseen for one in self.tallies.values() if one.fast is not None)
        self.free = at if at < _MANY else _MANY - 1
        return True

    def _follow_lent(self, shared: PoolCounts) -> bool:
        """The same where each round moves what all segments are lent, too."""
        pending, at = self.pending, self.moved
        many = len(pending)
        if many > at:
            moves = []
            for (tally, added, _), times in _counted(pending[at:many]):
                fast = tally.fast
                if not (isinstance(fast, Lent) and fast.sure):
                    return False
                moves.append((fast, added, times))
            if not shared.sure:
                return False
            for fast, _, _ in moves:
                fast.sure = False
            shared.sure = False
            for fast, added, times in moves:
                fast.move(added, times)
                shared.move(added, times)
            self.moved = many
            for fast, _, _ in moves:
                fast.sure = True
            shared.sure = True
        self.free = min(self.moved + shared.unseen, _MANY - 1)
        return shared.sure

    def renew_lent(self) -> None:
        """Take what segments are lent from the counts again, where that is not sure."""
        shared = self._pool_counts
        if shared is not None and shared is self.pool.fast and not shared.sure:
            self.pool.renew_fast()

    def count(
        self,
        records: Sequence[RoundRecord],
        pending: Sequence[Pending] = (),
        quiet: Sequence[Pending] = (),
        costs: Sequence[float] = (),
        *,
        order: int | None = None,
    ) -> None:
        """Count rounds, as one step.

        Args:
            records: rounds as records; all that were pending, unless `order` is given.
            pending, quiet: the first of those of which there is no record.
            costs: of those, by their last stage.
            order: the number of the last record, where they go to a store.
        """
        self.settle()
        changed: dict[Tally, list[Any]] = {}
        bills: list[Sequence[float | None]] = []
        moved = list(pending[self.moved :])
        if pending or quiet:
            ended = [*pending, *quiet]
            billed = [(tally, own) for tally, own, _ in ended if type(own) is Billed]
            if billed:  # their costs are added one after another, what they saw together
                ended = [one for one in ended if type(one[1]) is not Billed]
                free = [0.0] * self.stage_count
                alike = Counter([(tally, own.added) for tally, own in billed])
                for (tally, added), times in alike.items():
                    tally.add_rounds(_copy(tally, changed), added, times, free)
                for tally, own in billed:
                    tally.add_bill(changed[tally], own)
                    bills.append(own.costs)
            for (tally, added, advised), times in _counted(ended):
                tally.add_rounds(_copy(tally, changed), added, times, costs, advised)
            if self.discount != 1.0:  # then all are pending, in their order
                for tally, values in changed.items():
                    tally.add_recent(values, [one[1] for one in pending if one[0] is tally])
        for record in records:
            tally = self.tally(record.segment)
            added = tally.what_adds(record)
            tally.add_round(_copy(tally, changed), record, added)
            if record.costs is not None:
                failed = record.failed
                bills.append([None if failed >> at & 1 else c for at, c in enumerate(record.costs)])
            moved.append((tally, added, record.advised))
        moves = self._moves(moved)
        for fast in moves:
            fast.doubt()
        changes = list(changed.items())
        held = (len(pending), len(quiet), 0 if order is not None else len(records))
        self._replace(changes, held, order, bills=bills)
        for fast, rounds in moves.items():
            fast.move_all(rounds)
        for fast in moves:
            fast.sure = True

    def _moves(self, rounds: Iterable[Pending]) -> Mapping[Carried, Sequence[Added]]:
        """The carried distributions that rounds move, and which of the rounds, in their order."""
        shared = self._pool_counts if len(self.tallies) > 1 else None
        moves: defaultdict[Carried, list[Added]] = defaultdict(list)
        for tally, added, _ in rounds:
            fast = tally.fast
            if fast is not None and (added.pairs or fast.ages):
                moves[fast].append(added)
                if shared is not None:
                    moves[shared].append(added)
        # One that is not sure now will be taken from the counts again: it need not be moved.
        return {fast: adds for fast, adds in moves.items() if fast.sure}

    def add(self, segment: str, delta: Tally, mark: Counted | None = None) -> None:
        """Add many rounds at once.

        Args:
            segment: whose.
            delta: what they add.
            mark: marked as counted in the same step.
        """
        self.settle()
        tally = self.tally(segment)
        pairs = zip(tally.values, delta.values, strict=True)
        changes = [(tally, [mine + theirs for mine, theirs in pairs])]
        self._doubt(tally)
        self._replace(changes, mark=mark)
        tally.renew_fast()

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere."""
        self.settle()
        self.check_evidence(evidence)
        tally = self.tally(segment)
        changes = [(tally, tally.with_evidence(evidence))]
        self._doubt(tally)
        self._replace(changes)
        tally.renew_fast()

    def check_evidence(self, evidence: Evidence) -> None:
        """Refuse evidence of another number of stages."""
        if not isinstance(evidence, Evidence):
            raise fail("evidence", evidence, "Evidence, such as another learner's evidence()")
        if evidence.stage_count != self.stage_count:
            raise fail("evidence", f"{evidence.stage_count} stages", f"{self.stage_count} stages")

    def set_tally(self, segment: str, counters: Mapping[str, Any]) -> None:
        """Replace a segment's counters (from a snapshot or a store), and with them the sum."""
        self.settle()
        values = checked_counters(self.stage_count, counters)
        tally = self.tally(segment)
        self._doubt(tally)
        self._replace([(tally, values)])
        tally.renew_fast()

    def _doubt(self, tally: Tally) -> None:
        tally.doubt_fast()
        self.pool.doubt_fast()

    def _replace(
        self,
        changes: list[tuple[Tally, list[Any]]],
        held: tuple[int, int, int] = (0, 0, 0),
        order: int | None = None,
        mark: Counted | None = None,
        bills: Sequence[Sequence[float | None]] | None = None,
    ) -> None:
        """Give tallies new values and the sum their differences, as one step.

        Args:
            held: how many of `pending`, `quiet` and `records` these changes hold.
            order: the number of the last round that they hold, where rounds go to a store.
            mark: marked as counted.
            bills: what calls reported, round by round; None where that is not known.
        """
        pool = self.pool
        if changes and changes[0][0] is not pool:
            total = pool.values
            for tally, values in changes:
                before = tally.values
                total = [
                    a if b is c else a + (c - b)
                    for a, b, c in zip(total, before, values, strict=True)
                ]
            if bills is not None:
                self._add_bills(total, bills)
            changes.append((pool, total))
        pending, quiet, records = held
        # Python runs signal handlers after calls, not between these assignments.
        self._replacements = changes
        if mark is not None:
            mark.counted = True
        del self.pending[:pending]
        del self.quiet[:quiet]
        del self.records[:records]
        self.moved = self.moved - pending if self.moved > pending else 0
        self.watched = self.watched - pending if self.watched > pending else 0
        self.free = self.unwatched = 0
        if pending or quiet:
            self.pending_cost = 0.0  # these are always all that there are
        if order is not None:
            self.order = order
        self.settle()

    def _add_bills(self, total: list[Any], bills: Sequence[Sequence[float | None]]) -> None:
        """One after another, so that prices do not depend on how many are counted together."""
        sums = self.pool.layout.cost_sums
        total[sums : sums + self.stage_count] = self.pool.of_stages(sums)
        for bill in bills:
            for stage, cost in enumerate(bill, sums):
                if cost is not None:
                    total[stage] += cost

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
        waiting: dict[str, list[RoundRecord]] = {segment: [] for segment in segments}
        for record in queued:
            if record.segment in waiting:
                waiting[record.segment].append(record)
        changes = []
        for segment, counters in segments.items():
            tally = self.tally(segment)
            copy = self.empty_tally()
            copy.values = checked_counters(self.stage_count, counters)
            copy.apply(*waiting[segment])
            changes.append((tally, copy.values))
            self._doubt(tally)
        self._replace(changes)
        for tally, _ in changes:
            tally.renew_fast()

    def renew_pool(self) -> None:
        """Sum the segments again, after some were replaced."""
        if len(self.tallies) == 1:
            return
        pool = self.empty_pool()
        for tally in self.tallies.values():
            pool.add(tally)
        self.pool = pool


def _counted(rounds: Sequence[Pending]) -> Iterable[tuple[Pending, int]]:
    """Equal rounds together, with their number; most often there is but one."""
    return [(rounds[0], 1)] if len(rounds) == 1 else Counter(rounds).items()


def _copy(tally: Tally, copies: dict[Tally, list[Any]]) -> list[Any]:
    """The copy of a tally's counters that is worked on."""
    found = copies.get(tally)
    if found is None:
        found = copies[tally] = tally.values[:]
    return found
