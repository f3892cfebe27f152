"""All counters of one segment, in plain Python: what a round adds, and nothing but sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.evidence import Evidence
from stopwise.live.counters.carried import FastTs
from stopwise.live.counters.pairs import NOTHING, Moves, moves_of, pair_count, pair_list, tokens
from stopwise.live.drift import DriftWatch
from stopwise.live.stores.records import Finished
from stopwise.policies.base import Policy

_SINGLES = (
    "rounds", "switched", "switched_twice", "abandoned", "spent",
    "advised_rounds", "advised_cost", "advised_paid", "advised_same", "advised_known",
    "recent_switched", "recent_switched_twice",
)  # fmt: skip
_PER_PAIR = ("seen", "disagreed", "recent_seen", "recent_disagreed")
_PER_STAGE = ("lengths", "stops", "failures", "cost_sums", "cost_counts", "advised")
_REAL = ("spent", "advised_cost", "advised_paid", "cost_sums")


class Pattern:
    """Equal rounds that were ended and are yet to be added up: most rounds are like others."""

    __slots__ = ("cost", "moves", "pairs", "stage", "tally", "times")

    def __init__(self, tally: Tally, stage: int, cost: float, moves: Moves) -> None:
        self.tally = tally
        self.stage = stage
        self.cost = cost
        self.moves = moves
        self.pairs = moves.pairs
        self.times = 0


class Tally:
    """Counters of one segment. Two tallies of the same cascade add up.

    Args:
        count: how many stages.
        discount: what a round leaves of all older recent counts; 1 keeps no recent counts.
        recorder: a policy that counts rounds in its own way, or None.

    Attributes:
        lengths: how many rounds called exactly 1, 2, ... stages.
        stops: how many rounds were answered by each stage.

    >>> tally = Tally(2)
    >>> tally.rounds, tally.seen
    (0, [0])
    """

    __slots__ = (
        *_SINGLES, *_PER_PAIR, *_PER_STAGE,
        "discount", "fast", "patterns", "recorder", "stage_count", "watch",
    )  # fmt: skip

    seen: list[int]
    disagreed: list[int]
    lengths: list[int]
    stops: list[int]
    failures: list[int]
    advised: list[int]
    cost_sums: list[float]
    cost_counts: list[int]
    recent_seen: list[float]
    recent_disagreed: list[float]
    rounds: int
    switched: int
    switched_twice: int
    abandoned: int
    spent: float
    advised_rounds: int
    advised_cost: float
    advised_paid: float
    advised_same: int
    advised_known: int
    recent_switched: float
    recent_switched_twice: float

    def __init__(self, count: int, discount: float = 1.0, recorder: Policy | None = None) -> None:
        self.stage_count = count
        self.discount = discount
        self.recorder = recorder
        self.fast: FastTs | None = None
        self.patterns: dict[tuple[Any, ...], Pattern] = {}
        self.watch: DriftWatch | None = None
        for name in _SINGLES:
            setattr(self, name, 0)
        for name in _PER_PAIR:
            setattr(self, name, [0] * pair_count(count))
        for name in _PER_STAGE:
            setattr(self, name, [0] * count)

    def apply(self, round: Finished) -> None:
        """Count a finished round."""
        self.rounds += 1
        self.spent += round.cost
        if round.stage is not None:
            self.stops[round.stage] += 1
        called = round.called
        if called:
            self.lengths[called - 1] += 1
        if round.abandoned:
            self.abandoned += 1
        if round.failed:
            for stage in range(called):
                self.failures[stage] += round.failed >> stage & 1
        if round.costs is not None:
            for stage, cost in enumerate(round.costs):
                if cost is not None:
                    self.cost_sums[stage] += cost
                    self.cost_counts[stage] += 1
        if round.advised is not None:
            self._apply_advice(round, round.advised)
        if called > 1 and self.recorder is None:
            moves = moves_of(round.answered, round.disagreed)
        elif self.recorder is not None:
            moves = recorded_moves(self.recorder, self.stage_count, round)
        elif self.discount == 1.0:
            return
        else:
            moves = NOTHING
        self._apply_moves(moves)

    def apply_times(self, pattern: Pattern) -> None:
        """Count equal rounds that went to their depth and of which there is no more to say.

        The same as `apply` as often, but for what the carried distribution was told already.
        """
        times, stage, moves = pattern.times, pattern.stage, pattern.moves
        self.rounds += times
        self.spent += pattern.cost * times
        self.stops[stage] += times
        self.lengths[stage] += times
        for number, differs in moves.pairs:
            self.seen[number] += times
            if differs:
                self.disagreed[number] += times
        self.switched += moves.switched * times
        self.switched_twice += moves.switched_twice * times

    def watch_only(self, round: Finished) -> None:
        """Show a round to the drift alarm, if there is one, without counting it."""
        if self.watch is not None:
            self.watch.observe(moves_of(round.answered, round.disagreed).pairs)

    def _apply_moves(self, moves: Moves) -> None:
        seen, disagreed = self.seen, self.disagreed
        for number, differs in moves.pairs:
            seen[number] += 1
            if differs:
                disagreed[number] += 1
        self.switched += moves.switched
        self.switched_twice += moves.switched_twice
        if self.discount != 1.0:
            self._apply_recent(moves)
        if self.fast is not None:
            self.fast.move(moves.pairs)
        if self.watch is not None:
            self.watch.observe(moves.pairs)

    def _apply_recent(self, moves: Moves) -> None:
        d = self.discount
        self.recent_seen = [value * d for value in self.recent_seen]
        self.recent_disagreed = [value * d for value in self.recent_disagreed]
        for number, differs in moves.pairs:
            self.recent_seen[number] += 1.0
            self.recent_disagreed[number] += float(differs)
        self.recent_switched = self.recent_switched * d + moves.switched
        self.recent_switched_twice = self.recent_switched_twice * d + moves.switched_twice

    def _apply_advice(self, round: Finished, advised: int) -> None:
        self.advised_rounds += 1
        self.advised[advised] += 1
        self.advised_cost += round.advised_cost
        self.advised_paid += round.cost
        if round.advised_same is not None:
            self.advised_known += 1
            self.advised_same += round.advised_same

    def add(self, other: Tally) -> None:
        """Add another tally's counters; recent counts are added as they stand."""
        for name in _SINGLES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in (*_PER_PAIR, *_PER_STAGE):
            pairs = zip(getattr(self, name), getattr(other, name), strict=True)
            setattr(self, name, [mine + theirs for mine, theirs in pairs])
        self.renew_fast()

    def forget_recent(self) -> None:
        """Keep the exact counts only: a sum over segments has no clock of its own."""
        self.recent_seen = [0.0] * len(self.recent_seen)
        self.recent_disagreed = [0.0] * len(self.recent_disagreed)
        self.recent_switched = self.recent_switched_twice = 0.0

    def add_evidence(self, evidence: Evidence) -> None:
        """Add evidence from elsewhere; as recent as if it had been seen just now."""
        for at, (i, j) in enumerate(pair_list(self.stage_count)):
            n, d = int(evidence.seen[i, j]), int(evidence.disagreed[i, j])
            self.seen[at] += n
            self.disagreed[at] += d
            if self.discount != 1.0:
                self.recent_seen[at] += n
                self.recent_disagreed[at] += d
        self.switched += int(evidence.switched)
        self.switched_twice += int(evidence.switched_twice)
        if self.discount != 1.0:
            self.recent_switched += int(evidence.switched)
            self.recent_switched_twice += int(evidence.switched_twice)
        self.renew_fast()

    def renew_fast(self) -> None:
        """Take the carried distribution anew from the counts."""
        if self.fast is not None:
            self.fast.anchor(self.seen, self.disagreed)

    def evidence(self) -> Evidence:
        """The exact counts, as `Evidence`."""
        evidence = Evidence(self.stage_count)
        for at, (i, j) in enumerate(pair_list(self.stage_count)):
            evidence.seen[i, j] = self.seen[at]
            evidence.disagreed[i, j] = self.disagreed[at]
        evidence.switched = self.switched
        evidence.switched_twice = self.switched_twice
        return evidence

    def recent_evidence(self) -> Evidence:
        """The discounted counts: an `Evidence` of real numbers, for policies to read."""
        return real_evidence(
            self.stage_count,
            self.recent_seen,
            self.recent_disagreed,
            self.recent_switched,
            self.recent_switched_twice,
        )

    def to_counters(self) -> dict[str, int | float]:
        """All that is not zero, by name: rows of a store, fields of a snapshot.

        >>> tally = Tally(3)
        >>> tally.seen[1] = 4
        >>> tally.to_counters()
        {'seen 0-2': 4}
        """
        counters = {name: getattr(self, name) for name in _SINGLES}
        for name in _PER_PAIR:
            values = zip(pair_list(self.stage_count), getattr(self, name), strict=True)
            counters |= {f"{name} {i}-{j}": value for (i, j), value in values}
        for name in _PER_STAGE:
            counters |= {f"{name} {i}": value for i, value in enumerate(getattr(self, name))}
        return {name: value for name, value in counters.items() if value}

    def set_counters(self, counters: Mapping[str, Any]) -> None:
        """Take the values that `to_counters` gave; all others become zero."""
        left = dict(counters)

        def take(name: str) -> int | float:
            value = left.pop(name, 0)
            field = name.split(" ")[0]
            real = field in _REAL or field.startswith("recent_")
            if isinstance(value, bool) or not isinstance(value, (int, float) if real else int):
                raise fail(f"counter {name!r}", value, "a number" if real else "a whole number")
            if not value >= 0:
                raise fail(f"counter {name!r}", value, "0 or more")
            return value

        for name in _SINGLES:
            setattr(self, name, take(name))
        for name in _PER_PAIR:
            setattr(self, name, [take(f"{name} {i}-{j}") for i, j in pair_list(self.stage_count)])
        for name in _PER_STAGE:
            setattr(self, name, [take(f"{name} {i}") for i in range(self.stage_count)])
        if left:
            raise StopwiseError(f"counters: unknown counter {next(iter(left))!r}")
        if any(d > n for n, d in zip(self.seen, self.disagreed, strict=True)):
            raise fail("counters", self.disagreed, "at most as many disagreements as seen")
        self.renew_fast()


def real_evidence(
    count: int,
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
    evidence = Evidence(count)
    n = np.zeros((count, count))
    d = np.zeros((count, count))
    for (i, j), pair_seen, pair_disagreed in zip(pair_list(count), seen, disagreed, strict=True):
        n[i, j] = pair_seen
        d[i, j] = pair_disagreed
    evidence.seen, evidence.disagreed = n, d
    evidence.switched, evidence.switched_twice = switched, switched_twice
    return evidence


def recorded_moves(policy: Policy, count: int, round: Finished) -> Moves:
    """What a policy that counts in its own way adds for a round."""
    added = Evidence(count)
    prefix = tokens(round.answered, round.disagreed, round.called)
    policy.record(added, round.number, prefix)  # type: ignore[arg-type]
    pairs: list[tuple[int, bool]] = []
    for at, (i, j) in enumerate(pair_list(count)):
        n, d = int(added.seen[i, j]), int(added.disagreed[i, j])
        pairs += [(at, True)] * d + [(at, False)] * (n - d)
    return Moves(tuple(pairs), int(added.switched), int(added.switched_twice))
