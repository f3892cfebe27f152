"""What a store of rounds must do. Two are here: `RoundLog` and `SqliteStore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from stopwise.checks import fail
from stopwise.evidence import Evidence
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.record import RoundRecord
from stopwise.live.settings import LearnerSettings
from stopwise.live.watching.drift import DriftWatch

Survives = Literal["kill", "power cut"]
"""What an acknowledged round survives. Against a power cut every round waits for the disk."""


class Store(Protocol):
    """Where finished rounds are kept. A round is acknowledged when `append` has returned."""

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        state: SegmentCounters,
        watch: DriftWatch | None,
    ) -> int:
        """Open, refuse other settings, fill the state; return the number of this writer."""

    def append(self, records: Sequence[RoundRecord]) -> bool:
        """Keep rounds. True if others have written too, so that the state must be read again."""

    def load_into(self, state: SegmentCounters) -> None:
        """Read the state again."""

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Keep evidence from elsewhere."""

    def close(self) -> None:
        """Let go of the file."""


def check_survives(survives: str) -> bool:
    """Whether every write must reach the disk.

    >>> check_survives("kill")
    False
    """
    if survives not in ("kill", "power cut"):
        raise fail("survives", survives, "'kill' or 'power cut'")
    return survives == "power cut"
