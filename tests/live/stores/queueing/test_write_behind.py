"""Written behind, but not by more than a flush interval; and a store that hangs holds nobody up."""

import asyncio
import threading
import time

from stopwise.live import Cascade, Learner, RoundLog, Stage


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


def test_rounds_that_a_kill_would_cost_have_ended_within_one_interval(tmp_path):
    learner = Learner([0, 1], "fixed", store=SlowLog(tmp_path / "log", durability="behind"))
    acknowledged, spans = [], []
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        end_one(learner)
        acknowledged.append(time.monotonic())
        lost = acknowledged[learner.store_status.kept :]
        spans.append(lost[-1] - lost[0] if lost else 0.0)
    learner.close()
    # A write takes 300 ms: without waiting, the rounds of that time would be lost.
    assert max(spans) < 0.1 + 0.1
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
