"""All counters of one segment, in plain Python: what a round adds, and nothing but sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stopwise.abstentions import Abstentions
from stopwise.checks import StopwiseError, fail
from stopwise.evidence import Evidence
from stopwise.live.counters.distributions.carried import Carried
from stopwise.live.counters.layout import layout_of
from stopwise.live.items.figures import add_item
from stopwise.live.items.promise import add_promise
from stopwise.live.pairs import Added, Billed, added_by, pair_list
from stopwise.live.record import RoundRecord, added_of, same_answer
from stopwise.live.recorded import recorded_by
from stopwise.policies.base import Policy

LARGEST = 2**53
"""No counter grows beyond this: larger ones are not exact in every store."""
LARGEST_SUM = 1e130
"""No sum of costs grows beyond this."""


class Tally:
    """Counters of one segment. Two tallies of the same cascade add up.

    All counters stand in one list, which is replaced and never changed: an interrupt leaves the
    old one or the new one.

    Args:
        stage_count: how many stages.
        discount: what a round leaves of all older recent counts; 1 keeps no recent counts.
        recorder: a policy that counts rounds in its own way, or None.
        abstentions: what it means that a stage gives no answer.

    >>> tally = Tally(2)
    >>> tally.rounds, tally.seen
    (0, [0])
    """

    __slots__ = (
        "abstentions", "discount", "fast", "layout", "recorder", "segment", "stage_count", "values",
    )  # fmt: skip

    def __init__(
        self,
        stage_count: int,
        discount: float = 1.0,
        recorder: Policy | None = None,
        abstentions: Abstentions = "leave out",
    ) -> None:
        self.stage_count = stage_count
        self.abstentions = abstentions
        self.discount = discount
        self.recorder = recorder
        self.layout = layout_of(stage_count)
        self.segment = ""  # whose counters these are, where that was said
        self.fast: Carried | None = None
        self.values: list[Any] = [0] * self.layout.size

    # ---- reading -----------------------------------------------------------------------------

    def of_pairs(self, start: int) -> list[Any]:
        """The counters of all pairs, of the kind that starts there."""
        return self.values[start : start + self.layout.pairs]

    def of_stages(self, start: int) -> list[Any]:
        """The counters of all stages, of the kind that starts there."""
        return self.values[start : start + self.stage_count]

    @property
    def rounds(self) -> int:
        """How many rounds have ended."""
        return int(self.values[self.layout.rounds])

    @property
    def spent(self) -> float:
        """The cost of all rounds."""
        return float(self.values[self.layout.spent])

    @property
    def seen(self) -> list[int]:
        """How often each pair was seen together."""
        return self.of_pairs(self.layout.seen)

    @property
    def disagreed(self) -> list[int]:
        """How often each pair disagreed."""
        return self.of_pairs(self.layout.disagreed)

    def pair_counts(self) -> tuple[list[Any], list[Any], Any, Any]:
        """What policies count: of pairs, and of answers that changed once and twice."""
        values, at = self.values, self.layout
        if self.discount == 1.0:
            return self.seen, self.disagreed, values[at.switched], values[at.switched_twice]
        seen, disagreed = self.of_pairs(at.recent_seen), self.of_pairs(at.recent_disagreed)
        return seen, disagreed, values[at.recent_switched], values[at.recent_switched_twice]

    def evidence(self) -> Evidence:
        """The exact counts, as `Evidence`."""
        evidence = Evidence(self.stage_count)
        layout, values = self.layout, self.values
        for at, (i, j) in enumerate(pair_list(self.stage_count)):
            evidence.seen[i, j] = values[layout.seen + at]
            evidence.disagreed[i, j] = values[layout.disagreed + at]
        evidence.switched = values[layout.switched]
        evidence.switched_twice = values[layout.switched_twice]
        return evidence

    def recent_evidence(self) -> Evidence:
        """The discounted counts: an `Evidence` of real numbers, for policies to read."""
        layout = self.layout
        return real_evidence(
            self.stage_count,
            self.of_pairs(layout.recent_seen),
            self.of_pairs(layout.recent_disagreed),
            self.values[layout.recent_switched],
            self.values[layout.recent_switched_twice],
        )

    # ---- counting ----------------------------------------------------------------------------

    def what_adds(self, record: RoundRecord) -> Added:
        """What a round adds to the counters of pairs."""
        if self.recorder is not None:
            return recorded_by(self.recorder, self.stage_count, record, self.abstentions)
        if self.abstentions == "leave out":
            return added_by(record.answered, record.disagreed, record.undecided)
        return added_of(record, self.stage_count, self.abstentions)

    # These change a list that nobody else has, a copy of `values`: one for many rounds.

    def add_round(self, values: list[Any], record: RoundRecord, added: Added) -> None:
        """Add one more round."""
        at = self.layout
        values[at.rounds] += 1
        values[at.spent] += record.cost
        called, answered = record.called, record.answered
        if record.item is not None and not record.item.full:
            answered |= record.item.answered  # its record leaves out what must not count as pairs
        if record.stage is not None:
            values[at.stops + record.stage] += 1
            answered |= called == 1  # a round of one stage is not compared
        if called:
            values[at.lengths + called - 1] += 1
        if record.abandoned:
            values[at.abandoned] += 1
        if answered != (1 << called) - 1:
            for stage in range(called):
                failed, skipped = record.failed >> stage & 1, record.skipped >> stage & 1
                values[at.failures + stage] += failed
                values[at.skipped + stage] += skipped
                values[at.abstained + stage] += not (failed or skipped or answered >> stage & 1)
        if record.costs is not None:
            for stage, cost in enumerate(record.costs):
                if cost is not None and not record.failed >> stage & 1:
                    values[at.cost_sums + stage] += cost
                    values[at.cost_counts + stage] += 1
        if record.advised is not None:
            values[at.advised_rounds] += 1
            values[at.advised + record.advised] += 1
            values[at.advised_cost] += record.advised_cost
            values[at.advised_paid] += record.cost
            if record.advised_same is not None:
                values[at.advised_known] += 1
                values[at.advised_same] += record.advised_same
        if record.item is not None:
            add_promise(values, at.promise, record.item)
            if record.advised is None and not record.abandoned:
                rule = record.item.rule
                same = same_answer(record, rule) if record.item.full and rule is not None else None
                # Called alone, no round that is no full run knows what one would have said.
                last = self.stage_count - (not record.item.whole)
                cost = record.cost
                add_item(values, at.items, record.item, last=last, cost=cost, same=same)
        self._add_pairs(values, added, 1)
        if self.discount != 1.0:
            self.add_recent(values, (added,))

    def add_rounds(
        self,
        values: list[Any],
        added: Added,
        times: int,
        costs: Sequence[float],
        advised: int | None = None,
    ) -> None:
        """Add equal rounds that went to their depth; what loses weight is added by `add_recent`.

        Args:
            values: the counters.
            added: what each of them adds.
            times: how many they are.
            costs: of rounds, by their last stage.
            advised: the depth that enforcing would have drawn, where that is only noted.
        """
        at = self.layout
        last = added.last
        values[at.rounds] += times
        values[at.spent] += costs[last] * times
        values[at.stops + last] += times
        values[at.lengths + last] += times
        if added.answered & (added.answered + 1):
            for stage in range(last):
                values[at.abstained + stage] += times * (not added.answered >> stage & 1)
        if advised is not None:
            values[at.advised_rounds] += times
            values[at.advised + advised] += times
            values[at.advised_cost] += costs[advised] * times
            values[at.advised_paid] += costs[last] * times
            same = added.agrees_with_last(advised)
            if same is not None:
                values[at.advised_known] += times
                values[at.advised_same] += times * same
        self._add_pairs(values, added, times)

    def add_bill(self, values: list[Any], billed: Billed) -> None:
        """Add what a round of `add_rounds` has cost, where that is not known by its last stage."""
        at = self.layout
        values[at.spent] += billed.cost
        for stage, cost in enumerate(billed.costs):
            if cost is not None:
                values[at.cost_sums + stage] += cost
                values[at.cost_counts + stage] += 1

    def _add_pairs(self, values: list[Any], added: Added, times: int) -> None:
        seen, disagreed = self.layout.seen, self.layout.disagreed
        for number, differs in added.pairs:
            values[seen + number] += times
            if differs:
                values[disagreed + number] += times
        if added.switched or added.switched_twice:
            values[self.layout.switched] += times * added.switched
            values[self.layout.switched_twice] += times * added.switched_twice
        for number in added.beyond:
            values[self.layout.beyond + number] += times
        for stage in added.uncounted:
            values[self.layout.uncounted + stage] += times

    def add_recent(self, values: list[Any], rounds: Iterable[Added]) -> None:
        """Add rounds, in their order, to the counters in which older rounds lose weight."""
        at, d = self.layout, self.discount
        start, middle, end = at.recent_seen, at.recent_disagreed, at.recent_disagreed + at.pairs
        seen, disagreed = values[start:middle], values[middle:end]
        switched, twice = values[at.recent_switched], values[at.recent_switched_twice]
        for added in rounds:
            seen = [value * d for value in seen]
            disagreed = [value * d for value in disagreed]
            for number, differs in added.pairs:
                seen[number] += 1.0
                if differs:
                    disagreed[number] += 1.0
            switched = switched * d + added.switched
            twice = twice * d + added.switched_twice
        values[start:middle], values[middle:end] = seen, disagreed
        values[at.recent_switched], values[at.recent_switched_twice] = switched, twice

    def apply(self, *records: RoundRecord) -> None:
        """Count finished rounds."""
        values = self.values[:]
        for record in records:
            self.add_round(values, record, self.what_adds(record))
        self.values = values

    def add(self, other: Tally) -> None:
        """Add another tally's counters; recent counts are added as they stand."""
        self.values = [
            mine + theirs for mine, theirs in zip(self.values, other.values, strict=True)
        ]
        self.renew_fast()

    def with_evidence(self, evidence: Evidence) -> list[Any]:
        """The counters after evidence from elsewhere; as recent as if it had been seen just now."""
        values, at = self.values[:], self.layout
        for number, (i, j) in enumerate(pair_list(self.stage_count)):
            n, d = int(evidence.seen[i, j]), int(evidence.disagreed[i, j])
            values[at.seen + number] += n
            values[at.disagreed + number] += d
            if self.discount != 1.0:
                values[at.recent_seen + number] += n
                values[at.recent_disagreed + number] += d
        values[at.switched] += int(evidence.switched)
        values[at.switched_twice] += int(evidence.switched_twice)
        if self.discount != 1.0:
            values[at.recent_switched] += int(evidence.switched)
            values[at.recent_switched_twice] += int(evidence.switched_twice)
        return values

    def doubt_fast(self) -> None:
        """Say that the carried distribution is not sure: the counts are about to change."""
        if self.fast is not None:
            self.fast.doubt()

    def renew_fast(self) -> None:
        """Take the carried distribution from the counts again."""
        if self.fast is not None:
            self.fast.anchor(*self.pair_counts())

    # ---- as stores and snapshots hold it -----------------------------------------------------

    def to_counters(self) -> dict[str, int | float]:
        """All that is not zero, by name: rows of a store, fields of a snapshot.

        >>> tally = Tally(3)
        >>> tally.values[tally.layout.seen + 1] = 4
        >>> tally.to_counters()
        {'seen 0-2': 4}
        """
        return {
            name: value for name, value in zip(self.layout.names, self.values, strict=True) if value
        }

    def set_counters(self, counters: Mapping[str, Any]) -> None:
        """Take the values that `to_counters` gave; all others become zero."""
        self.values = checked_counters(self.stage_count, counters)
        self.renew_fast()


