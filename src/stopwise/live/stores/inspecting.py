"""Looking into files of rounds without opening them as a learner would; repairing what can be."""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stopwise.checks import StopwiseError, fail, parse_json_object
from stopwise.live.record import RoundRecord
from stopwise.live.stores.log_lines import check_log_header
from stopwise.live.stores.snapshot import read_snapshot
from stopwise.storage import write_whole

_SQLITE = b"SQLite format 3\0"
_SMALLEST = 512  # bytes of a database


@dataclass
class FileStatus:
    """What is in a file of rounds.

    Attributes:
        path: of the file.
        kind: "log", "sqlite" or "snapshot".
        stages: names of the stages, for each cascade in it.
        rounds: how many, for each cascade.
        segments: rounds of each segment, for each cascade.
        spent: the cost of all rounds, for each cascade.
        writers: how many learners have written it.
        problems: what is wrong with it, in words; empty where nothing is.
    """

    path: str
    kind: str
    stages: dict[str, list[str]] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    segments: dict[str, dict[str, int]] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    writers: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.kind}, {self.writers} writers"]
        for cascade, rounds in self.rounds.items():
            name = f"cascade {cascade}: " if cascade else ""
            stages = ", ".join(self.stages.get(cascade, []))
            spent = self.spent.get(cascade, 0.0)
            lines.append(f"{name}{rounds} rounds, spent {spent:g}; stages {stages}")
            parts = self.segments.get(cascade, {})
            if set(parts) - {""}:
                most = sorted(parts.items(), key=lambda part: -part[1])[:10]
                shown = ", ".join(f"{segment or '(none)'} {number}" for segment, number in most)
                lines.append(f"{len(parts)} segments; the largest: {shown}")
        lines += [f"problem: {problem}" for problem in self.problems] or ["no problem found"]
        return "\n".join(lines)


def kind_of(path: str | Path) -> str:
    """What kind of file it is: "log", "sqlite" or "snapshot"; anything else is refused."""
    source = Path(path)
    if is_sqlite(source):
        return "sqlite"
    try:
        with source.open("rb") as file:
            start = file.read(200)
    except OSError as error:
        raise StopwiseError(f"{source}: cannot be read ({error.strerror})") from None
    if start.startswith(_SQLITE):  # a damaged one
        return "sqlite"
    if start.startswith(b'{"kind": "stopwise rounds"'):
        return "log"
    if start.startswith(b'{"kind": "stopwise learner"'):
        return "snapshot"
    raise fail(str(source), start[:30], "a log of rounds, a SQLite store or a snapshot")


def is_sqlite(path: str | Path) -> bool:
    """Whether a file is a SQLite database, as SQLite itself says.

    A file that a learner of this process writes must not be opened in any other way: closing it
    would drop the locks that SQLite has on it, and another process could cut its log.
    """
    source = Path(path)
    try:
        if not source.is_file() or source.stat().st_size < _SMALLEST:
            return False
        if not os.access(source, os.R_OK):
            return False
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as one:
            one.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        return True  # locked, or a log that cannot be read: a database all the same
    except (sqlite3.DatabaseError, OSError):
        return False
    return True


def inspect(path: str | Path) -> FileStatus:
    """What is in a file of rounds; it is only read."""
    kind = kind_of(path)
    status = FileStatus(str(path), kind)
    if kind == "log":
        _inspect_log(Path(path), status)
    elif kind == "sqlite":
        _inspect_sqlite(Path(path), status)
    else:
        form = read_snapshot(path)
        segments = form["state"]["segments"]
        status.stages[""] = list(form["settings"]["stages"])
        counters = {name: part["counters"] for name, part in segments.items()}
        status.segments[""] = {name: part.get("rounds", 0) for name, part in counters.items()}
        status.rounds[""] = sum(status.segments[""].values())
        status.spent[""] = sum(part.get("spent", 0.0) for part in counters.values())
        status.writers = 1
    return status


def _inspect_log(path: Path, status: FileStatus) -> None:
    good, bad, tail, stages = _log_lines(path)
    status.stages[""] = stages
    segments: Counter[str] = Counter()
    writers = set()
    for _, record in good:
        if record is not None:
            segments[record.segment] += 1
            writers.add(record.writer)
            status.spent[""] = status.spent.get("", 0.0) + record.cost
    status.segments[""] = dict(segments)
    status.rounds[""] = sum(segments.values())
    status.writers = len(writers)
    status.problems += [f"line {at}: {why}" for at, _, why in bad]
    if tail:
        status.problems.append(
            f"the last line was cut short ({len(tail)} bytes); it was never kept"
        )


