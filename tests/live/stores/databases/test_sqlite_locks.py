"""SQLite's locks belong to a process and a file: what takes them away loses rounds."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from stopwise.live import Learner, SqliteStore
from stopwise.live.stores.databases.sqlite_connection import SqliteConnection, use_journal

START = """
import os, subprocess, sys
from stopwise.live import Learner, SqliteStore

def build():
    return Learner([0, 1], "fixed:stage=1", store=SqliteStore(sys.argv[1], keep_rounds=True))

def play(learner, number):
    for _ in range(number):
        with learner.begin() as round:
            round.observe(1)
            round.observe(1)
"""

OTHER_PROCESS = """
code = sys.argv[2]
def visit():
    subprocess.run([sys.executable, "-c", code, sys.argv[1]], check=True)
"""

TWO_LEARNERS = """
one = build()
play(one, 10)
two = build()
play(two, 10)
visit()
play(one, 10)
play(two, 9)
os._exit(0)
"""

READING = """
one = build()
play(one, 20)
assert len(list(one._books.queue.store.read_rounds())) == 20
visit()
play(one, 19)
os._exit(0)
"""

INSPECTING = """
from stopwise.live.stores.inspecting import inspect
one = build()
play(one, 20)
for _ in range(50):
    assert inspect(sys.argv[1]).rounds[""] == 20
visit()
play(one, 19)
os._exit(0)
"""

PARENT_CLOSES = """
one = build()
play(one, 10)
first, second = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    play(one, 10)
    os.write(first[1], b"x")
    os.read(second[0], 1)
    play(one, 19)
    os._exit(0)
os.read(first[0], 1)
one.close()
visit()
os.write(second[1], b"x")
assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""

PARENT_GOES_ON = """
one = build()
play(one, 10)
child = os.fork()
if child == 0:
    play(one, 10)
    one.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
visit()
play(one, 19)
os._exit(0)
"""


STORIES = [TWO_LEARNERS, READING, INSPECTING, PARENT_CLOSES, PARENT_GOES_ON]


@pytest.mark.parametrize("story", STORIES)
def test_rounds_stay_when_another_process_closes_the_file(story: str, tmp_path: Path) -> None:
    """Closing the last connection folds the journal into the file: it must really be the last."""
    visitor = START + "one = build()\nplay(one, 1)\none.close()\n"
    code = START + OTHER_PROCESS + story
    path = tmp_path / "rounds.db"
    subprocess.run([sys.executable, "-c", code, str(path), visitor], check=True, timeout=60)
    store = SqliteStore(path, keep_rounds=True)
    with Learner([0, 1], "fixed:stage=1", store=store) as learner:
        assert learner.rounds == 40
        assert len(list(store.read_rounds())) == 40


class Refusing:
    """A connection that is refused a number of times, as one of two is that make the journal."""

    def __init__(self, times: int, code: int) -> None:
        self.times, self.code = times, code

    def execute(self, sql: str) -> None:
        if self.times:
            self.times -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error


def test_the_journal_is_asked_for_again() -> None:
    busy: Any = Refusing(3, sqlite3.SQLITE_BUSY)
    use_journal(busy, 60.0)
    assert busy.times == 0
    for patience, code in ((60.0, sqlite3.SQLITE_IOERR), (-1.0, sqlite3.SQLITE_BUSY)):
        other: Any = Refusing(3, code)
        with pytest.raises(sqlite3.OperationalError):
            use_journal(other, patience)
        assert other.times == 2


def test_a_new_file_is_opened_by_many_at_the_same_moment(tmp_path: Path) -> None:
    """One in 60 of such files refused somebody ("database is locked")."""
    for number in range(100):
        together = threading.Barrier(4)
        errors: list[Exception] = []

        def open_it(path: Path, together: Any = together, errors: Any = errors) -> None:
            together.wait()
            try:
                SqliteConnection(path, 60.0, sync=False).close()
            except sqlite3.Error as error:
                errors.append(error)

        threads = [
            threading.Thread(target=open_it, args=(tmp_path / f"{number}.db",)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
