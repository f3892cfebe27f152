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

from stopwise import Evidence, StopwiseError
from stopwise.live import BudgetError, Drift, StoreError


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


def test_rounds_that_come_quicker_than_a_store_writes_wait_and_are_not_refused(kind, play):
    learner = kind.learner(durability="behind", queue=20)
    store = learner._books.queue.store
    append = store.append

    def slow(first, records):
        time.sleep(0.01)
        return append(first, records)

    store.append = slow
    play(learner, 500)
    assert learner.store_status.unrecorded == 0
    learner.close()
    again = kind.learner()
    assert again.rounds == 500
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
        folder=str(Path(__file__).parents[2]), name=kind.name, path=str(kind.folder), url=kind.url,
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

    in_time = []

    def slow(first, records):
        in_time.append(ticked.wait(20))  # a loop that stands still never says so
        return append(first, records)

    ticked = threading.Event()
    store.append = slow

    async def tick():
        for _ in range(8):
            await asyncio.sleep(0.01)
        ticked.set()

    async def run():
        ticking = asyncio.create_task(tick())
        round = learner.begin()
        for _ in range(3):
            round.observe("x")
        await round.end_async()
        await ticking

    asyncio.run(run())
    learner.close()
    assert in_time == [True]


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
