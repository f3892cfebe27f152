"""Ways to combine the outputs so far to one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def majority_vote(outputs: Sequence[Any]) -> Any:
    """A way to combine outputs: the commonest, and of equally common ones the latest.

    >>> majority_vote(["a", "b", "a"]), majority_vote(["a", "b"])
    ('a', 'b')
    """
    best, most = None, 0
    for output in outputs:
        votes = sum(1 for other in outputs if other == output)
        if votes >= most:
            best, most = output, votes
    return best
