"""What has happened so far, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stopwise.live.counters.tally import Tally


@dataclass(frozen=True)
class Report:
    """Counts of the rounds that have ended.

    Attributes:
        rounds: how many; `abandoned` of them before their depth.
        calls: how often each stage was called.
        answers: how many rounds each stage answered.
        failures: how often each stage raised or ran out of time.
        spent: the cost of all rounds.
        advised: in the modes shadow and advise, how often each stage was advised.
        advised_cost: what following the advice would have cost.
        saved: `spent` less that, over the rounds that had advice.
        advised_agreement: how often the advised answer agreed with the one given; None if unknown.
            This is agreement, not accuracy: without labels nobody knows who was right.
    """

    stages: tuple[str, ...]
    rounds: int
    abandoned: int
    calls: tuple[int, ...]
    answers: tuple[int, ...]
    failures: tuple[int, ...]
    spent: float
    advised: tuple[int, ...]
    advised_cost: float
    saved: float
    advised_agreement: float | None


def report_of(tally: Tally, stages: Sequence[str]) -> Report:
    """Read a tally.

    >>> report_of(Tally(2), ("a", "b")).calls
    (0, 0)
    """
    return Report(
        stages=tuple(stages),
        rounds=tally.rounds,
        abandoned=tally.abandoned,
        calls=tuple(sum(tally.lengths[stage:]) for stage in range(tally.stage_count)),
        answers=tuple(tally.stops),
        failures=tuple(tally.failures),
        spent=float(tally.spent),
        advised=tuple(tally.advised),
        advised_cost=float(tally.advised_cost),
        saved=float(tally.advised_paid - tally.advised_cost),
        advised_agreement=(
            tally.advised_same / tally.advised_known if tally.advised_known else None
        ),
    )
