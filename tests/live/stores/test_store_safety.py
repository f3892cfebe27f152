"""Interrupts, forks, files that are moved or come from elsewhere: nothing is lost or destroyed."""

import json
import os
import random
import signal
import sqlite3
import stat
import sys
import threading
import time
from typing import Any

import pytest
from store_kinds import STAGES, kind, play, postgres, shared

from stopwise import Evidence, StopwiseError
from stopwise.live import Learner, RoundLog, SqliteStore, StoreError, read_rounds


class Interrupt(Exception):  # noqa: N818  # as a task's soft time limit
    pass


def interrupted(work, moments, seed):
    """Call `work` again and again, raising from a signal handler at random moments."""
    rng = random.Random(seed)

    def strike(number, frame):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, strike)
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    struck = 0
    try:
        while struck < moments:
            try:
                # Again and again: what strikes in a finaliser is swallowed by Python.
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 0.003), 0.003)
                while True:
                    work()
            except Interrupt:
                struck += 1
            finally:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Interrupt:
                    struck += 1
    finally:
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def test_an_interrupt_at_any_moment_leaves_the_store_usable(kind):
    learner = kind.learner("fixed", keep_outputs=True, patience=5.0) if kind.shared else (
        kind.learner("fixed", keep_outputs=True)
    )  # fmt: skip
    ended = []

    def work():
        round = learner.begin()
        for output in ("x", "y", "x"):
            round.observe(output)
        round.end()
        ended.append(round.sequence)

    interrupted(work, 150, seed=1)
    learner.flush()
    if kind.shared:
        other = kind.learner("fixed", keep_outputs=True)  # nobody is locked out
        with other.begin() as round:
            for _ in range(3):
                round.observe("x")
        other.close()
    learner.refresh()
    evidence, rounds = learner.evidence(), learner.rounds
    spent = learner.report().spent
    learner.close()
    records = list(kind.store().read_rounds())
    assert len({(r.writer, r.sequence) for r in records}) == len(records) == rounds
    assert set(ended) <= {r.sequence for r in records}
    assert Evidence.from_prefixes(3, [r.outputs for r in records]) == evidence
    assert spent == pytest.approx(sum(r.cost for r in records))