def checked_counters(stage_count: int, counters: Mapping[str, Any]) -> list[Any]:
    """Counters by name as the list that a `Tally` holds; what cannot be counted is refused.

    >>> checked_counters(2, {"seen 0-1": 1, "disagreed 0-1": 2})
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: counter 'disagreed 0-1': got 2, but need at most 1, ...
    """
    layout = layout_of(stage_count)
    values: list[Any] = [0] * layout.size
    for name, value in counters.items():
        at = layout.places.get(name)
        if at is None:
            raise StopwiseError(f"counters: unknown counter {name!r}")
        real = layout.real[at]
        if isinstance(value, bool) or not isinstance(value, (int, float) if real else int):
            raise fail(f"counter {name!r}", value, "a number" if real else "a whole number")
        most = LARGEST_SUM if real else LARGEST
        if not 0 <= value <= most:  # and so neither infinite nor no number
            raise fail(f"counter {name!r}", value, f"a number from 0 to {most:.16g}")
        values[at] = value
    for at in range(layout.pairs):
        seen, disagreed = values[layout.seen + at], values[layout.disagreed + at]
        if disagreed > seen:
            name = layout.names[layout.disagreed + at]
            raise fail(f"counter {name!r}", disagreed, f"at most {seen}, as often as it was seen")
    return values


def real_evidence(
    stage_count: int,
    seen: Iterable[float],
    disagreed: Iterable[float],
    switched: float,
    switched_twice: float,
) -> Evidence:
    """An `Evidence` whose counts are real numbers (discounted, or shared between segments).

    Policies only read it. It cannot be written to JSON as evidence: it is not a count of anything.

    >>> real_evidence(2, [2.5], [0.5], 0, 0).disagreement[0, 1]
    np.float64(0.2)
    """
    evidence = Evidence(stage_count)
    n = np.zeros((stage_count, stage_count))
    d = np.zeros((stage_count, stage_count))
    for (i, j), pair_seen, pair_disagreed in zip(
        pair_list(stage_count), seen, disagreed, strict=True
    ):
        n[i, j] = pair_seen
        d[i, j] = pair_disagreed
    evidence.seen, evidence.disagreed = n, d
    evidence.switched, evidence.switched_twice = switched, switched_twice
    return evidence
