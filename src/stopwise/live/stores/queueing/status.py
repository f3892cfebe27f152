"""How a store is doing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreStatus:
    """How a store is doing.

    Attributes:
        kept: rounds of this learner that the store has.
        queued: rounds that wait to be written.
        failures: how often a batch could not be written; it stays queued and is tried again.
        unrecorded: rounds that could not even be queued; their cost is counted, nothing else.
        last_error: why a batch could not be written the last time; None since the last success.

    >>> import tempfile
    >>> from stopwise.live import Learner, RoundLog
    >>> folder = tempfile.TemporaryDirectory()
    >>> learner = Learner([0, 1], "fixed", store=RoundLog(folder.name + "/rounds.jsonl"))
    >>> with learner.begin() as round: round.observe(1); round.observe(2)
    >>> learner.store_status
    StoreStatus(kept=1, queued=0, failures=0, unrecorded=0, last_error=None)
    >>> learner.close(); folder.cleanup()
    """

    kept: int = 0
    queued: int = 0
    failures: int = 0
    unrecorded: int = 0
    last_error: str | None = None
