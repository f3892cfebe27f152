"""Written behind, but not by more than a flush interval; and a store that hangs holds nobody up."""

import asyncio
import threading
import time

import pytest

from stopwise.live import Cascade, Learner, RoundLog, Stage
from stopwise.live.stores.queueing import queue


class SlowLog(RoundLog):
    """A log whose writes take their time."""

    takes = 0.3

    def append(self, first, records):
        time.sleep(self.takes)
        return super().append(first, records)


class WaitingLog(RoundLog):
    """A log whose writes take until they are told to go on; `in_time` is False if nobody did."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.begun, self.go_on, self.in_time = threading.Event(), threading.Event(), True

    def append(self, first, records):
        self.begun.set()
        self.in_time &= self.go_on.wait(20)
        return super().append(first, records)


def end_one(learner):
    with learner.begin() as round:
        round.observe("a")
        round.observe("b")


@pytest.mark.parametrize(("takes", "batch"), [(0.3, 1024), (0.02, 64)])
def test_rounds_that_a_kill_would_cost_have_ended_within_one_interval(
    tmp_path, monkeypatch, takes, batch
):
    """Also where a store needs more than a second for what came in one interval."""
    monkeypatch.setattr(queue, "_BATCH", batch)
    monkeypatch.setattr(SlowLog, "takes", takes)
    learner = Learner([0, 1], "fixed", store=SlowLog(tmp_path / "log", durability="behind"))
    acknowledged, spans = [], []
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        end_one(learner)
        acknowledged.append(time.monotonic())
        lost = acknowledged[learner.store_status.kept :]
        spans.append(lost[-1] - lost[0] if lost else 0.0)
    learner.close()
    # Without waiting, the rounds of all that time would be lost. (A few may be late where the
    # machine had no time for this process.)
    assert sum(span > 0.1 + 0.1 for span in spans) <= 0.05 * len(spans)
    assert len(acknowledged) > 20


def test_the_event_loop_goes_on_while_rounds_wait_for_the_store(tmp_path):
    stages = [Stage("a", str, 0), Stage("b", str, 1)]
    store = WaitingLog(tmp_path / "log", durability="behind")
    cascade = Cascade(stages, "fixed", mistake_cost=9, store=store)

    async def work():
        answers = asyncio.gather(*(cascade.answer_async("x") for _ in range(200)))
        while not store.begun.is_set():
            await asyncio.sleep(0.002)
        for _ in range(20):  # more than one answer may be held back by now: the loop is not
            await asyncio.sleep(0.005)
        store.go_on.set()
        return await answers

    assert len(asyncio.run(work())) == 200
    cascade.close()
    assert store.in_time


def test_a_store_that_does_not_answer_is_not_waited_for(tmp_path):
    store = WaitingLog(tmp_path / "log", durability="behind")
    learner = Learner([0, 1], "fixed", store=store)
    for _ in range(2000):  # after a second without an answer, nobody waits any more
        end_one(learner)
    store.go_on.set()
    learner.close()
    assert store.in_time
    assert learner.store_status.kept == 2000


def test_rounds_that_threads_end_together_wake_the_store(tmp_path):
    store = RoundLog(tmp_path / "log", durability="behind")
    learner = Learner([0, 1], "fixed", store=store)
    late = 0
    for _ in range(30):
        together = threading.Barrier(4)

        def work(together=together):
            together.wait()
            end_one(learner)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        queued = time.monotonic()
        while learner.store_status.queued:
            time.sleep(0.005)
        late += time.monotonic() > queued + 0.8
    learner.close()
    assert late < 4, "nobody woke the thread"  # a busy machine may take its time now and then


def test_a_round_that_is_kept_does_not_wait_for_those_that_come_after_it(tmp_path, monkeypatch):
    """Rounds that go on coming faster than the store writes would hold it back for ever."""
    learner = Learner([0, 1], "fixed", store=RoundLog(tmp_path / "log", durability="behind"))
    monkeypatch.setattr(queue.RoundQueue, "_too_far", property(lambda self: True))

    async def end_in_loop():
        round = learner.begin()
        round.observe("a")
        round.observe("b")
        await asyncio.wait_for(round.end_async(), 10)

    asyncio.run(end_in_loop())
    end_one(learner)
    learner.close()
    assert learner.store_status.kept == 2
