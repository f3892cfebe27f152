"""All that a learner has learned: a tally for every segment, and how many rounds were begun."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from stopwise.checks import StopwiseError, fail, known_keys, whole_number
from stopwise.evidence import Evidence
from stopwise.live.counters.carried import FastTs
from stopwise.live.counters.tally import Tally, real_evidence
from stopwise.live.drift import Drift, DriftAlarm, DriftWatch
from stopwise.live.stores.records import Finished
from stopwise.policies.base import Policy


class State:
    """The memory of a learner.

    Args:
        count: how many stages.
        discount: see `Tally`.
        strength: how many rounds the other segments' evidence may count for in one segment.
        recorder: a policy that counts rounds in its own way, or None.
        fast: makes the carried distribution of a segment, or None where the policy has none.
        drift: how to watch for drift, or None.
        report_drift: told of every alarm.
    """

    __slots__ = (
        "_drift", "_fast", "_report_drift", "begun", "discount", "others", "pool",
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
        drift: Drift | None = None,
        report_drift: Callable[[DriftAlarm], None] = lambda alarm: None,
    ) -> None:
        self.stage_count = count
        self.discount = discount
        self.strength = strength
        self.recorder = recorder
        self._fast = fast
        self._drift = drift
        self._report_drift = report_drift
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.begun = 0
        self.others = 0  # rounds that other writers of a shared store have finished
        self.tallies: dict[str, Tally] = {}
        self.pool = Tally(self.stage_count)

    def tally(self, segment: str) -> Tally:
        """The counters of a segment, which begins here if it is new."""
        found = self.tallies.get(segment)
        if found is None:
            if not isinstance(segment, str):
                raise fail("segment", segment, "text")
            found = self._new_tally(segment)
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
        return self.tallies.get(segment) or self._new_tally(segment)

    def _new_tally(self, segment: str) -> Tally:
        tally = Tally(self.stage_count, self.discount, self.recorder)
        if self._drift is not None:
            tally.watch = DriftWatch(segment, self.stage_count, self._drift, self._report_drift)
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

    def apply(self, segment: str, round: Finished) -> None:
        """Count a finished round."""
        tally = self.tally(segment)
        tally.apply(round)
        if self.pool is not tally:
            self.pool.apply(round)

    def add(self, segment: str, delta: Tally) -> None:
        """Add many rounds at once."""
        tally = self.tally(segment)
        tally.add(delta)
        if self.pool is not tally:
            self.pool.add(delta)

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Add evidence from elsewhere."""
        if evidence.stage_count != self.stage_count:
            raise fail("evidence", f"{evidence.stage_count} stages", f"{self.stage_count} stages")
        tally = self.tally(segment)
        tally.add_evidence(evidence)
        if self.pool is not tally:
            self.pool.add_evidence(evidence)

    def set_tally(self, segment: str, counters: Mapping[str, Any]) -> None:
        """Replace a segment's counters (from a snapshot or a store)."""
        self.tally(segment).set_counters(counters)

    def renew_pool(self) -> None:
        """Sum the segments again, after some were replaced."""
        if len(self.tallies) == 1:
            return
        self.pool = Tally(self.stage_count, recorder=self.recorder)
        for tally in self.tallies.values():
            self.pool.add(tally)
        self.pool.forget_recent()

    @property
    def rounds(self) -> int:
        """Rounds finished, by all writers."""
        return self.pool.rounds

    def evidence_for(self, tally: Tally) -> Evidence:
        """What a policy is to read for a segment: its own evidence and what the others lend."""
        recent = self.discount != 1.0
        if not self.borrows(tally):
            return tally.recent_evidence() if recent else tally.evidence()
        if recent:
            n, d = list(tally.recent_seen), list(tally.recent_disagreed)
            switched, twice = tally.recent_switched, tally.recent_switched_twice
            others = Tally(self.stage_count)
            for other in self.tallies.values():
                if other is not tally:
                    others.add(other)
            more_n, more_d = others.recent_seen, others.recent_disagreed
            more_switched, more_twice = others.recent_switched, others.recent_switched_twice
        else:
            pool = self.pool
            n, d = [*map(float, tally.seen)], [*map(float, tally.disagreed)]
            switched, twice = tally.switched, tally.switched_twice
            more_n = [a - b for a, b in zip(pool.seen, tally.seen, strict=True)]
            more_d = [a - b for a, b in zip(pool.disagreed, tally.disagreed, strict=True)]
            more_switched = pool.switched - tally.switched
            more_twice = pool.switched_twice - tally.switched_twice
        for at, lent in enumerate(more_n):
            share = min(1.0, self.strength / lent) if lent > 0 else 0.0
            n[at] += share * lent
            d[at] += share * more_d[at]
        share = min(1.0, self.strength / more_switched) if more_switched > 0 else 0.0
        return real_evidence(
            self.stage_count, n, d, switched + share * more_switched, twice + share * more_twice
        )

    def to_form(self) -> dict[str, Any]:
        """As a snapshot holds it."""
        segments = {}
        for name, tally in self.tallies.items():
            form: dict[str, Any] = {"counters": tally.to_counters()}
            if tally.fast is not None:
                form["carried"] = tally.fast.to_form()
            if tally.watch is not None:
                form["drift"] = tally.watch.to_form()
            segments[name] = form
        form = {"begun": self.begun, "segments": segments}
        if len(self.tallies) > 1:
            # Real sums depend on their order in the last bit, so the sum over segments is kept too.
            form["pool"] = self.pool.to_counters()
        return form

    def restore(self, form: Any) -> None:
        """Take what `to_form` gave; nothing is changed if it cannot be read."""
        if not isinstance(form, Mapping):
            raise fail("state", form, "an object")
        known_keys("state", form, ("begun", "segments", "pool"))
        if not isinstance(form.get("segments"), Mapping):
            raise fail("segments", form.get("segments"), "an object, a field for each segment")
        begun = whole_number("begun", form.get("begun"), least=0)
        before = (self.begun, self.others, self.tallies, self.pool)
        self.clear()
        try:
            for name, part in form["segments"].items():
                if not isinstance(part, Mapping) or "counters" not in part:
                    raise StopwiseError(f"segments[{name!r}]: the field 'counters' is missing")
                known_keys(f"segments[{name!r}]", part, ("counters", "carried", "drift"))
                self.set_tally(name, part["counters"])
                tally = self.tallies[name]
                if tally.watch is not None and "drift" in part:
                    tally.watch.restore(part["drift"])
            for name, part in form["segments"].items():
                tally = self.tallies[name]
                if tally.fast is not None:
                    tally.fast.restore(part.get("carried"), tally.seen, tally.disagreed)
        except StopwiseError:
            self.begun, self.others, self.tallies, self.pool = before
            raise
        self.begun = begun
        self.renew_pool()
        self._restore_pool(form.get("pool"))

    def _restore_pool(self, counters: Any) -> None:
        """Take the sum that was saved, if it is the sum of the segments but for its last bits."""
        summed = self.pool.to_counters()
        if (
            len(self.tallies) > 1
            and isinstance(counters, Mapping)
            and summed.keys() == set(counters)
        ):
            values = [(value, counters[name]) for name, value in summed.items()]
            if all(isinstance(b, (int, float)) and math.isclose(a, b) for a, b in values):
                self.pool.set_counters(counters)
