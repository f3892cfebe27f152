"""Several learners on one store: what they see of each other, and what holds over all."""

import time
from typing import Any

import pytest

from stopwise import StopwiseError
from stopwise.live import BudgetError, StoreError


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