def _log_lines(
    path: Path,
) -> tuple[list[tuple[bytes, RoundRecord | None]], list[tuple[int, bytes, str]], bytes, list[str]]:
    """The lines that can be read, those that cannot, what is cut short, the stages."""
    good: list[tuple[bytes, RoundRecord | None]] = []
    bad: list[tuple[int, bytes, str]] = []
    stages: list[str] = []
    with path.open("rb") as file:
        for at, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return good, bad, line, stages
            try:
                form = parse_json_object("this line", line)
                if at == 1:
                    stages = list(check_log_header(str(path), form)["stages"])
                    good.append((line, None))
                elif "evidence" in form or "transitions" in form:
                    good.append((line, None))
                else:
                    good.append((line, RoundRecord.from_form(form, len(stages))))
            except StopwiseError as error:
                if at == 1:
                    raise
                bad.append((at, line, str(error)))
    return good, bad, b"", stages


def _inspect_sqlite(path: Path, status: FileStatus) -> None:
    def read(connection: sqlite3.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return connection.execute(sql, values).fetchall()

    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            for kind, name in read(
                connection, "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')"
            ):
                # Asking a view that somebody else has made may take for ever.
                status.problems.append(f"holds a {kind}, {name!r}: not made by a learner")
            if status.problems:
                return
            for (found,) in read(connection, "PRAGMA integrity_check"):
                if found != "ok":
                    status.problems.append(str(found))
            status.writers = read(connection, "SELECT COUNT(*) FROM stopwise_writers")[0][0]
            for cascade, settings, rounds in read(
                connection, "SELECT cascade, settings, rounds FROM stopwise_cascades"
            ):
                try:
                    form = parse_json_object("settings", settings)
                    status.stages[cascade] = [str(name) for name in form.get("stages", ())]
                except (StopwiseError, TypeError) as error:
                    status.problems.append(f"settings of cascade {cascade!r}: {error}")
                status.rounds[cascade] = rounds
                sums = (
                    "SELECT segment, value FROM stopwise_counters WHERE cascade = ? AND counter = ?"
                )
                parts = read(connection, sums, cascade, "rounds")
                status.segments[cascade] = {str(name): _number(value) for name, value in parts}
                costs = read(connection, sums, cascade, "spent")
                status.spent[cascade] = sum(_number(value) for _, value in costs)
                counted = sum(status.segments[cascade].values())
                if counted != rounds:
                    status.problems.append(f"{rounds} rounds, but the segments sum to {counted}")
                held = read(
                    connection,
                    "SELECT COALESCE(SUM(held), 0) FROM stopwise_writers"
                    " WHERE cascade = ? AND held > 0",
                    cascade,
                )[0][0]
                if held > 0:
                    status.problems.append(
                        f"{held:g} of a budget is held by learners that are running or have died"
                    )
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        status.problems.append(f"cannot be read as a store ({error})")


def _number(value: Any) -> Any:
    """A value of a counter, which a file from elsewhere may call anything."""
    good = isinstance(value, (int, float)) and math.isfinite(value)
    return value if good and value != int(value) else int(value) if good else 0


def repair(path: str | Path) -> list[str]:
    """Repair a file that no learner has open; say what was done. What is taken out is kept beside.

    A log loses its cut line and the lines that cannot be read, which go to `FILE.unreadable`. In a
    SQLite store, money that learners held back when they died becomes free again.
    """
    source = Path(path)
    kind = kind_of(source)
    done: list[str] = []
    if kind == "log":
        good, bad, tail, _ = _log_lines(source)
        if bad or tail:
            aside = source.with_name(source.name + ".unreadable")
            before = aside.read_bytes() if aside.exists() else b""
            cut = tail + b"\n" if tail else b""
            taken = b"".join(line for _, line, _ in bad) + cut
            write_whole(aside, before + taken, private=True)
            write_whole(source, b"".join(line for line, _ in good))
            done.append(f"{len(bad) + bool(tail)} lines were taken out; they are in {aside}")
    elif kind == "sqlite":
        connection = sqlite3.connect(source, timeout=10)
        try:
            with connection:
                freed = connection.execute(
                    "UPDATE stopwise_writers SET held = 0 WHERE held <> 0"
                ).rowcount
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.DatabaseError as error:
            raise StopwiseError(f"{source}: cannot be repaired ({error})") from None
        finally:
            connection.close()
        if freed:
            done.append(f"what {freed} learners held back of a budget is free again")
    return done
