"""What a database that several learners share says of the transitions it holds."""

from __future__ import annotations

from dataclasses import dataclass

from stopwise.situations.transitions import Transitions


@dataclass(frozen=True)
class ItemState:
    """What rounds are decided by, the same for all who share a database.

    Attributes:
        ruled: the counts that the rule in force is made from; None before the first bins are cut.
        settled: whether the bins are not cut again.
        base: rounds that a fitted rule brought.
    """

    ruled: Transitions | None
    settled: bool
    base: int
