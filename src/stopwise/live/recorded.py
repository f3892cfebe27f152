"""What a policy that counts rounds in its own way adds for a round."""

from __future__ import annotations

from stopwise.abstentions import Abstentions
from stopwise.evidence import Evidence
from stopwise.live.abstaining import stops_of
from stopwise.live.pairs import Added, pair_list, tokens
from stopwise.live.record import RoundRecord, added_of
from stopwise.policies.base import Policy


def recorded_by(
    policy: Policy, stage_count: int, record: RoundRecord, abstentions: Abstentions = "leave out"
) -> Added:
    """What a policy that counts in its own way adds for a round."""
    added = Evidence(stage_count)
    counted = added_of(record, stage_count, abstentions)
    called, answered = record.called, record.answered
    disagreed, undecided = record.disagreed, record.undecided
    if abstentions != "leave out":
        called = min(called, record.depth + 1)
        stops = stops_of(
            abstentions, stage_count, record.called, record.depth, answered, disagreed, undecided
        )
        answered, disagreed, undecided = stops.known, stops.disagreed, stops.undecided
    for at, (_, j) in enumerate(pair_list(called)):
        if undecided >> at & 1:  # it knows only answers, so the deeper one is left out
            answered &= ~(1 << j)
    prefix = tokens(answered, disagreed, called)
    policy.record(added, record.number, prefix)  # type: ignore[arg-type]
    pairs: list[tuple[int, bool]] = []
    for at, (i, j) in enumerate(pair_list(stage_count)):
        n, d = int(added.seen[i, j]), int(added.disagreed[i, j])
        pairs += [(at, True)] * d + [(at, False)] * (n - d)
    return Added(
        record.answered,
        tuple(pairs),
        int(added.switched),
        int(added.switched_twice),
        beyond=counted.beyond,
        uncounted=counted.uncounted,
    )
