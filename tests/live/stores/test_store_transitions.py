"""Transitions in every store: kept with the rounds, shared, merged, and resumed exactly."""

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.live import Learner, RoundLog, SqliteStore
from stopwise.live.items.row import ItemRow
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import Binning
from stopwise.situations.transitions import Transitions

STAGES = {"small": 0.1, "medium": 1.0, "large": 4.0}
ROWS = made_up(6000, (0.2, 1.0, 2.0), seed=3)[0]
GIVEN = {"mistake_cost": 8.0, "seed": 4}


def play_item(learner, item, segment=""):
    """One round on a row of the log; where it stopped, and with which probability."""
    round = learner.begin(segment)
    for stage in range(3):
        label = ROWS.labels[ROWS.codes[item, stage]]
        round.observe(label, confidence=float(ROWS.confidences[item, stage]))
        if stage == 2 or learner.stops(round):
            break
    round.end()
    return len(round.outputs) - 1, round.probability


def per_item(kind, policy="per-item", *, learner=None, **store):
    return Learner(STAGES, policy, store=kind.store(**store), **GIVEN, **(learner or {}))


def fitted(number=800, **settings):
    costs = Costs.from_stages(list(STAGES.values()), 8.0)
    return Rule.fit(tuple(STAGES), ROWS.where(np.arange(number)), costs, **settings)


def test_a_restart_goes_on_as_if_it_had_never_stopped(kind):
    """With 4 first rounds, bins are cut at 4, 16, 64 and 256: restarts fall between them all."""
    count, policy = 280, "per-item:always_full=4"
    twin = Learner(STAGES, policy, **GIVEN)
    if kind.shared:  # a writer draws numbers of its own
        twin = per_item(kind, policy, writer="one", cascade="twin")
    expected = [play_item(twin, item) for item in range(count)]
    found: list[Any] = []
    for stop in (3, 4, 10, 16, 50, 150, 256, 265, count):
        learner = per_item(kind, policy, writer="one")
        found += [play_item(learner, item) for item in range(len(found), stop)]
        learner.close()
    assert found == expected
    learner = per_item(kind, policy, writer="one")
    assert learner.transitions.to_dict() == twin.transitions.to_dict()
    assert learner.rounds == learner.transitions.rounds == count
    assert len({depth for depth, _ in found}) == 3
    learner.close()
    twin.close()


def test_a_snapshot_resumes_exactly_before_and_after_bins_are_settled(tmp_path):
    one = Learner(STAGES, "per-item", **GIVEN)
    for stop, end in ((20, 150), (150, 700), (2500, 3300)):
        for item in range(one.rounds, stop):
            play_item(one, item)
        one.save(tmp_path / "snapshot.json")
        two = Learner(STAGES, "per-item", **GIVEN)
        two.load(tmp_path / "snapshot.json")
        later = range(stop, end)
        assert [play_item(one, item) for item in later] == [play_item(two, item) for item in later]
        assert one.transitions.to_dict() == two.transitions.to_dict()


def test_reading_the_counts_changes_nothing():
    one, two = (Learner(STAGES, "per-item", **GIVEN) for _ in range(2))
    for item in range(600):
        assert play_item(one, item) == play_item(two, item)
        assert (one.transitions is None) == (item < 31)


def test_processes_on_one_store_share_what_they_learned(shared):
    one = per_item(shared, durability="behind", flush_seconds=0.01)
    two = per_item(shared, durability="behind", flush_seconds=0.01)
    for item in range(2600):
        play_item((one, two)[item % 2], item)
        if item % 100 == 0:
            one.flush()
            two.flush()
    one.refresh()
    two.refresh()
    assert one.transitions.to_dict() == two.transitions.to_dict()
    assert one.transitions.rounds == 2600
    rules = [learner._books.items._by.rule for learner in (one, two)]
    assert rules[0].counts.to_dict() == rules[1].counts.to_dict()
    three = per_item(shared)
    # One that comes later begins with the rule that is in force: no 32 rounds to the end again.
    depths = [play_item(three, item)[0] for item in range(3000, 3060)]
    assert min(depths) == 0
    for learner in (one, two, three):
        learner.close()


