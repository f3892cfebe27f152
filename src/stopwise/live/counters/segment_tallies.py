"""A tally for every segment, and their sum: which one a round adds to, and what each may read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypedDict, Unpack

from stopwise.abstentions import Abstentions
from stopwise.checks import fail
from stopwise.evidence import Evidence
from stopwise.live.counters.distributions.carried import Carried
from stopwise.live.counters.distributions.recounted import CountRule, PoolCounts
from stopwise.live.counters.lending import lent_counts, lent_evidence
from stopwise.live.counters.tally import Tally
from stopwise.live.pairs import Added
from stopwise.live.record import RoundRecord, added_of
from stopwise.policies.base import Policy

_LOG = logging.getLogger("stopwise.live")
OTHER = "other"
"""Where rounds are counted once there are `most` segments."""


class TallyKind(TypedDict, total=False):
    """How the segments of a learner are counted.

    Attributes:
        discount: see `Tally`.
        strength: how many rounds the other segments' evidence may count for in one segment.
        recorder: a policy that counts rounds in its own way, or None.
        fast: makes the carried distribution of a segment, or None where the policy has none.
        from_counts: makes the distribution where it cannot be carried, or None where the policy has
            no quick way from counts.
        most: beyond this many, new segments are counted together.
        abstentions: what it means that a stage gives no answer.
    """

    discount: float
    strength: float
    recorder: Policy | None
    fast: Callable[[], Carried] | None
    from_counts: CountRule | None
    most: int
    abstentions: Abstentions


class SegmentTallies:
    """The counters of every segment.

    Args:
        stage_count: how many stages.
        kind: how they are counted, see `TallyKind`.
    """

    __slots__ = (
        "_fast", "_from_counts", "_full", "_pool_counts", "abstentions", "discount", "most",
        "ordered", "pool", "recorder", "stage_count", "strength", "tallies",
    )  # fmt: skip

    def __init__(self, stage_count: int, **kind: Unpack[TallyKind]) -> None:
        self.stage_count = stage_count
        self.discount = kind.get("discount", 1.0)
        self.ordered = self.discount != 1.0  # the order of rounds counts, of quiet ones too
        self.strength = kind.get("strength", 0.0)
        self.recorder = kind.get("recorder")
        self.most = kind.get("most", 10_000)
        self.abstentions: Abstentions = kind.get("abstentions", "leave out")
        self._fast = kind.get("fast")
        self._from_counts = rule = kind.get("from_counts")
        self._pool_counts: PoolCounts | None = None
        if self.strength > 0 and self.discount == 1.0 and rule is not None:
            self._pool_counts = rule.pool()
        self._full = False
        self.tallies: dict[str, Tally] = {}
        self.pool = Tally(stage_count)

    def place(self, segment: str) -> str:
        """Where rounds of a segment are counted: there, or with others where there are too many.

        >>> counters = SegmentTallies(2, most=1)
        >>> tally = counters.tally("a")
        >>> counters.place("a"), counters.place("b")
        ('a', 'other')
        """
        if not isinstance(segment, str):
            check_segment(segment)
        tallies = self.tallies
        if segment in tallies or len(tallies) < self.most:
            return segment
        if not self._full:
            self._full = True
            _LOG.warning(
                "there are %d segments (max_segments): new ones are counted together, as %r",
                len(tallies), OTHER,
            )  # fmt: skip
        return OTHER

    def tally(self, segment: str) -> Tally:
        """The counters of a segment, which begins here if it is new."""
        found = self.tallies.get(segment)
        if found is None:
            check_segment(segment)
            found = self._new_tally()
            found.segment = segment
            pool = self.pool
            if not self.tallies:
                pool = found  # one segment is its own sum, and is not counted twice
            elif len(self.tallies) == 1:
                (first,) = self.tallies.values()
                pool = self.empty_pool()
                pool.add(first)
                pool.doubt_fast()  # rounds may be on their way into the first
                if self.strength > 0:
                    first.fast, found.fast = self._lent(), self._lent()
                    first.doubt_fast()
            elif self.strength > 0:
                found.fast = self._lent()
            # Python runs signal handlers after calls, not between these assignments.
            self.tallies[segment] = found
            self.pool = pool
        return found

    def peek(self, segment: str) -> Tally:
        """The counters of a segment for reading: a new one is shown but does not begin."""
        if not isinstance(segment, str):
            check_segment(segment)
        return self.tallies.get(segment) or self._new_tally()

    def _new_tally(self) -> Tally:
        tally = self.empty_tally()
        if self.strength == 0 or not self.tallies:  # no other segment lends to it
            if self._fast is not None and self.discount == 1.0:
                tally.fast = self._fast()
            elif self._from_counts is not None:
                tally.fast = self._from_counts.aging(self.discount)
            tally.renew_fast()
        return tally

    def _lent(self) -> Carried | None:
        """The carried counts of a new segment to which others lend."""
        if self._from_counts is None or self._pool_counts is None:
            return None
        return self._from_counts.lent(self._pool_counts, self.strength)

    def empty_tally(self) -> Tally:
        """The counters of a segment, at zero."""
        return Tally(self.stage_count, self.discount, self.recorder, self.abstentions)

    def empty_pool(self) -> Tally:
        """The sum of the segments, at zero."""
        pool = Tally(self.stage_count, recorder=self.recorder, abstentions=self.abstentions)
        pool.fast = self._pool_counts
        pool.doubt_fast()
        return pool

    def adds(self, record: RoundRecord) -> Added:
        """What a round adds to the counters of pairs, before a policy counts in its own way."""
        return added_of(record, self.stage_count, self.abstentions)

    def borrows(self, tally: Tally) -> bool:
        """Whether a segment is lent evidence: there are others, and a strength above 0."""
        return self.strength > 0 and any(other is not tally for other in self.tallies.values())

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
        return lent_evidence(tally, self.pool, self.strength, recent=recent)

    def counts_for(self, tally: Tally) -> tuple[list[float], list[float]]:
        """The same, of pairs alone: how often they were seen, and disagreed."""
        recent = self.discount != 1.0
        at = tally.layout
        first, second = (at.recent_seen, at.recent_disagreed) if recent else (at.seen, at.disagreed)
        if not self.borrows(tally):
            return tally.of_pairs(first), tally.of_pairs(second)
        return lent_counts(tally, self.pool, self.strength, first, second)


def check_segment(segment: object) -> None:
    """Refuse a segment that no store can hold.

    >>> check_segment("fi")
    """
    if not isinstance(segment, str):
        raise fail("segment", segment, "text")
    if "\0" in segment or any("\ud800" <= character <= "\udfff" for character in segment):
        raise fail("segment", segment, "text without zero characters and lone surrogates")
