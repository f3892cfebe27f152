"""What every store promises, held over all three."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from store_kinds import STAGES, kill_test, kind, play, postgres, shared

from stopwise import Evidence, StopwiseError
from stopwise.live import BudgetError, Drift, Learner, PostgresStore, StoreError


def test_a_restart_has_all_rounds_and_the_same_decisions(kind, play):
    learner = kind.learner(writer="w", keep_outputs=True)
    play(learner, 30)
    play(learner, 20, "s", ("x", "y", "y"))
    evidence, report = learner.evidence(), learner.report()
    next_depths = [learner.probabilities(), learner.probabilities("s")]
    learner.close()
    again = kind.learner(writer="w", keep_outputs=True)
    assert again.evidence() == evidence
    assert again.rounds == 50
    assert again.report().spent == pytest.approx(report.spent)
    assert [again.probabilities(), again.probabilities("s")] == [
        pytest.approx(p) for p in next_depths
    ]
    records = list(kind.store().read_rounds())
    assert len(records) == 50
    assert Evidence.from_prefixes(3, [r.outputs for r in records if not r.segment]) == evidence
    again.close()


def test_a_batch_that_is_tried_again_after_a_lost_commit_counts_once(shared, play):
    learner = shared.learner(keep_rounds=True)
    play(learner, 5)
    store = learner._books.queue.store
    append = store.append
    lost: list[Any] = []

    def append_and_lose_the_answer(first, records):
        alarms = append(first, records)
        if len(lost) < 3:
            lost.append(first)
            raise ConnectionError("the answer to COMMIT was lost")
        return alarms

    store.append = append_and_lose_the_answer
    for _ in range(3):
        with pytest.raises(StoreError, match="queued and tried again: the answer to COMMIT"):
            play(learner, 1)
    play(learner, 4)
    assert learner.store_status.queued == 0
    evidence = learner.evidence()
    learner.close()
    again = shared.learner()
    assert (again.rounds, again.evidence()) == (12, evidence)
    assert len(list(shared.store().read_rounds())) == 12
    again.close()


def test_rounds_that_cannot_be_written_stay_queued_are_counted_and_shown(kind, play):
    learner = kind.learner(durability="behind", flush_seconds=0.01, queue=50)
    store = learner._books.queue.store
    append = store.append

    def fail(first, records):
        raise OSError("no space")

    store.append = fail
    play(learner, 50)
    with pytest.raises(StoreError, match="50 rounds are waiting"):
        play(learner, 1)
    with pytest.raises(StoreError, match="queued and tried again: no space"):
        learner.flush()
    status = learner.store_status
    assert status.queued == 50
    assert status.failures >= 1
    assert status.unrecorded == 1
    assert "no space" in status.last_error
    assert learner.rounds == 50
    store.append = append
    learner.flush()
    assert learner.store_status.queued == 0
    assert learner.store_status.last_error is None
    learner.close()
    again = kind.learner()
    assert again.rounds == 50
    again.close()


def test_written_behind_within_the_interval(kind, play):
    learner = kind.learner(durability="behind", keep_rounds=True)
    play(learner, 7)
    deadline = time.monotonic() + 10
    while learner.store_status.queued and time.monotonic() < deadline:
        time.sleep(0.01)
    assert learner.store_status.kept == 7
    assert len(list(kind.store().read_rounds())) == 7
    learner.close()


CHILD = """
import os, sys, time
sys.path.insert(0, {folder!r})
from store_kinds import Kind, play_rounds
kind = Kind({name!r}, __import__("pathlib").Path({path!r}), {url!r})
learner = kind.learner(durability="behind", flush_seconds=30.0, flush_rounds=10**6)
play_rounds(learner, 25)
print("ready", flush=True)
{then}
"""


@pytest.mark.parametrize("how", ["sigterm", "exit"])
def test_what_is_queued_is_written_when_the_process_ends(kind, how):
    code = CHILD.format(
        folder=str(Path(__file__).parent), name=kind.name, path=str(kind.folder), url=kind.url,
        then="time.sleep(60)" if how == "sigterm" else "",
    )  # fmt: skip
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    if how == "sigterm":
        child.send_signal(signal.SIGTERM)
    assert child.wait(30) == (-signal.SIGTERM if how == "sigterm" else 0)
    child.stdout.close()
    again = kind.learner()
    assert again.rounds == 25
    again.close()


def test_waiting_for_the_store_does_not_stop_an_event_loop(kind):
    learner = kind.learner("fixed")
    store = learner._books.queue.store
    append = store.append

    def slow(first, records):
        time.sleep(0.3)
        return append(first, records)

    store.append = slow

    async def run():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        round = learner.begin()
        for _ in range(3):
            round.observe("x")
        await round.end_async()
        ticking.cancel()
        return ticks

    assert asyncio.run(run()) >= 8
    learner.close()


def test_rounds_of_many_threads_are_written_together(kind):
    learner = kind.learner("fixed")
    store = learner._books.queue.store
    append, batches = store.append, []

    def slow(first, records):
        batches.append(len(records))
        time.sleep(0.05)
        return append(first, records)

    store.append = slow

    def work():
        for _ in range(5):
            with learner.begin() as round:
                for _ in range(3):
                    round.observe("x")

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learner.rounds == sum(batches) == 80
    assert len(batches) < 40
    learner.close()


def test_learners_that_share_see_each_other(shared, play):
    one, two = shared.learner(keep_rounds=True), shared.learner(keep_rounds=True)
    play(one, 10)
    play(two, 10, "s")
    assert two.rounds == 20  # its rounds met those of the other
    one.refresh()
    assert one.evidence() == two.evidence()
    assert one.evidence("s") == two.evidence("s")
    assert one.begin().number == 21
    names = {(record.writer, record.sequence) for record in shared.store().read_rounds()}
    assert len(names) == 20
    assert one._books.writer != two._books.writer
    one.close()
    two.close()


def test_only_segments_that_changed_are_read_again(shared, play):
    one, two = shared.learner(), shared.learner()
    for at in range(30):
        play(one, 1, f"s{at}")
    two.refresh()
    counters = two._books.queue.store._rows
    read = []
    by_segment = counters.by_segment

    def read_by_segment(rows):
        read.append(list(rows))
        return by_segment(read[-1])

    counters.by_segment = read_by_segment
    play(one, 1, "s3")
    play(two, 1, "s4")
    assert {segment for rows in read for segment, _, _ in rows} == {"s3", "s4"}
    assert two.evidence("s3") == one.evidence("s3")
    one.close()
    two.close()


def test_one_name_used_twice_at_the_same_time_is_refused(shared, play):
    one = shared.learner(writer="web")
    play(one, 3)
    with pytest.raises(StopwiseError, match="using the writer's name 'web'"):
        shared.learner(writer="web")
    play(one, 3)
    one.close()
    again = shared.learner(writer="web")
    assert again.rounds == 6
    again.close()


def test_half_lives_are_exact_between_processes(shared, play):
    settings = {"learner": {"half_life": 10.0}}
    one, two = shared.learner("fixed", **settings), shared.learner("fixed", **settings)
    alone = []
    for at in range(12):
        play((one, two)[at % 2], at, outputs=("x", "xy"[at % 2], "y"))
        alone += [at % 2] * at
    two.refresh()
    weights = [0.5 ** (age / 10) for age in range(len(alone))][::-1]
    recent = two._books.counters.peek("").recent_evidence()
    assert recent.seen[0, 1] == pytest.approx(sum(weights), rel=1e-12)
    disagreed = sum(w for w, odd in zip(weights, alone, strict=True) if odd)
    assert recent.disagreed[0, 1] == pytest.approx(disagreed, rel=1e-12)
    one.close()
    two.close()


def test_counters_by_the_hour_sum_to_the_totals(shared, play):
    learner = shared.learner(learner={"half_life": 5.0})
    play(learner, 9)
    play(learner, 4, "s")
    hours = learner._books.queue.store.read_hours()
    learner.close()
    total = sum(row["value"] for row in hours if row["counter"] == "rounds")
    assert total == 13
    assert not any(row["counter"].startswith("recent") for row in hours)
    assert all(abs(row["hour"] - time.time()) < 7300 for row in hours)
    assert {row["segment"] for row in shared.store().read_hours("s")} == {"s"}


def test_a_budget_holds_over_all_who_share_it(shared, play):
    learners = [
        shared.learner("fixed", stages=[1, 1], learner={"run_budget": 100}) for _ in range(4)
    ]
    spent = 0
    live = list(learners)
    while live:
        for learner in list(live):
            try:
                spent += 1 + play(learner, 1)[0]
            except BudgetError:
                live.remove(learner)
    assert 90 <= spent <= 100
    for learner in learners:
        learner.close()
    again = shared.learner("fixed", stages=[1, 1], learner={"run_budget": 100})
    assert again.report().spent == spent
    again.close()


def test_a_budget_holds_when_rounds_cannot_be_recorded(kind):
    learner = kind.learner(
        "fixed", stages=[1, 1], learner={"run_budget": 10}, durability="behind", queue=2
    )

    def fail(first, records):
        raise OSError("no space")

    append = learner._books.queue.store.append
    learner._books.queue.store.append = fail
    called = 0
    with suppress(BudgetError):
        for _ in range(500):
            round = learner.begin()
            for _ in range(round.depth + 1):
                round.observe("x")
                called += 1
            with suppress(StoreError):
                round.end()
    assert called == 10
    assert learner.report().spent == 10
    learner._books.queue.store.append = append
    learner.close()


def test_the_drift_bet_goes_on_after_restarts(kind, play):
    heard: list[Any] = []
    settings = {"drift": Drift(window=20), "on_drift": heard.append}
    for _ in range(30):
        learner = kind.learner("fixed", stages=[0, 1], learner=settings)
        play(learner, 20, outputs=("x", "x"))
        learner.close()
    assert not heard
    for _ in range(3):
        learner = kind.learner("fixed", stages=[0, 1], learner=settings)
        play(learner, 20, outputs=("x", "y"))
        learner.close()
    assert heard
    assert heard[0].before == 0.0
    assert heard[0].after == 1.0


def test_evidence_from_elsewhere_is_kept(kind, play):
    extra = Evidence.from_prefixes(3, [[0, 1, 1], [0, 0, 0]])
    learner = kind.learner()
    learner.add_evidence(extra, "x")
    play(learner, 5)
    learner.close()
    again = kind.learner()
    assert again.evidence("x") == extra
    assert again.evidence() == learner.evidence()
    again.close()


def test_other_settings_are_refused(kind, play):
    learner = kind.learner()
    play(learner, 2)
    learner.close()
    with pytest.raises(StopwiseError, match="costs is"):
        kind.learner(stages={"a": 0, "b": 0.1, "c": 0.3})
    with pytest.raises(StoreError, match="closed"):
        play(learner, 1)
    again = kind.learner()
    assert again.rounds == 2
    again.close()


def test_reading_half_of_the_rounds_stands_in_nobodys_way(kind, play):
    learner = kind.learner(keep_rounds=True)
    play(learner, 10)
    reading = learner._books.queue.store.read_rounds()
    next(reading)
    if kind.shared:
        other = kind.learner(keep_rounds=True)
        play(other, 10)
        other.close()
    play(learner, 300)
    assert learner.store_status.failures == 0
    assert learner.rounds == 310 + 10 * kind.shared
    assert len(list(reading)) >= 9
    learner.close()


def test_killed_at_random_moments_with_postgres(postgres, tmp_path):
    """A few kills; `benchmarks/kill_test.py` does 300."""
    url = postgres.new_database()
    kill_test.kill_often(tmp_path / "postgres", url, kills=6, seed=1)


def test_a_database_that_is_stopped_at_once_loses_nothing(postgres, play):
    if not postgres.ours:
        pytest.skip("the server that STOPWISE_TEST_POSTGRES names is not ours to stop")
    settings = {"keep_rounds": True, "patience": 3.0}
    url = postgres.new_database()
    learner = Learner(STAGES, seed=1, store=PostgresStore(url, durability="behind", **settings))
    play(learner, 100)
    postgres.stop("immediate")
    play(learner, 50)
    with pytest.raises(StoreError):
        learner.flush()
    assert learner.store_status.queued >= 50
    postgres.start()
    deadline = time.monotonic() + 60
    while learner.store_status.queued and time.monotonic() < deadline:
        time.sleep(0.05)
    evidence = learner.evidence()
    learner.close()
    again = Learner(STAGES, seed=1, store=PostgresStore(url, **settings))
    assert (again.rounds, again.evidence()) == (150, evidence)
    again.close()
    assert len(list(PostgresStore(url).read_rounds())) == 150


def test_a_connection_that_is_cut_counts_every_round_once(postgres, play):
    import psycopg

    url = postgres.new_database()
    learner = Learner(STAGES, seed=1, store=PostgresStore(url, keep_rounds=True))
    with psycopg.connect(postgres.url, autocommit=True) as other:
        for _ in range(10):
            play(learner, 3)
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'stopwise'"
            )
            with suppress(StoreError):
                play(learner, 1)
    learner.flush()
    assert learner.store_status.failures > 0
    assert learner.rounds == 40
    evidence = learner.evidence()
    learner.close()
    again = Learner(STAGES, seed=1, store=PostgresStore(url))
    assert (again.rounds, again.evidence()) == (40, evidence)
    again.close()