def test_a_rule_is_begun_with_once_whoever_comes(kind):
    rule = fitted()
    for turn in range(3):
        learner = per_item(kind, learner={"rule": rule})
        assert learner.transitions.rounds == 800 + 50 * turn
        for item in range(50):
            play_item(learner, item)
        learner.close()
    last = per_item(kind)  # without the rule: its counts are in the store
    assert last.transitions.rounds == 950
    assert last.transitions.binning == rule.counts.binning
    last.close()


def test_another_binning_is_another_epoch(kind):
    first, other = fitted(800), fitted(900)
    assert first.counts.binning.epoch != other.counts.binning.epoch
    learner = per_item(kind, learner={"rule": first})
    for item in range(40):
        play_item(learner, item)
    learner.close()
    learner = per_item(kind, learner={"rule": other})
    for item in range(30):
        play_item(learner, item)
    assert learner.transitions.rounds == 930
    assert learner.transitions.binning.epoch == other.counts.binning.epoch
    with pytest.raises(StopwiseError, match="but need those of"):
        learner.add_transitions(first.counts)
    learner.close()
    learner = per_item(kind)
    assert learner.transitions.rounds == 930
    learner.close()


def test_transitions_of_another_machine_are_added_and_kept(kind):
    rule = fitted()
    elsewhere = Learner(STAGES, rule=rule, **GIVEN)
    for item in range(1000, 1200):
        play_item(elsewhere, item)
    learner = per_item(kind, learner={"rule": rule})
    before = learner.transitions
    learner.add_transitions(elsewhere.transitions)
    before.merge(elsewhere.transitions)
    assert learner.transitions.to_dict() == before.to_dict()
    learner.close()
    learner = per_item(kind)
    assert learner.transitions.to_dict() == before.to_dict()
    learner.close()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_two_machines_counts_merged_are_one_machines(data):
    binning = Binning(edges=((0.5,),) * 3, labels=(("a", "b"),) * 3)
    label = st.sampled_from(["a", "b", "c", None])
    sure = st.one_of(st.none(), st.floats(0, 1))
    rounds = data.draw(st.lists(st.lists(st.tuples(label, sure), min_size=1, max_size=3)))
    machine = data.draw(st.lists(st.integers(0, 1), min_size=len(rounds), max_size=len(rounds)))
    full = data.draw(st.lists(st.booleans(), min_size=len(rounds), max_size=len(rounds)))
    together, apart = _memory(binning), [_memory(binning), _memory(binning)]
    for said, at, whole in zip(rounds, machine, full, strict=True):
        row = _row(said, whole and len(said) == 3)
        together.add(row)
        apart[at].add(row)
    apart[0].merge(apart[1].counts)
    assert _sorted(apart[0].counts) == _sorted(together.counts)


def _memory(binning):
    from stopwise.live.items.memory import ItemMemory

    memory = ItemMemory(3, 32)
    memory.start_from(Transitions(binning))
    return memory


def _row(said, full):
    groups: list[Any] = []
    labels: list[Any] = []
    for label, _ in said:
        known = [group for group, other in zip(groups, labels, strict=True) if other == label]
        fresh = max(groups, default=-1) + 1
        groups.append(-1 if label is None else known[0] if known else fresh)
        labels.append(label)
    return ItemRow(tuple(labels), tuple(groups), tuple(sure for _, sure in said), full=full)


def _sorted(counts):
    return json.dumps(counts.to_dict(), sort_keys=True)


def test_the_state_of_four_stages_is_below_a_megabyte(tmp_path):
    rows = made_up(40_000, (0.2, 0.7, 1.2, 2.0), seed=5)[0]
    names = ("a", "b", "c", "d")
    costs = Costs.from_stages([0.1, 0.5, 1.0, 4.0], 8.0)
    rule = Rule.fit(names, rows, costs)
    learner = Learner(dict(zip(names, [0.1, 0.5, 1.0, 4.0], strict=True)), rule=rule, **GIVEN)
    learner.save(tmp_path / "snapshot.json")
    assert 10_000 < (tmp_path / "snapshot.json").stat().st_size < 1_000_000
    store = SqliteStore(tmp_path / "rounds.db")
    names_ = dict(zip(names, [0.1, 0.5, 1.0, 4.0], strict=True))
    Learner(names_, rule=rule, store=store, **GIVEN).close()
    assert (tmp_path / "rounds.db").stat().st_size < 2_000_000  # rows of a database take more room


