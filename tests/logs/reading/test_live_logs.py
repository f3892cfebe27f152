"""What live learners keep, read as logs: RoundLog, SQLite, PostgreSQL, snapshots."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import stopwise as sw
from stopwise import StopwiseError
from stopwise.cli import build_app
from stopwise.live import Learner, PostgresStore, RoundLog, SqliteStore, folded
from stopwise.live.stores.stored import open_stored
from stopwise.logs.auditing.audit import plan_audit
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.settings import LogSettings

STAGES = {"a": 0.1, "b": 1.0, "c": 2.0}


def play(learner: Learner, rounds: int, seed: int = 1) -> None:
    rng = random.Random(seed)
    for at in range(rounds):
        right = rng.choice(["yes", "no"])
        with learner.begin(f"s{at % 2}") as round:
            for stage in range(round.depth + 1):
                wrong = rng.random() < 0.3 / (stage + 1)
                answer = "other" if wrong else right
                round.observe(None if rng.random() < 0.05 else answer)


def store_of(kind: str, folder: Path, postgres: Any, **settings: Any) -> tuple[Any, str]:
    if kind == "log":
        settings.pop("keep_rounds", None)
        return RoundLog(folder / "rounds.jsonl", **settings), str(folder / "rounds.jsonl")
    if kind == "sqlite":
        return SqliteStore(folder / "rounds.db", **settings), str(folder / "rounds.db")
    url = postgres.new_database()
    import psycopg

    parts = psycopg.conninfo.conninfo_to_dict(url)
    address = (
        f"postgresql:///{parts['dbname']}?host={parts['host']}&port={parts['port']}"
        f"&user={parts['user']}"
    )
    return PostgresStore(url, **settings), address


@pytest.mark.parametrize("kept", ["keep_outputs", "keep_rounds"])
@pytest.mark.parametrize("kind", ["log", "sqlite", "postgres"])
def test_analyze_counts_what_the_learner_counted(
    kind: str, kept: str, tmp_path: Path, postgres: Any
) -> None:
    store, log = store_of(kind, tmp_path, postgres, **{kept: True})
    learner = Learner(STAGES, mistake_cost=20, store=store, seed=3)
    play(learner, 400)
    total = learner.evidence("s0") + learner.evidence("s1")
    learner.close()
    found = sw.analyze(log, abstentions="leave out")  # as a learner counts by default
    assert found.evidence == total
    assert found.rows == 400
    assert found.verdict.stages == ("a", "b", "c")
    assert found.verdict.costs.mistake_cost == 20
    assert found.verdict.costs.cumulative == pytest.approx((0.1, 1.1, 3.1))
    parts = sw.analyze(log, segment="segment").segments
    assert [(part.name, part.rows) for part in parts] == [("s0", 200), ("s1", 200)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_counts_alone_can_be_analysed_but_not_replayed(
    kind: str, tmp_path: Path, postgres: Any
) -> None:
    store, log = store_of(kind, tmp_path, postgres)
    learner = Learner(STAGES, mistake_cost=20, store=store)
    play(learner, 200)
    total = learner.evidence("s0") + learner.evidence("s1")
    learner.close()
    assert sw.analyze(log).evidence == total
    with pytest.raises(StopwiseError, match="only counts were kept"):
        sw.replay(log)


def test_the_command_reads_a_snapshot_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = Learner({"a": 1, "b": 3}, "fixed", mistake_cost=20)
    for output in ("x", "y", "x"):
        with learner.begin() as round:
            round.observe("x")
            round.observe(output)
    learner.save(tmp_path / "snapshot.json")
    build_app()(["analyze", str(tmp_path / "snapshot.json"), "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    expected = sw.analyze(tmp_path / "snapshot.json").to_dict()
    assert found == json.loads(json.dumps(expected))
    (tmp_path / "evidence.json").write_text(learner.evidence().to_json())
    options = ["--stages", "a,b", "--costs", "1,3", "--mistake-cost", "20"]
    build_app()(["analyze", str(tmp_path / "evidence.json"), *options], standalone_mode=False)
    assert "3 items" in capsys.readouterr().out


def test_a_snapshot_is_analysed(tmp_path: Path) -> None:
    learner = Learner(STAGES, mistake_cost=20)
    play(learner, 200)
    learner.save(tmp_path / "snapshot.json")
    found = sw.analyze(tmp_path / "snapshot.json")
    assert found.evidence == learner.evidence("s0") + learner.evidence("s1")


def test_replay_and_audit_read_rounds_that_ran_deep(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "rounds.db", keep_outputs=True)
    learner = Learner(STAGES, "fixed", mistake_cost=20, store=store)
    play(learner, 300)
    learner.close()
    assert "over 300 items" in str(sw.replay(tmp_path / "rounds.db", policy="fixed:stage=2"))
    # The learner's own setting leaves items out on which a stage abstained; another may be given.
    kept = plan_audit(tmp_path / "rounds.db").rows
    assert len(kept.codes) + kept.left_out == 300
    plan = plan_audit(tmp_path / "rounds.db", abstentions="go on")
    assert plan.rows.codes.shape == (300, 3)


def test_answers_that_the_comparator_finds_equal_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    store = RoundLog(path, keep_outputs=True)
    learner = Learner([0, 1], "fixed", comparator=folded(), store=store)
    for two in ("YES", "no"):
        with learner.begin() as round:
            round.observe("Yes")
            round.observe(two)
    learner.close()
    evidence = sw.analyze(path).evidence
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (2, 1)


def test_free_text_is_counted_without_its_words(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    learner = Learner([0, 1], "fixed", store=RoundLog(path, keep_outputs=True))
    for at in range(30):
        with learner.begin() as round:
            round.observe(f"text {at}")
            round.observe(f"text {at // 2 * 2}")
    learner.close()
    evidence = sw.analyze(path, max_labels=10).evidence
    assert (evidence.seen[0, 1], evidence.disagreed[0, 1]) == (30, 15)


def test_measured_costs_are_those_of_the_rounds(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    learner = Learner([1, 1], "fixed", measured=True, store=RoundLog(path, keep_outputs=True))
    for at in range(100):
        with learner.begin() as round:
            round.observe(1, cost=2.0)
            round.observe(at % 2, cost=4.0)
    learner.close()
    assert sw.analyze(path).verdict.costs.cumulative == pytest.approx((2.0, 6.0))
    assert sw.analyze(path, costs=[1, 1]).verdict.costs.cumulative == pytest.approx((1.0, 2.0))


def test_one_of_several_cascades_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rounds.db"
    for name, rounds in (("one", 10), ("two", 20)):
        store = SqliteStore(path, cascade=name, keep_outputs=True)
        learner = Learner([0, 1], "fixed", store=store)
        for _ in range(rounds):
            with learner.begin() as round:
                round.observe(1)
                round.observe(1)
        learner.close()
    with pytest.raises(StopwiseError, match=r"holds 2 cascades; name one: .*#one"):
        sw.analyze(path)
    assert sw.analyze(f"{path}#two").rows == 20
    with pytest.raises(StopwiseError, match="three"):
        sw.analyze(f"{path}#three")


def test_other_databases_are_no_logs(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (a)")
    assert open_stored(path) is None
    with pytest.raises(StopwiseError, match="need a"):
        sw.analyze(path)


def test_reading_beside_a_learner_that_writes_loses_nothing(tmp_path: Path) -> None:
    """In one process: closing a file in any other way than SQLite's would drop its locks."""
    path = tmp_path / "rounds.db"
    store = SqliteStore(path, keep_outputs=True, durability="behind", flush_seconds=0.005)
    learner = Learner([0, 1], "fixed", store=store)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            with learner.begin() as round:
                round.observe(1)
                round.observe(1)
            done.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not learner.store_status.kept:
            pass
        rows = [sw.analyze(path).rows for _ in range(50)]
    finally:
        done.set()
        writer.join()
    rounds = learner.rounds
    learner.close()
    assert rows == sorted(rows)
    assert learner.store_status.failures == 0
    assert sw.analyze(path).rows == rounds


