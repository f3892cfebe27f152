"""What a store of rounds must do. Three are here: `RoundLog`, `SqliteStore`, `PostgresStore`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from stopwise.checks import StopwiseError, fail, finite_number, one_of, whole_number
from stopwise.evidence import Evidence
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.record import RoundRecord
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.connection import Connection
from stopwise.live.watching.drift import DriftAlarm, DriftWatch
from stopwise.situations.transitions import Transitions

Survives = Literal["kill", "power cut"]
"""What a kept round survives. Against a power cut every write waits for the disk."""

Durability = Literal["round", "behind"]
"""Whether ending a round waits until it is kept, or the round is kept a moment later."""


class StoreError(StopwiseError):
    """Rounds could not be kept. The message says whether they are still queued.

    >>> import tempfile
    >>> from stopwise.live import Learner, RoundLog
    >>> folder = tempfile.TemporaryDirectory()
    >>> learner = Learner([0, 1], "fixed", store=RoundLog(folder.name + "/rounds.jsonl"))
    >>> round = learner.begin()
    >>> learner.close(); folder.cleanup()
    >>> round.observe("yes"); round.observe("no"); round.end()
    Traceback (most recent call last):
    ...
    stopwise.live.stores.base.StoreError: store: this learner is closed, so the round is ...
    """


@dataclass(frozen=True)
class Writing:
    """How rounds are handed to a store.

    Args:
        durability: "round": ending a round returns when it is kept; "behind": it returns at once,
            and the round is kept within `seconds` or when `rounds` are waiting.
        seconds, rounds: when a batch is written behind.
        queue: how many rounds may wait while the store cannot be written; beyond it rounds are
            not recorded (their cost is counted all the same).

    >>> Writing("never")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: durability: got 'never', but need 'round' or 'behind'
    """

    durability: Durability = "round"
    seconds: float = 0.1
    rounds: int = 64
    queue: int = 10_000

    def __post_init__(self) -> None:
        one_of("durability", self.durability, get_args(Durability))
        accepted = "a number of seconds above 0"
        if finite_number("flush_seconds", self.seconds, accepted) <= 0:
            raise fail("flush_seconds", self.seconds, accepted)
        whole_number("flush_rounds", self.rounds, least=1)
        whole_number("queue", self.queue, least=1)


@dataclass(frozen=True)
class Attached:
    """What a store says when a learner is attached: its writer's number, how many it has kept."""

    writer: int
    kept: int = 0


@dataclass(frozen=True)
class Changes:
    """What others have added to a shared store: the counters of the segments concerned.

    Attributes:
        segments: all counters of each of them, this writer's kept rounds included.
        others: how many rounds all other writers have finished.
    """

    segments: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    others: int = 0


class Companion(Protocol):
    """What a program keeps beside the counters of a database, in the same transactions.

    So that its own rows and the counters never differ, whenever a process is killed.
    """

    def admit(self, connection: Connection, records: Sequence[RoundRecord]) -> list[RoundRecord]:
        """Write what belongs to these rounds; return those that are to be counted.

        Called before anything else is written, again if the transaction had to be tried again.
        """

    def note(self, connection: Connection, alarms: Sequence[DriftAlarm]) -> None:
        """Keep the alarms that these rounds raised."""


class Store(Protocol):
    """Where finished rounds are kept.

    All methods but `read_rounds` are called from one thread, which belongs to the learner: no
    signal handler runs there, so that no interrupt can cut a write in two.
    """

    writing: Writing

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        counters: SegmentCounters,
        watch: DriftWatch | None,
        items: ItemDecider | None = None,
    ) -> Attached:
        """Open, refuse other settings, fill the counters; after a fork, become another writer.

        `items` is given where rounds are decided per item: its transitions are kept too.
        """

    def append(self, first: int, records: Sequence[RoundRecord]) -> Sequence[DriftAlarm]:
        """Keep rounds `first`, `first` + 1, ... of this writer: all or none, each exactly once.

        Those that are kept already (the answer to an earlier try was lost) are passed over.
        """

    def changes(self) -> Changes | None:
        """What others have added since this was last asked; None where nobody has."""

    def refresh(self) -> Changes | None:
        """The same, asked for by the user: look whether there is anything new."""

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Keep evidence from elsewhere."""

    def add_transitions(self, counts: Transitions) -> None:
        """Keep transitions from elsewhere, counted by the same bins."""

    def grant(self, least: float, most: float, budget: float) -> float | None:
        """Take a part of a budget that all writers share; None where the store is not shared."""

    def give_back(self, part: float) -> None:
        """Return what was granted and not spent."""

    def grant_expired(self) -> bool:
        """Whether what was granted may be another's by now; asked in any thread."""

    def keep_alive(self) -> None:
        """Called now and then: show others that this writer lives."""

    def read_rounds(self) -> Iterator[RoundRecord]:
        """The rounds that were kept, of all writers."""

    def before_fork(self) -> None:
        """Close, in the parent, what neither process may use after a fork; it is opened again."""

    def forked(self) -> None:
        """Let go, in a child process, of what belongs to the parent."""

    def close(self) -> None:
        """Let go of file or connection."""


def check_survives(survives: str) -> bool:
    """Whether every write must reach the disk.

    >>> check_survives("kill")
    False
    """
    kept: Survives = one_of("survives", survives, get_args(Survives))
    return kept == "power cut"
