"""The counters of all segments as a snapshot holds them, checked on the way in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stopwise.checks import StopwiseError, fail, known_names
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import checked_counters
from stopwise.live.limits import check_whole


def counters_to_form(counters: SegmentCounters) -> dict[str, Any]:
    """As a snapshot holds it.

    >>> counters_to_form(SegmentCounters(2))
    {'begun': 0, 'segments': {}}
    """
    segments = {}
    for name, tally in counters.tallies.items():
        form: dict[str, Any] = {"counters": tally.to_counters()}
        carried = None if tally.fast is None else tally.fast.to_form()
        if carried is not None:
            form["carried"] = carried
        segments[name] = form
    form = {"begun": counters.begun, "segments": segments}
    if len(counters.tallies) > 1:
        # Real sums depend on their order in the last bit, so the sum over segments is kept too.
        form["pool"] = counters.pool.to_counters()
    return form


def restored(like: SegmentCounters, form: Any) -> SegmentCounters:
    """Counters like these that hold what `counters_to_form` gave; these are not changed.

    >>> restored(SegmentCounters(2), {"begun": 4, "segments": {}}).begun
    4
    """
    _check(form)
    made = like.empty()
    for name, part in form["segments"].items():
        made.tally(name).values = checked_counters(like.stage_count, part["counters"])
    for name, part in form["segments"].items():
        tally = made.tallies[name]
        if tally.fast is not None:
            tally.fast.restore(part.get("carried"), *tally.pair_counts())
    made.begun = int(form["begun"])
    made.renew_pool()
    _restore_pool(made, form.get("pool"))
    return made


def _check(form: Any) -> None:
    """Refuse what `counters_to_form` does not write."""
    if not isinstance(form, Mapping):
        raise fail("state", form, "an object")
    known_names("state", form, ("begun", "segments", "pool"))
    check_whole("begun", form.get("begun"))
    if not isinstance(form.get("segments"), Mapping):
        raise fail("segments", form.get("segments"), "an object, a field for each segment")
    for name, part in form["segments"].items():
        if not isinstance(part, Mapping) or not isinstance(part.get("counters"), Mapping):
            raise StopwiseError(f"segments[{name!r}]: the field 'counters' is missing")
        known_names(f"segments[{name!r}]", part, ("counters", "carried", "drift"))


def _restore_pool(made: SegmentCounters, counters: Any) -> None:
    """Take the sum that was saved, if it is the sum of the segments but for its last bits."""
    summed = made.pool.to_counters()
    if len(made.tallies) > 1 and isinstance(counters, Mapping) and summed.keys() == set(counters):
        values = [(value, counters[name]) for name, value in summed.items()]
        # An integer of any length can be compared, but not made a float of.
        numbers = all(type(b) in (int, float) and -1e300 < b < 1e300 for _, b in values)
        if numbers and all(math.isclose(a, b) for a, b in values):
            made.pool.set_counters(counters)
