"""An append-only log of rounds: a line of JSON each, from which all counts are rebuilt."""

from __future__ import annotations

import json
import mmap
import os
import secrets
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stopwise.abstentions import Abstentions
from stopwise.checks import StopwiseError, fail, names_settings, parse_json_object
from stopwise.evidence import Evidence
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.limits import check_whole, enough_for_sums
from stopwise.live.record import RoundRecord, added_of
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import (
    Attached,
    Changes,
    Durability,
    StoreError,
    Survives,
    Writing,
    check_survives,
)
from stopwise.live.stores.holding import hold, let_go
from stopwise.live.stores.log_lines import (
    check_log_header,
    evidence_of,
    first_line,
    has_begun,
    read_rounds,
)
from stopwise.live.watching.drift import DriftAlarm, DriftWatch
from stopwise.situations.transitions import Transitions
from stopwise.storage import as_path, flush_folder

try:
    import fcntl
except ImportError:  # not on Windows: there, running two writers is not caught
    fcntl = None  # type: ignore[assignment]

_AMOUNT = struct.Struct("d")


class RoundLog:
    """A log for one process and the children that it forks.

    The first line says what is logged, each other line is a round. A line that was cut short by a
    crash was never kept: it is taken away on opening. Any other line that cannot be read is
    refused, because guessing would lose rounds; so is a file that does not begin as such a log.
    If the file is moved, deleted or cut short while in use, rounds stay queued until it is back.

    Args:
        path: of the file, which is made if it does not exist, readable by its owner alone.
        survives: "kill" hands every line to the system before a round counts as kept; "power cut"
            also waits until it is on the disk (milliseconds a write on most disks).
        keep_outputs: write the outputs too, as JSON where that is possible and as text elsewhere.
        durability: "round" or "behind", see `stopwise.live.stores.base.Writing`, as for
            `flush_seconds`, `flush_rounds` and `queue`.

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

    @names_settings
    def __init__(
        self,
        path: str | Path,
        *,
        survives: Survives = "kill",
        keep_outputs: bool = False,
        durability: Durability = "round",
        flush_seconds: float = 0.1,
        flush_rounds: int = 64,
        queue: int = 10_000,
    ) -> None:
        self.path = as_path("path", path)
        self.writing = Writing(durability, flush_seconds, flush_rounds, queue)
        self._sync = check_survives(survives)
        self._keep_outputs = keep_outputs
        self._file = -1
        self._end = 0
        self._is_child = False
        # What parent and children have taken of a budget together: memory that they share.
        self._taken = mmap.mmap(-1, _AMOUNT.size)
        self._watch: DriftWatch | None = None
        self._abstentions: Abstentions = "leave out"
        self._items: ItemDecider | None = None

    def __repr__(self) -> str:
        return f"RoundLog({str(self.path)!r}, durability={self.writing.durability!r})"

    def attach(
        self,
        settings: LearnerSettings,
        seed: int,
        counters: SegmentCounters,
        watch: DriftWatch | None,
        items: ItemDecider | None = None,
    ) -> Attached:
        """Open, lock against a second writer, take away a cut line, count all rounds."""
        self._watch, self._items = watch, items
        self._abstentions = settings.abstentions
        if self._is_child:
            # The parent's file and lock are shared; what it had read is in memory already.
            return Attached(1 + secrets.randbelow(2**31))
        if self._file >= 0:
            raise StopwiseError(f"{self.path}: this log is in use by another learner")
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise StopwiseError(f"{self.path}: cannot be opened ({error.strerror})") from None
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise fail(str(self.path), "no file", "a file that can be written to")
            _lock(self._file, self.path)
            if items is not None:
                items.forget()
            if not self._replay(settings, seed, counters):
                self._write([first_line(settings, seed)])
                flush_folder(self.path.parent)
            if items is not None:
                self._begin_items(items)
        except BaseException:
            self.close()
            raise
        return Attached(0)

    def _begin_items(self, items: ItemDecider) -> None:
        """Decide by what the log holds; a rule that it does not know yet is written to it."""
        given, counts = items.given, items.memory.counts
        if given is not None and (counts is None or counts.binning.epoch != given.binning.epoch):
            self.add_transitions(given)
            items.memory.start_from(given)
        items.resume()

    def _replay(self, settings: LearnerSettings, seed: int, counters: SegmentCounters) -> bool:
        """Count what the file holds; False if not even its first line is whole."""
        good = 0
        with self.path.open("rb") as file:
            for at, line in enumerate(file):
                if not line.endswith(b"\n"):
                    if at == 0 and not has_begun(line):
                        raise fail(
                            f"{self.path}", line[:40], "a log of rounds; it is left as it is"
                        )
                    break  # cut short: never kept
                form = parse_json_object(f"{self.path}, line {at + 1}", line)
                if at == 0:
                    _check_header(str(self.path), form, settings, seed)
                else:
                    self._count(form, counters, f"{self.path}, line {at + 1}")
                good += len(line)
        check_whole(f"{self.path}: round", counters.begun)
        os.ftruncate(self._file, good)
        self._end = good
        _AMOUNT.pack_into(self._taken, 0, counters.pool.spent)
        return good > 0

    def _count(self, form: Any, counters: SegmentCounters, where: str) -> None:
        try:
            if "evidence" in form:
                segment, evidence = evidence_of(form)
                counters.add_evidence(segment, evidence)
                return
            if "transitions" in form:
                if self._items is not None:
                    self._items.read_again(Transitions.from_dict(form["transitions"]))
                return
            record = RoundRecord.from_form(form, counters.stage_count)
            counters.apply(record)
        except StopwiseError as error:
            raise StopwiseError(f"{where}: {error}") from None
        if self._watch is not None:  # alarms of the past were raised when they came
            self._observe(self._watch, record)
        if self._items is not None and record.item is not None:
            self._items.replay(record.item)
        if record.writer:
            counters.others += 1
        else:
            counters.begun = max(counters.begun, record.sequence)

    def append(self, first: int, records: Sequence[RoundRecord]) -> Sequence[DriftAlarm]:
        """Write the rounds, in one piece."""
        self._write([r.to_text(keep_outputs=self._keep_outputs) + "\n" for r in records])
        watch = self._watch
        if watch is None:
            return ()
        return [alarm for record in records for alarm in self._observe(watch, record)]

    def _observe(self, watch: DriftWatch, record: RoundRecord) -> Sequence[DriftAlarm]:
        added = added_of(record, watch.stage_count, self._abstentions)
        return watch.observe(record.segment, added.pairs)

    def add_evidence(self, segment: str, evidence: Evidence) -> None:
        """Write evidence from elsewhere as a line of its own."""
        form = {"evidence": json.loads(evidence.to_json()), "segment": segment}
        self._write([json.dumps(form) + "\n"])

    def add_transitions(self, counts: Transitions) -> None:
        """Write transitions from elsewhere as a line of its own."""
        self._write([json.dumps({"transitions": counts.to_dict()}) + "\n"])

    def changes(self) -> Changes | None:
        """Nobody else writes here but children, whose rounds are read on the next opening."""
        return None

    def refresh(self) -> Changes | None:
        """The same."""
        return None

    def give_back(self, part: float) -> None:
        """Return what was granted and not spent."""
        with self._alone():
            (taken,) = _AMOUNT.unpack_from(self._taken)
            _AMOUNT.pack_into(self._taken, 0, taken - part)

    def grant(self, least: float, most: float, budget: float) -> float | None:
        """Take a part of the budget, which children that were forked spend from too."""
        with self._alone():
            (taken,) = _AMOUNT.unpack_from(self._taken)
            part: float = min(most, budget - taken)
            if least > enough_for_sums(part):
                return 0.0
            part = max(part, least)
            _AMOUNT.pack_into(self._taken, 0, taken + part)
        return part

    def grant_expired(self) -> bool:
        """Never: what a child was granted and did not spend comes back on the next opening."""
        return False

    def keep_alive(self) -> None:
        """Nobody else looks."""

    def _write(self, lines: Sequence[str]) -> None:
        if self._file < 0:
            raise StoreError(f"{self.path}: this log is closed")
        with self._alone():
            # What stayed of a write that failed is not written twice.
            there = self._check_place()
            data = b"".join(line for line in (text.encode() for text in lines) if line not in there)
            start = self._end
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._file, left) :]
                if self._sync:
                    os.fsync(self._file)
            except BaseException:
                # A full disk: whatever was written of it must not stay. If it does all the same,
                # the next write finds the file longer than it should be, and tries again.
                with suppress(OSError):
                    os.ftruncate(self._file, start)
                raise
            self._end = start + len(data)
            if self._moved():
                self._end = start
                with suppress(OSError):
                    os.ftruncate(self._file, start)
                raise self._gone()

    def _check_place(self) -> set[bytes]:
        """See that the file is still where and what it was; return the lines that are new in it."""
        if self._moved():
            raise self._gone()
        size = os.fstat(self._file).st_size
        if size < self._end:
            raise StoreError(
                f"{self.path}: the log was cut from {self._end} to {size} bytes by another program;"
                " rounds stay queued until it is put back"
            )
        if size == self._end:
            return set()
        # A child or the parent has written, or a write of ours failed and could not be taken back.
        # Opening the file here would give the lock away.
        added = os.pread(self._file, size - self._end, self._end)
        whole = added.rfind(b"\n") + 1
        if whole < len(added):
            os.ftruncate(self._file, self._end + whole)
        self._end += whole
        return set(added[:whole].splitlines(keepends=True))

    def _moved(self) -> bool:
        mine = os.fstat(self._file)
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return True
        return (mine.st_ino, mine.st_dev) != (there.st_ino, there.st_dev)

    def _gone(self) -> StoreError:
        return StoreError(
            f"{self.path}: the log was moved or deleted while in use; rounds stay queued until it"
            " is put back"
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep parent and children from writing at the same time."""
        if fcntl is None:
            yield
            return
        # This kind of lock belongs to the process: a forked child does not have its parent's.
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def read_rounds(self) -> Iterator[RoundRecord]:
        """The rounds of the log, also while it is written."""
        return read_rounds(self.path)

    def before_fork(self) -> None:
        """Parent and child may both go on with the file."""

    def forked(self) -> None:
        """The file is shared with the parent; this process is another writer."""
        self._is_child = True

    def close(self) -> None:
        """Let go of the file, and so of its lock."""
        if self._file >= 0:
            file, self._file = self._file, -1
            let_go(file)
            os.close(file)

    def __del__(self) -> None:
        # A learner that is dropped without `close` must not keep the file from the next one.
        with suppress(Exception):
            self.close()


def _check_header(what: str, form: Any, settings: LearnerSettings, seed: int) -> None:
    # With the seed it was begun with, a learner goes on exactly; with another, it forks.
    settings.check_same(check_log_header(what, form), what, exactly=form.get("seed") == seed)


def _lock(file: int, path: Path) -> None:
    holder = hold(file)
    if holder is not None:
        raise StopwiseError(
            f"{path}: {holder} is writing this log; close() that one first, or share evidence"
            " through a SqliteStore"
        )