def sure_cascade(store: Any, mode: str = "enforce", policy: str = "per-item") -> sw.Cascade:
    """Two stages that say how sure they are, and one that is right; items are their numbers."""
    rng = random.Random(7)
    sure = [(rng.random(), rng.random()) for _ in range(1500)]
    odd = [
        [rng.random() < 0.5 * (one < 0.4), rng.random() < 0.5 * (two < 0.15)] for one, two in sure
    ]

    def stage(at: int, name: str, cost: float) -> sw.Stage:
        def call(item: int) -> sw.Reported:
            return sw.Reported("no" if odd[item][at] else "yes", confidence=sure[item][at])

        return sw.Stage(name, call, cost=cost)

    stages = [stage(0, "a", 1), stage(1, "b", 3), sw.Stage("c", lambda item: "yes", cost=8)]
    return sw.Cascade(stages, policy, mistake_cost=60, mode=mode, store=store, seed=1)


@pytest.mark.parametrize("kind", ["log", "sqlite", "postgres"])
@pytest.mark.parametrize("policy", ["per-item", "uss-ts-jump"])
def test_a_shadow_run_keeps_how_sure_stages_are_for_the_rule_that_is_fitted_on_it(
    kind: str, policy: str, tmp_path: Path, postgres: Any
) -> None:
    store, log = store_of(kind, tmp_path, postgres, keep_rounds=True, keep_outputs=True)
    with sure_cascade(store, "shadow", policy) as cascade:
        for item in range(300):
            cascade.answer(item)
    edges = sw.fit(log).counts.binning.edges
    assert [len(cuts) for cuts in edges] == [5, 5, 0]
    assert sw.analyze(log, per_item=True).per_item.helps


@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_rounds_that_went_on_because_of_their_outputs_are_no_sample_to_analyse(
    kind: str, tmp_path: Path
) -> None:
    store, log = store_of(kind, tmp_path, None, keep_rounds=True, keep_outputs=True)
    with sure_cascade(store) as cascade:
        full = sum(cascade.answer(item).explain().full_run for item in range(1500))
        counted = cascade.learner.evidence()
    assert 30 < full < 300
    rows = read_rows(log, LogSettings())
    assert len(rows.codes) == full
    assert (rows.codes >= 0).all()  # none of these stages ever abstained
    assert sw.analyze(log).evidence == counted
    # Hard items alone go on: of those that did, far more differ than of all.
    assert 0.1 < (rows.codes[:, 0] != rows.codes[:, 2]).mean() < 0.35


def test_features_that_live_rounds_do_not_keep_are_not_passed_over(tmp_path: Path) -> None:
    store, log = store_of("log", tmp_path, None, keep_outputs=True)
    with sure_cascade(store, "shadow") as cascade:
        for item in range(100):
            cascade.answer(item)
    with pytest.raises(StopwiseError, match="features: got"):
        sw.fit(log, features="length")
