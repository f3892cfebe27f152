"""SQLite's locks belong to a process and a file: what takes them away loses rounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stopwise.live import Learner, SqliteStore

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
