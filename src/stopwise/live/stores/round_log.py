"""An append-only log of rounds: a line of JSON each, from which all counts are rebuilt."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stopwise.checks import StopwiseError, fail, parse_json_object
from stopwise.evidence import Evidence
from stopwise.live.counters.pairs import added_by
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.record import RoundRecord
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import Survives, check_survives
from stopwise.live.watching.drift import DriftWatch
from stopwise.storage import flush_folder

VERSION = 1
_KIND = "stopwise rounds"


class RoundLog:
    """A log for one process. The first line says what is logged, each other line is a round.

    A line that was cut short by a crash was never acknowledged: it is taken away on opening. Any
    other line that cannot be read is refused, because guessing would lose rounds.

    Args:
        path: of the file, which is made if it does not exist.
        survives: "kill" hands every line to the system before a round is acknowledged; "power cut"
            also waits until it is on the disk (milliseconds a round on most disks).
        keep_outputs: write the outputs too, as JSON where that is possible and as text elsewhere.

    >>> import tempfile
    >>> from stopwise.live import Learner
    >>> folder = tempfile.TemporaryDirectory()
    >>> learner = Learner([0, 1], "fixed", store=RoundLog(folder.name + "/rounds.jsonl"))
    >>> with learner.begin() as round: round.observe(1); round.observe(2)
    >>> learner.close()
    >>> Learner([0, 1], "fixed", store=RoundLog(folder.name + "/rounds.jsonl")).rounds
    1
    >>> folder.cleanup()
    """

    def __init__(
        self, path: str | Path, *, survives: Survives = "kill", keep_outputs: bool = False
    ) -> None:
        self.path = Path(path)
        self._sync = check_survives(survives)
        self._keep_outputs = keep_outputs
        self._file = -1
        self._end = 0

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        state: SegmentCounters,
        watch: DriftWatch | None,
    ) -> int:
        """Open, lock against a second writer, take away a cut line, count all rounds."""
        if self._file >= 0:
            raise StopwiseError(f"{self.path}: this log is in use by another learner")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _lock(self._file, self.path)
            if os.fstat(self._file).st_size == 0 or not self._replay(settings, seed, state, watch):
                header = {
                    "kind": _KIND, "version": VERSION, "seed": seed, "settings": settings.to_form(),
                }  # fmt: skip
                self._end = 0
                self._write(json.dumps(header) + "\n")
                flush_folder(self.path.parent)
        except BaseException:
            self.close()
            raise
        return 0

    def _replay(
        self,
        settings: LearnerSettings,
        seed: int,
        state: SegmentCounters,
        watch: DriftWatch | None,
    ) -> bool:
        """Count what the file holds; False if not even its first line is whole."""
        good = 0
        with self.path.open("rb") as file:
            for at, line in enumerate(file):
                if not line.endswith(b"\n"):
                    break  # cut short: never acknowledged
                form = parse_json_object(f"{self.path}, line {at + 1}", line)
                if at == 0:
                    _check_header(str(self.path), form, settings, seed)
                else:
                    _count(form, state, watch)
                good += len(line)
        os.ftruncate(self._file, good)
        self._end = good
        return good > 0

    def append(self, records: Sequence[RoundRecord]) -> bool:
        """Write the rounds, in one piece."""
        lines = []
        for record in records:
            form = record.to_form()
            if not self._keep_outputs:
                form.pop("outputs", None)
            lines.append(json.dumps(form, default=str) + "\n")
        self._write("".join(lines))
        return False

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Write evidence from elsewhere as a line of its own."""
        form = {"evidence": json.loads(evidence.to_json()), "segment": segment}
        self._write(json.dumps(form) + "\n")

    def load_into(self, state: SegmentCounters) -> None:
        """Nobody else writes here: nothing to read."""

    def _write(self, text: str) -> None:
        if self._file < 0:
            raise StopwiseError(f"{self.path}: this log is closed")
        data = text.encode()
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._file, left) :]
            if self._sync:
                os.fsync(self._file)
        except BaseException:
            # A full disk, an interrupt: whatever was written of it must not stay.
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def close(self) -> None:
        """Let go of the file, and so of its lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_rounds(path: str | Path) -> Iterator[RoundRecord]:
    """The rounds of a log, also while a learner writes it; a line cut short is left out."""
    with Path(path).open("rb") as file:
        for at, line in enumerate(file):
            if not line.endswith(b"\n"):
                return
            form = parse_json_object(f"{path}, line {at + 1}", line)
            if at and "evidence" not in form:
                yield RoundRecord.from_form(form)


def _check_header(what: str, form: Any, settings: LearnerSettings, seed: int) -> None:
    if form.get("kind") != _KIND:
        raise fail(f"{what}: kind", form.get("kind"), f"{_KIND!r}; is this a log of rounds?")
    if form.get("version") != VERSION:
        raise fail(
            f"{what}: version", form.get("version"),
            f"version {VERSION}, the only one that this release reads",
        )  # fmt: skip
    # With the seed it was begun with, a learner goes on exactly; with another, it forks.
    settings.check_same(form.get("settings"), what, exactly=form.get("seed") == seed)


def _count(form: Any, state: SegmentCounters, watch: DriftWatch | None) -> None:
    if "evidence" in form:
        evidence = Evidence.from_json(json.dumps(form["evidence"]))
        state.add_evidence(form.get("segment", ""), evidence)
        return
    record = RoundRecord.from_form(form)
    state.apply(record)
    if watch is not None:  # alarms of the past were told when they came
        watch.observe(
            record.segment, added_by(record.answered, record.disagreed, record.undecided).pairs
        )
    state.begun = max(state.begun, record.sequence)


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows: there, running two writers is not caught
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StopwiseError(
            f"{path}: another process is writing this log; to share evidence between processes"
            " use SqliteStore"
        ) from None