@pytest.mark.parametrize("segments", [("",), ("", "s", "t")])
def test_an_interrupt_in_memory_leaves_the_sum_of_the_segments(segments):
    learner = Learner([1, 1, 1], seed=2)
    told = dict.fromkeys(segments, 0)
    at = 0

    def work():
        nonlocal at
        at += 1
        segment = segments[at % len(segments)]
        with learner.begin(segment) as round:
            for stage in range(round.depth + 1):
                round.observe((at * (stage + 1)) % 3)
        told[segment] += 1
        if at % 50 == 0:
            assert learner.rounds >= sum(told.values())

    interrupted(work, 300, seed=3)
    parts = [learner.report(segment) for segment in segments]
    whole = learner.report()
    assert whole.rounds == sum(part.rounds for part in parts)
    assert whole.calls == tuple(map(sum, zip(*(part.calls for part in parts), strict=True)))
    assert whole.spent == pytest.approx(sum(whole.calls))  # what was called is what was paid
    for segment in segments:
        assert learner.report(segment).rounds >= told[segment]
        probabilities = learner.probabilities(segment)
        learner._books.counters.peek(segment).renew_fast()
        assert probabilities == pytest.approx(learner.probabilities(segment), abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_go_on_as_writers_of_their_own(kind, play):
    half = {"learner": {"full_run_rate": 0.5}}
    learner = kind.learner("fixed:stage=0", keep_rounds=True, **half)
    play(learner, 5)
    pipes, children = [], []
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(read)
                depths = play(learner, 40)
                learner.close()
                os.write(write, json.dumps(depths).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        pipes.append(read)
        children.append(child)
    mine = play(learner, 40)
    drawn = []
    for read, child in zip(pipes, children, strict=True):
        with os.fdopen(read) as file:
            drawn.append(json.load(file))
        assert os.waitpid(child, 0)[1] == 0
    play(learner, 1)
    evidence = learner.evidence()
    learner.close()
    records = list(kind.store().read_rounds())
    assert len({(r.writer, r.sequence) for r in records}) == len(records) == 166
    assert len({r.writer for r in records}) == 4
    assert len({tuple(depths) for depths in [mine, *drawn]}) == 4  # each drew its own
    again = kind.learner("fixed:stage=0", **half)
    assert again.rounds == 166
    if kind.shared:
        assert again.evidence() == evidence
    again.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_holds_the_lock_does_not_hang(kind, play):
    learner = kind.learner()
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            play(learner, 1)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                try:
                    play(learner, 2)
                    os._exit(0)
                finally:
                    os._exit(1)
            deadline = time.monotonic() + 30
            while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    pytest.fail("the child hangs")
                time.sleep(0.005)
            assert found[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    learner.close()


@pytest.mark.parametrize(
    "content", [b"my diary", b"name,age", b'{"kind": "other", "x": 1}', b"\x00\x01\x02", b"{"]
)
def test_a_file_of_another_program_is_left_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    if content == b"{":  # the beginning of one of ours as well: then nothing was kept in it
        Learner([0, 1], store=RoundLog(path)).close()
        return
    with pytest.raises(StopwiseError):
        Learner([0, 1], store=RoundLog(path))
    assert path.read_bytes() == content


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


def forge(form, **changes):
    return {**form, **changes}


FORGED = [
    {"probability": 25.0},
    {"probability": 0},
    {"probability": float("nan")},
    {"cost": -1.0},
    {"cost": float("inf")},
    {"costs": [-5.0, 1.0, 1.0]},
    {"depth": 7},
    {"called": 10**9},
    {"answered": [10**12]},
    {"disagreed": [[0, 10**9]]},
    {"disagreed": [[1, 0]]},
    {"failed": [-1]},
    {"round": 1.5},
    {"round": True},
    {"sequence": 10**30},
    {"stage": 9},
    {"segment": 3},
    {"advised": [1, -2.0, None]},
    {"abandoned": "no"},
    {"outputs": 3},
    {"unknown": 1},
]


@pytest.mark.parametrize("changes", FORGED, ids=str)
def test_a_forged_round_is_refused_with_its_line(tmp_path, play, changes):
    path = tmp_path / "rounds.jsonl"
    learner = Learner(STAGES, "fixed", store=RoundLog(path))
    play(learner, 2)
    learner.close()
    lines = path.read_text().splitlines()
    lines.append(json.dumps({**json.loads(lines[-1]), **changes}))
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    with pytest.raises(StopwiseError, match=r"line 4: .*round: "):
        Learner(STAGES, "fixed", store=RoundLog(path))
    with pytest.raises(StopwiseError, match=r"line 4: .*round: "):
        list(read_rounds(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "counters",
    [
        {"seen 0-1": -3},
        {"seen 0-1": 2**70},
        {"disagreed 0-1": 10**6},
        {"spent": float("inf")},
        {"seen 5-9": 1},
        {"rounds": 1.5},
    ],
    ids=str,
)
def test_forged_counters_in_sqlite_are_refused(tmp_path, play, counters):
    path = tmp_path / "rounds.db"
    learner = Learner(STAGES, "fixed", store=SqliteStore(path))
    play(learner, 2)
    learner.close()
    with sqlite3.connect(path) as connection:
        for counter, value in counters.items():
            connection.execute(
                "INSERT OR REPLACE INTO stopwise_counters VALUES ('', '', ?, ?)",
                (counter, float(value)),
            )
    connection.close()
    with pytest.raises(StopwiseError, match="counter"):
        Learner(STAGES, "fixed", store=SqliteStore(path))


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
    with sqlite3.connect(path) as old:
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
