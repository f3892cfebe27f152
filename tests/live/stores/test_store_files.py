"""Files of stores: of other programs, moved, cut short, private, of the first version."""

import json
import os
import sqlite3
import stat
from contextlib import closing
from typing import Any

import pytest

from stopwise import StopwiseError
from stopwise.live import Learner, RoundLog, SqliteStore, StoreError, read_rounds
from store_kinds import STAGES


@pytest.mark.parametrize(
    "content", [b"my diary", b"name,age", b'{"kind": "other", "x": 1}', b"\x00\x01\x02", b"{"]
)
def test_a_file_of_another_program_is_left_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StopwiseError):
        Learner([0, 1], store=RoundLog(path))
    assert path.read_bytes() == content


@pytest.mark.parametrize("place", [".", "none/rounds", "/dev/null"])
@pytest.mark.parametrize("kind", [RoundLog, SqliteStore])
def test_what_cannot_be_opened_is_refused_by_name(tmp_path, kind, place):
    with pytest.raises(StopwiseError, match=str(tmp_path / place)):
        Learner([0, 1], store=kind(tmp_path / place))


@pytest.mark.parametrize("how", ["deleted", "renamed", "rotated", "cut"])
def test_a_log_that_is_moved_under_a_running_process_acknowledges_nothing(tmp_path, play, how):
    path, aside = tmp_path / "rounds.jsonl", tmp_path / "aside.jsonl"
    learner = Learner(STAGES, "fixed", store=RoundLog(path))
    play(learner, 5)
    whole = path.read_bytes()
    if how == "deleted":
        os.link(path, aside)
        path.unlink()
    elif how in ("renamed", "rotated"):
        path.rename(aside)
        if how == "rotated":
            path.write_text("")
    else:
        os.truncate(path, 0)
    with pytest.raises(StoreError, match=r"moved or deleted|was cut"):
        play(learner, 1)
    assert learner.store_status.queued == 1
    if how == "cut":
        path.write_bytes(whole)
    else:
        aside.replace(path)
    play(learner, 1)
    learner.close()
    assert len(list(read_rounds(path))) == 7


def test_half_a_line_that_cannot_be_taken_away_is_not_glued_to_the_next(
    tmp_path, monkeypatch, play
):
    path = tmp_path / "rounds.jsonl"
    learner = Learner(STAGES, "fixed", store=RoundLog(path))
    play(learner, 3)
    write, truncate = os.write, os.ftruncate
    mine = path.stat().st_ino

    def half(file, data):
        if os.fstat(file).st_ino != mine:
            return write(file, data)
        write(file, bytes(data)[: len(data) // 2])
        raise OSError(28, "No space left on device")

    def no_truncate(file, length):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", half)
    monkeypatch.setattr(os, "ftruncate", no_truncate)
    with pytest.raises(StoreError):
        play(learner, 1)
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", truncate)
    play(learner, 2)
    learner.close()
    assert len(list(read_rounds(path))) == 6


AWKWARD = [
    {1: "a", "1": "b"},
    10**5000,
    float("nan"),
    {"x": {2, 3}},
    b"bytes",
    "\ud800",
]


def test_outputs_that_json_cannot_hold_are_written_as_text(kind):
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    cycle: list[Any] = []
    cycle.append(cycle)
    learner = kind.learner("fixed", keep_outputs=True, stages=[0, 1])
    for output in [*AWKWARD, deep, cycle]:
        with learner.begin() as round:
            round.observe("x")
            round.observe(output)
    learner.close()
    while deep:  # freed level by level
        deep = deep[0]
    again = kind.learner("fixed", keep_outputs=True, stages=[0, 1])
    assert again.rounds == len(AWKWARD) + 2
    texts = [record.outputs[1] for record in kind.store().read_rounds()]
    assert texts[0] == "{1: 'a', '1': 'b'}"
    again.close()


def test_new_files_are_private_and_modes_and_links_are_respected(tmp_path, play):
    os.umask(os.umask(0o022))
    for name, store in (("r.jsonl", RoundLog), ("r.db", SqliteStore)):
        learner = Learner(STAGES, store=store(tmp_path / name))
        play(learner, 1)
        learner.close()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    learner.save(tmp_path / "s.json")
    assert stat.S_IMODE((tmp_path / "s.json").stat().st_mode) == 0o600
    (tmp_path / "s.json").chmod(0o644)
    (tmp_path / "link.json").symlink_to("s.json")
    learner.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert stat.S_IMODE((tmp_path / "s.json").stat().st_mode) == 0o644


def test_a_file_of_the_first_version_is_taken_over(tmp_path, play):
    path = tmp_path / "old.db"
    new = Learner(STAGES, "fixed", seed=4, store=SqliteStore(tmp_path / "new.db"))
    settings = json.dumps(new.settings.to_form())
    new.close()
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(
            """CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE counters (segment TEXT, counter TEXT, value NUMERIC,
                PRIMARY KEY (segment, counter)) WITHOUT ROWID;
            CREATE TABLE writers (writer INTEGER PRIMARY KEY, name TEXT UNIQUE,
                begun INTEGER DEFAULT 0, rounds INTEGER DEFAULT 0);
            CREATE TABLE rounds (writer INTEGER, sequence INTEGER, round TEXT,
                PRIMARY KEY (writer, sequence)) WITHOUT ROWID;"""
        )
        old.executemany(
            "INSERT INTO about VALUES (?, ?)",
            [("version", "1"), ("seed", "4"), ("settings", settings)],
        )
        old.executemany(
            "INSERT INTO counters VALUES ('', ?, ?)",
            [("rounds", 3), ("seen 0-1", 3), ("disagreed 0-1", 1), ("spent", 0.6)],
        )
        old.execute("INSERT INTO writers VALUES (1, 'one', 3, 3)")
    old.close()
    learner = Learner(STAGES, "fixed", seed=4, store=SqliteStore(path, writer="one"))
    assert learner.rounds == 3
    assert learner.evidence().disagreed[0, 1] == 1
    play(learner, 2)
    assert learner.begin().number == 6
    learner.close()


def test_a_password_is_in_no_message():
    from stopwise.live import PostgresStore

    store = PostgresStore("postgresql://me:secret@127.0.0.1:1/nothing")
    assert "secret" not in repr(store)
    with pytest.raises(StopwiseError, match="cannot connect") as caught:
        Learner([0, 1], store=store)
    assert "secret" not in str(caught.value)
