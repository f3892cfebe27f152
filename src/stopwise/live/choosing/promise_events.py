"""What becomes of a promise of agreement in one round."""

from __future__ import annotations

from stopwise.live.items.path import ItemPath
from stopwise.live.record import RoundRecord, same_answer


def promise_events(
    path: ItemPath, rule: int | None, record: RoundRecord, last: int
) -> tuple[str, ...] | None:
    """What became of the promise in a round, of `PROMISED`; None where nothing is promised.

    Args:
        path: whether the rule might stop the round early, and whether it was a look.
        rule: the stage at which the rule stops.
        record: what happened.
        last: the number of the last stage.
    """
    if path.promised is None:
        return None
    events = []
    if path.promised:
        events.append("open")
    if path.looked:
        events.append("look")
    if path.promised and rule is not None and rule < last:
        # What a look could not compare counts as a difference.
        if path.looked and not same_answer(record, rule):
            events.append("found")
    elif record.called <= last and not record.failed >> (record.called - 1) & 1:
        events.append("cut")
    return tuple(events)
