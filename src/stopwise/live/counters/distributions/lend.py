"""What segments lend each other of a pair, from counts alone."""

from __future__ import annotations

from collections.abc import Sequence


def lend(
    seen: Sequence[float],
    disagreed: Sequence[float],
    all_seen: Sequence[float],
    all_disagreed: Sequence[float],
    strength: float,
) -> tuple[list[float], list[float]]:
    """How often pairs were seen, and disagreed, with what the others lend.

    Args:
        seen, disagreed: of the segment.
        all_seen, all_disagreed: of all segments together.
        strength: how many rounds the others may count for.

    >>> lend([0], [0], [40], [10], 8.0)
    ([8.0], [2.0])
    """
    pairs = [
        lend_pair(*counts, strength)
        for counts in zip(seen, disagreed, all_seen, all_disagreed, strict=True)
    ]
    return [n for n, _ in pairs], [d for _, d in pairs]


def lend_pair(
    seen: float, disagreed: float, all_seen: float, all_disagreed: float, strength: float
) -> tuple[float, float]:
    """The same of one pair.

    >>> lend_pair(0, 0, 40, 10, 8.0)
    (8.0, 2.0)
    """
    # What the others have; discounted sums carry rounding, which must not turn negative.
    lent = all_seen - seen
    if lent <= 0:
        return float(seen), float(disagreed)
    share = strength / lent if lent > strength else 1.0
    more = all_disagreed - disagreed
    if more < 0:
        more = 0.0
    elif more > lent:
        more = lent
    return seen + share * lent, disagreed + share * more
