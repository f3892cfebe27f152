"""What a policy is to read for a segment: its own evidence and what the other segments lend."""

from __future__ import annotations

from stopwise.evidence import Evidence
from stopwise.live.counters.distributions.lend import lend
from stopwise.live.counters.tally import Tally, real_evidence


def lent_evidence(tally: Tally, pool: Tally, strength: float, *, recent: bool) -> Evidence:
    """The evidence of a segment, with that of the others counted for at most `strength` rounds.

    Args:
        tally: the segment's own counters.
        pool: the counters of all segments together.
        strength: how many rounds the others may count for, for each pair.
        recent: whether to read discounted counts.

    >>> own, pool = Tally(2), Tally(2)
    >>> pool.values[pool.layout.seen] = 40
    >>> pool.values[pool.layout.disagreed] = 10
    >>> lent_evidence(own, pool, 8.0, recent=False).counts(0, 1)
    (8.0, 2.0)
    """
    at = tally.layout
    if recent:
        first, second = at.recent_seen, at.recent_disagreed
        once, twice = at.recent_switched, at.recent_switched_twice
    else:
        first, second = at.seen, at.disagreed
        once, twice = at.switched, at.switched_twice
    n, d = lent_counts(tally, pool, strength, first, second)
    switched, switched_twice = tally.values[once], tally.values[twice]
    more_switched = pool.values[once] - switched
    share = min(1.0, strength / more_switched) if more_switched > 0 else 0.0
    return real_evidence(
        tally.stage_count,
        n,
        d,
        switched + share * more_switched,
        switched_twice + share * max(pool.values[twice] - switched_twice, 0),
    )


def lent_counts(
    tally: Tally, pool: Tally, strength: float, seen: int, disagreed: int
) -> tuple[list[float], list[float]]:
    """How often pairs were seen, and disagreed, with what the others lend.

    Args:
        tally, pool, strength: as above.
        seen, disagreed: where these counters start.

    >>> own, pool = Tally(2), Tally(2)
    >>> pool.values[pool.layout.seen] = 40
    >>> lent_counts(own, pool, 8.0, own.layout.seen, own.layout.disagreed)
    ([8.0], [0.0])
    """
    return lend(
        tally.of_pairs(seen), tally.of_pairs(disagreed),
        pool.of_pairs(seen), pool.of_pairs(disagreed), strength,
    )  # fmt: skip