def test_long_outputs_are_not_kept_once_bins_are_settled_and_only_as_a_hash_before(tmp_path):
    secret = "the whole text of a private letter, which is longer than any label is " * 3
    learner = Learner([0, 1], "per-item", store=RoundLog(tmp_path / "log.jsonl"), **GIVEN)
    for number in range(40):
        with learner.begin() as round:
            round.observe(secret)
            if not learner.stops(round):
                round.observe(secret if number % 2 else "no")
    learner.close()
    assert b"private" not in (tmp_path / "log.jsonl").read_bytes()
    rule = Rule.fit(
        ("stage 1", "stage 2"), ROWS.where(np.arange(10)).__class__(("a",), np.zeros((9, 2), int)),
        Costs.from_stages([0, 1]),
    )  # fmt: skip
    learner = Learner([0, 1], rule=rule, store=RoundLog(tmp_path / "two.jsonl"), **GIVEN)
    with learner.begin() as round:
        round.observe("short but private")
        if not learner.stops(round):
            round.observe("no")
    learner.close()
    assert b"private" not in (tmp_path / "two.jsonl").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"groups": [0, 5, 1]}, {"labels": ["a"]}, {"chance": 2}, {"full": "yes"}, {"rule": -1},
        {"features": {"a": [[1]]}}, {"odd": 1}, {"epoch": "x", "keys": ["zz", "1", "1"]},
    ],
)  # fmt: skip
def test_a_forged_item_is_refused_with_its_line(tmp_path, change):
    path = tmp_path / "log.jsonl"
    learner = Learner(STAGES, "per-item", store=RoundLog(path), **GIVEN)
    play_item(learner, 0)
    learner.close()
    head, line = path.read_text().splitlines()
    form = json.loads(line)
    form["item"].update(change)
    path.write_text(f"{head}\n{json.dumps(form)}\n")
    with pytest.raises(StopwiseError, match=r"line 2: round: .*but need|unknown"):
        Learner(STAGES, "per-item", store=RoundLog(path), **GIVEN)


@pytest.mark.parametrize(
    "damage", ["value = -1", "value = 0.5", "stage = 7", "kind = 'odd'", "before = 'x'"]
)
def test_forged_transitions_in_sqlite_are_refused(tmp_path, damage):
    learner = Learner(STAGES, rule=fitted(), store=SqliteStore(tmp_path / "a.db"), **GIVEN)
    learner.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute(f"UPDATE OR REPLACE stopwise_transitions SET {damage}, ruled = 2")
        if damage.startswith("value"):
            connection.execute("UPDATE stopwise_transitions SET ruled = value")
    connection.close()
    with pytest.raises(StopwiseError, match="transitions"):
        Learner(STAGES, "per-item", store=SqliteStore(tmp_path / "a.db"), **GIVEN)


def _work(kind_name, path, acknowledged):
    store = RoundLog(path) if kind_name == "log" else SqliteStore(path)
    learner = Learner(STAGES, "per-item:always_full=4", store=store, **GIVEN)
    file = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for item in range(100_000):
        play_item(learner, item % 6000)
        os.write(file, b".")


@pytest.mark.parametrize("kind_name", ["log", "sqlite"])
def test_killed_at_any_moment_counts_every_round_once(tmp_path, kind_name):
    """Marks and new bins fall among the kills: with 4 first rounds they are at 4, 16, 64, 256."""
    rng = random.Random(1)
    path, acknowledged = tmp_path / "rounds", tmp_path / "acknowledged"
    context = multiprocessing.get_context("fork")
    for kill in range(8):
        child = context.Process(target=_work, args=(kind_name, path, acknowledged))
        child.start()
        before = acknowledged.stat().st_size if acknowledged.exists() else 0
        deadline = time.monotonic() + 20
        wanted = before + rng.randrange(1, 30 + 30 * kill)
        while time.monotonic() < deadline and (
            not acknowledged.exists() or acknowledged.stat().st_size < wanted
        ):
            time.sleep(0.0005)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        store = RoundLog(path) if kind_name == "log" else SqliteStore(path)
        with Learner(STAGES, "per-item:always_full=4", store=store, **GIVEN) as learner:
            counts = learner.transitions
            kept = learner.rounds
            assert kept >= acknowledged.stat().st_size
            if counts is not None:
                assert counts.rounds == kept
    assert counts is not None
    assert kept > 100
