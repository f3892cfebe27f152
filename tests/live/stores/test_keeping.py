"""Snapshots, log, SQLite: what is kept, what is refused, and that a restart changes nothing."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace

import kill_test
import numpy as np
import pytest

from stopwise import Evidence, StopwiseError, make_policy, policy_names
from stopwise.live import (
    Drift,
    Learner,
    RoundLog,
    SqliteStore,
    StoreError,
    read_evidence,
    read_rounds,
)
from stopwise.policies.oracle import with_oracle_stage
from stopwise.policies.per_item.situation import RowPolicy

SETTINGS = [
    {},
    {"policy": "uss-ucb"},
    {"policy": "uss-ts-literal"},
    {"policy": "hanawal-2"},
    {"half_life": 30.0},
    {"full_run_rate": 0.2},
    {"mode": "advise"},
    {"measured": True},
    {"drift": Drift(window=20, false_alarm=0.5)},
]


def build(seed=4, store=None, **settings):
    return Learner({"a": 0, "b": 0.1, "c": 0.1}, seed=seed, store=store, **settings)


def play(learner, number, start, segments=("",)):
    """Rounds whose outputs depend on their place only; returns all decisions."""
    decisions = []
    for at in range(start, start + number):
        rng = np.random.default_rng(at)
        # what is settled comes undone half way, so that carried numbers are put to the test
        rate = 0.3 if at < 400 else 0.02
        outputs = [0, *(rng.random(2) < rate).astype(int).tolist()]
        round = learner.begin(segments[at % len(segments)])
        for stage in range(round.depth + 1):
            if rng.random() < 0.05:
                round.fail()
            else:
                round.observe(outputs[stage], cost=float(rng.random()) if at % 3 == 0 else None)
        round.end()
        decisions.append((round.number, round.depth, round.probability, round.advised))
    return decisions


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("segments", [("",), ("", "x", "y")], ids=["one", "segments"])
def test_save_and_load_change_no_decision(tmp_path, settings, segments):
    never = build(**settings)
    expected = play(never, 500, 0, segments)
    stopped = build(**settings)
    got = []
    for start in range(0, 500, 125):
        got += play(stopped, 125, start, segments)
        stopped.save(tmp_path / "snapshot.json")
        stopped = build(seed=99, **settings)  # the seed is the snapshot's
        stopped.load(tmp_path / "snapshot.json")
    assert got == expected
    assert stopped.evidence() == never.evidence()
    # Rounds that wait are added up together: the last digit of a sum is that of its order.
    found, whole = stopped.report(), never.report()
    money = {name: getattr(whole, name) for name in ("spent", "saved_alone", "saved_through")}
    assert {name: getattr(found, name) for name in money} == pytest.approx(money, rel=1e-12)
    assert replace(found, **money) == whole
    assert len(list(tmp_path.iterdir())) == 1  # no temporary file is left


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_restart_from_a_store_changes_no_decision(tmp_path, settings, kind):
    def store():
        if kind == "log":
            return RoundLog(tmp_path / "rounds.jsonl")
        return SqliteStore(tmp_path / "rounds.db", writer="one")

    segments = ("", "x")
    never = build(store=store(), **settings)
    expected = play(never, 150, 0, segments)
    never.close()
    for path in tmp_path.iterdir():
        path.unlink()
    got = []
    for start in range(0, 150, 50):
        learner = build(store=store(), **settings)
        got += play(learner, 50, start, segments)
        learner.close()
    assert [one[:2] + one[3:] for one in got] == [one[:2] + one[3:] for one in expected]
    assert [one[2] for one in got] == pytest.approx([one[2] for one in expected], rel=1e-9)
    again = build(store=store(), **settings)
    assert again.evidence() == never.evidence()
    assert again.rounds == 150
    again.close()


def test_a_fork_keeps_the_evidence_and_draws_anew(tmp_path):
    learner = build()
    play(learner, 3, 0)
    learner.save(tmp_path / "s.json")
    one, two, same = build(), build(), build()
    one.load(tmp_path / "s.json", fork=1)
    two.load(tmp_path / "s.json", fork=2)
    same.load(tmp_path / "s.json", fork=1)
    assert one.evidence() == two.evidence() == learner.evidence()
    depths = [[each.begin().depth for _ in range(200)] for each in (one, two, same)]
    assert depths[0] != depths[1]
    assert depths[0] == depths[2]


@pytest.mark.parametrize(
    ("other", "fork", "message"),
    [
        ({"stages": {"a": 0, "b": 0.1, "d": 0.1}}, None, "stages is"),
        ({"stages": {"a": 0, "b": 0.1, "d": 0.1}}, 1, "stages is"),
        ({"stages": {"a": 0, "b": 0.1, "c": 0.2}}, 1, "costs is .*read_evidence"),
        ({"comparator": "folded"}, 1, "comparator is"),
        ({"half_life": 5.0}, 1, "half_life is"),
        ({"policy": "uss-ucb"}, None, "policy is .*fork"),
        ({"mistake_cost": 2}, None, "mistake_cost is"),
    ],
)
def test_other_settings_are_refused_with_the_remedy(tmp_path, other, fork, message):
    learner = build()
    play(learner, 20, 0)
    learner.save(tmp_path / "s.json")
    settings = {"stages": {"a": 0, "b": 0.1, "c": 0.1}, **other}
    changed = Learner(**settings)
    with pytest.raises(StopwiseError, match=message):
        changed.load(tmp_path / "s.json", fork=fork)
    assert changed.rounds == 0
    if other.get("policy") or other.get("mistake_cost"):
        changed.load(tmp_path / "s.json", fork=5)
        assert changed.evidence() == learner.evidence()
    for segment, evidence in read_evidence(tmp_path / "s.json").items():
        Learner([0, 5, 5]).add_evidence(evidence, segment)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda form: form.update(version=2), "version: got 2"),
        (lambda form: form.update(kind="cake"), "kind: got 'cake'"),
        (lambda form: form.update(extra=1), "unknown field 'extra'"),
        (lambda form: form.pop("state"), "'state' is missing"),
        (lambda form: form["state"].update(begun=-1), "begun"),
        (lambda form: form["state"]["segments"][""]["counters"].update({"seen 0-1": -1}), "seen"),
        (lambda form: form["state"]["segments"][""]["counters"].update({"sen": 1}), "sen"),
        (lambda form: form["state"]["segments"][""]["counters"].update({"rounds": 1.5}), "rounds"),
        (lambda form: form["state"]["segments"].update(x={}), "counters"),
    ],
)
def test_broken_snapshots_are_refused_and_change_nothing(tmp_path, change, message):
    learner = build()
    play(learner, 20, 0)
    learner.save(tmp_path / "s.json")
    form = json.loads((tmp_path / "s.json").read_text())
    change(form)
    (tmp_path / "s.json").write_text(json.dumps(form))
    other = build()
    play(other, 10, 100)
    before = other.evidence()
    with pytest.raises(StopwiseError, match=message):
        other.load(tmp_path / "s.json")
    assert other.evidence() == before
    for text in ("", "[]", "{", '{"kind": "stopwise learner"'):
        (tmp_path / "s.json").write_text(text)
        with pytest.raises(StopwiseError):
            other.load(tmp_path / "s.json")
    with pytest.raises(StopwiseError, match="no such file"):
        other.load(tmp_path / "none.json")


def test_the_log_holds_what_the_evidence_says(tmp_path):
    path = tmp_path / "rounds.jsonl"
    learner = build(store=RoundLog(path, keep_outputs=True))
    play(learner, 100, 0)
    rounds = list(read_rounds(path))
    assert [record.number for record in rounds] == list(range(1, 101))
    assert Evidence.from_prefixes(3, [record.outputs for record in rounds]) == learner.evidence()
    assert all(0 < record.probability <= 1 for record in rounds)


def test_a_line_cut_short_is_taken_away(tmp_path):
    path = tmp_path / "rounds.jsonl"
    learner = build(store=RoundLog(path))
    play(learner, 10, 0)
    evidence = learner.evidence()
    learner.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"round": 11, "dep')
    learner = build(store=RoundLog(path))
    assert learner.evidence() == evidence
    learner.close()
    assert path.read_bytes() == whole
    path.write_bytes(whole[:40])  # not even the first line is whole: nothing was acknowledged
    learner = build(store=RoundLog(path))
    assert learner.rounds == 0
    learner.close()


@pytest.mark.parametrize("text", [b"{", b'{"kind": ', b'{"kind": "stopwise round', b"a diary"])
def test_only_what_begins_as_our_own_log_is_cut(tmp_path, text):
    path = tmp_path / "rounds.jsonl"
    path.write_bytes(text)
    with pytest.raises(StopwiseError, match="left as it is"):
        build(store=RoundLog(path))
    assert path.read_bytes() == text


@pytest.mark.parametrize("store", ["postgresql://me:secret@host/db", SqliteStore, {}, 5])
def test_what_is_no_store_is_refused_and_not_shown(store):
    with pytest.raises(
        StopwiseError, match=r"store: got .*, but need .*SqliteStore\(path\)"
    ) as told:
        build(store=store)
    assert "secret" not in str(told.value)


def test_what_a_log_refuses(tmp_path):
    path = tmp_path / "rounds.jsonl"
    learner = build(store=RoundLog(path))
    play(learner, 3, 0)
    with pytest.raises(StopwiseError, match="another learner of this process is writing"):
        build(store=RoundLog(path))
    learner.close()
    with pytest.raises(StopwiseError, match="closed"):
        play(learner, 1, 3)
    with pytest.raises(StopwiseError, match="costs is"):
        Learner({"a": 0, "b": 0.1, "c": 0.3}, seed=4, store=RoundLog(path))
    with pytest.raises(StopwiseError, match="has a store"):
        build(store=RoundLog(tmp_path / "other.jsonl")).load(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"nonsense\n", *lines[2:]]))
    with pytest.raises(StopwiseError, match="line 3: this is not JSON"):
        build(store=RoundLog(path))
    path.write_bytes(b'{"kind": "other"}\n')
    with pytest.raises(StopwiseError, match="is this a log of rounds"):
        build(store=RoundLog(path))


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "rounds.jsonl"
    learner = build(store=RoundLog(path))
    play(learner, 5, 0)
    write = os.write

    def half_then_full(file, data):
        if os.fstat(file).st_ino == path.stat().st_ino:
            write(file, bytes(data)[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return write(file, data)

    monkeypatch.setattr(os, "write", half_then_full)
    with pytest.raises(StoreError, match="No space"):
        play(learner, 1, 5)
    assert learner.store_status.queued == 1
    assert learner.store_status.failures >= 1
    monkeypatch.setattr(os, "write", write)
    play(learner, 5, 6)
    assert learner.store_status.queued == 0
    evidence = learner.evidence()
    learner.close()
    assert learner.rounds == 11
    again = build(store=RoundLog(path))
    assert again.evidence() == evidence
    again.close()


def test_added_evidence_is_kept_by_stores(tmp_path):
    extra = Evidence.from_prefixes(3, [[0, 1, 1], [0, 0, 0]])
    for make in (
        lambda: RoundLog(tmp_path / "r.jsonl"),
        lambda: SqliteStore(tmp_path / "r.db"),
    ):
        learner = build(store=make())
        learner.add_evidence(extra, "x")
        play(learner, 5, 0)
        learner.close()
        again = build(store=make())
        assert again.evidence("x") == extra
        assert again.evidence() == learner.evidence()
        again.close()


def test_sqlite_learners_see_each_other(tmp_path):
    one = build(store=SqliteStore(tmp_path / "r.db", keep_rounds=True))
    two = build(store=SqliteStore(tmp_path / "r.db", keep_rounds=True))
    play(one, 10, 0)
    play(two, 10, 100)  # its first round met ten others
    assert two.rounds == 20
    one.refresh()
    assert one.evidence() == two.evidence()
    assert one.begin().number == 21
    records = list(one._books.queue.store.read_rounds())
    assert len({(record.writer, record.sequence) for record in records}) == 20
    # two writers, one seed: other random numbers
    assert one._books.writer != two._books.writer
    one.close()
    two.close()


def test_what_sqlite_refuses(tmp_path):
    (tmp_path / "text.db").write_text("this is not a database, it is a text of some length" * 20)
    with pytest.raises(StopwiseError, match="cannot be used as a store"):
        build(store=SqliteStore(tmp_path / "text.db"))
    (tmp_path / "short.txt").write_text("x")  # SQLite would take a file this short for an empty one
    with pytest.raises(StopwiseError, match="left as it is"):
        build(store=SqliteStore(tmp_path / "short.txt"))
    assert (tmp_path / "short.txt").read_text() == "x"
    store = SqliteStore(tmp_path / "r.db")
    learner = build(store=store)
    with pytest.raises(StopwiseError, match="in use"):
        build(store=store)
    learner.close()
    with pytest.raises(StopwiseError, match="stages is"):
        Learner([0, 1], store=SqliteStore(tmp_path / "r.db"))
    with pytest.raises(StopwiseError, match="closed"):
        play(learner, 1, 0)
    with pytest.raises(StopwiseError, match="survives"):
        RoundLog(tmp_path / "x", survives="all")


@pytest.mark.parametrize("durability", ["round", "behind"])
@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_killed_at_random_moments(tmp_path, kind, durability):
    """A few kills; `benchmarks/kill_test.py` does 300 for each store, PostgreSQL included."""
    kill_test.kill_often(tmp_path / kind, kind, kills=9, seed=1, durability=durability, one_store=3)


def test_many_processes_sum_exactly(tmp_path):
    """The full size, 8 x 10,000, is in `benchmarks/kill_test.py`."""
    kill_test.write_together(tmp_path, number=4, rounds=150)


def test_every_policy_survives_a_snapshot(tmp_path):
    for name in policy_names():
        policy = with_oracle_stage(make_policy(name), 1).for_horizon(1000)
        if isinstance(policy, RowPolicy):  # refused live, see test_live_per_item.py
            continue
        learner = build(policy=policy)
        play(learner, 30, 0)
        learner.save(tmp_path / "s.json")
        again = build(policy=policy)
        again.load(tmp_path / "s.json")
        assert play(again, 30, 30) == play(learner, 30, 30)


@pytest.mark.parametrize("place", ["number", "alarms", "seen", "steps"])
def test_bets_of_a_snapshot_that_are_too_large_are_refused(tmp_path, place):
    learner = Learner([0, 1], drift=Drift())
    play(learner, 60, 0)
    form = json.loads(json.dumps(learner.to_form()))
    bets = form["state"]["segments"][""]["drift"]
    if place == "number":
        bets["number"] = 10**308
    elif place == "steps":
        bets["pairs"][0] = [0, 10**308, 1, [[10**307, 1]]]
    else:
        bets["pairs"][0][["alarms", "seen"].index(place)] = 10**308
    before = learner.to_form()
    with pytest.raises(StopwiseError, match="drift"):
        learner.restore(form)
    assert learner.to_form() == before


@pytest.mark.parametrize("column", ["change", "rounds"])
@pytest.mark.parametrize("value", ["x", -1, float("inf"), b"\xff"])
def test_forged_numbers_of_a_sqlite_file_are_refused(tmp_path, column, value):
    build(store=SqliteStore(tmp_path / "r.db")).close()
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection, connection:
        connection.execute(f"UPDATE stopwise_cascades SET {column} = ?", (value,))
    with pytest.raises(StopwiseError, match=f"r.db: {column}"):
        build(store=SqliteStore(tmp_path / "r.db"))
