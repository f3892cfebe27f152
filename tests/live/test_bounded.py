"""Memory and time that do not grow: long texts, many segments, half-lives, the first round."""

import subprocess
import sys
import threading
import time
import tracemalloc
from typing import Any

import pytest

from stopwise.live import Drift, Learner


def play(learner, number, segment="", text=lambda at, stage: "x"):
    for at in range(number):
        with learner.begin(segment) as round:
            for stage in range(round.depth + 1):
                round.observe(text(at, stage))


def grown(work):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_free_texts_are_not_kept():
    learner = Learner([0, 0.1], "fixed")
    play(learner, 50)
    size = grown(lambda: play(learner, 3000, text=lambda at, stage: f"{at} {stage} " + "y" * 1000))
    assert size < 1_000_000  # 6 MB of texts went through


def test_texts_of_many_segments_are_not_kept():
    learner = Learner([0, 0.1], "fixed")

    def work():
        for segment in range(30):
            play(learner, 100, f"s{segment}", lambda at, stage: f"{at} {stage} " + "y" * 500)

    assert grown(work) < 1_000_000


def test_segments_beyond_the_limit_are_counted_together(caplog):
    learner = Learner([0, 1], "fixed", max_segments=10)
    for at in range(50):
        play(learner, 1, f"s{at}")
    assert len(learner.segments) == 11
    assert learner.report("other").rounds == 40
    assert learner.rounds == 50
    assert sum("max_segments" in record.message for record in caplog.records) == 1


def cpu_of_a_round(segments, **settings):
    learner = Learner([0, 0.1, 0.1], **settings)
    for at in range(segments):
        play(learner, 1, f"s{at}")
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        play(learner, 40, "s0", lambda at, stage: at * stage % 2)
        best = min(best, time.process_time() - start)
    return best / 40


def test_a_half_life_does_not_cost_more_with_more_segments():
    few, many = cpu_of_a_round(3, half_life=50.0), cpu_of_a_round(1500, half_life=50.0)
    assert many < 3 * few + 0.0005


def test_the_sum_of_recent_counts_is_that_of_the_segments():
    learner = Learner([0, 0.1, 0.1], "fixed", half_life=7.0)
    for at in range(400):
        play(learner, 1, f"s{at % 5}", lambda _, stage, at=at: at * stage % 3)
    counters = learner._books.counters
    parts = [tally.values for tally in counters.tallies.values()]
    sums = [sum(values) for values in zip(*parts, strict=True)]
    assert counters.pool.values == pytest.approx(sums, rel=1e-9)


def test_the_first_round_does_not_wait_for_imports():
    code = """
import time
from stopwise.live import Learner
for policy in ("uss-ts", "uss-ts-jump", "uss-voi-anytime"):
    learner = Learner([0, 0.1, 0.1], policy)
    start = time.process_time()
    learner.begin()
    assert time.process_time() - start < 0.05, policy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_listener_may_read_the_learner_from_another_thread():
    seen = []

    def listen(alarm):
        thread = threading.Thread(target=lambda: seen.append(learner.rounds))
        thread.start()
        thread.join(10)
        assert not thread.is_alive()

    learner = Learner([0, 1], "fixed", drift=Drift(window=20), on_drift=listen)
    play(learner, 300)
    play(learner, 60, text=lambda at, stage: stage)
    assert seen


def test_every_round_is_told_to_a_listener():
    heard: list[Any] = []
    learner = Learner([0, 0.1], on_round=heard.append, seed=3)
    play(learner, 20, "s")
    assert [record.segment for record in heard] == ["s"] * 20
    assert [record.sequence for record in heard] == list(range(1, 21))
