"""Threads for plain stages: limited, reused, left behind when a call does not return."""

import asyncio
import multiprocessing
import threading
import time

import pytest

from moments import interrupted
from stopwise.live import Cascade, Stage, StageBusyError
from stopwise.live.calling.jobs import LeftRunning
from stopwise.live.calling.locks import ForkSafeLock
from stopwise.live.calling.retrying import Breaker, BreakerState
from stopwise.live.calling.threads import Threads
from stopwise.live.comparing import judge


def stopwise_threads():
    return [thread for thread in threading.enumerate() if thread.name == "stopwise"]


def test_calls_that_ran_out_of_time_are_limited_and_say_so():
    release = threading.Event()
    hangs = Stage("hangs", lambda item: release.wait(60), 1, timeout=0.05, most_left=5)
    with Cascade([Stage("fast", str), hangs], "fixed") as cascade:
        answers = [cascade.answer(item) for item in range(50)]
        answers += asyncio.run(many(cascade, 50))
        assert cascade._caller._left[1].number == 5
        assert [answer.answer for answer in answers] == list(map(str, [*range(50), *range(50)]))
        errors = [answer.failures[0][1] for answer in answers]
        late = sum(type(error) is TimeoutError for error in errors)
        assert late >= 5  # on a busy machine some run out of time before they begin
        busy = [error for error in errors if isinstance(error, StageBusyError)]
        assert len(busy) == 100 - late
        assert "5 calls that ran out of time are still running" in str(busy[0])
        assert answers[-1].cost == 0  # it was not called
        release.set()
        until = time.monotonic() + 10
        while cascade._caller._left[1].number and time.monotonic() < until:
            time.sleep(0.01)
        assert cascade.answer(1).stage == "hangs"


def test_calls_that_wait_for_a_thread_are_limited_too():
    release = threading.Event()
    hangs = Stage("hangs", lambda item: release.wait(60), 1, timeout=0.01, most_left=5)
    cascade = Cascade([Stage("fast", str), hangs], "fixed", workers=4)
    answers = asyncio.run(many(cascade, 300))
    assert 5 <= cascade._caller._left[1].number <= 5 + 4
    release.set()
    timed_out = [answer for answer in answers if type(answer.failures[0][1]) is TimeoutError]
    assert 5 <= len(timed_out) <= 5 + 4
    assert cascade.learner.report().spent == len(timed_out)


async def many(cascade, number):
    return await asyncio.gather(*(cascade.answer_async(item) for item in range(number)))


def test_async_calls_of_plain_stages_use_a_limited_number_of_threads():
    most, before = [], len(stopwise_threads())

    def work(item):
        most.append(len(stopwise_threads()) - before)
        time.sleep(0.002)
        return item

    cascade = Cascade([Stage("a", work), Stage("b", work, 1, timeout=30)], "fixed", workers=3)
    asyncio.run(many(cascade, 60))
    cascade.close()
    assert cascade.learner.rounds == 60
    assert max(most) <= 3


def test_at_once_with_a_stage_that_asks_the_cascade_and_no_free_thread():
    def build(depth):
        if depth == 0:
            return Cascade([Stage("x", str), Stage("y", str, 1)], "fixed", at_once=True, workers=1)
        inner = build(depth - 1)

        def ask(item):
            return inner.answer(item).answer

        return Cascade([Stage("a", ask), Stage("b", ask, 1)], "fixed", at_once=True, workers=1)

    found = []

    def reenter(item):
        if item > 0:
            return cascade.answer(item - 1).answer
        return "end"

    stages = [Stage("a", reenter), Stage("b", reenter, 1), Stage("c", reenter, 1)]
    cascade = Cascade(stages, "fixed", at_once=True, workers=1)
    thread = threading.Thread(
        target=lambda: found.extend([build(3).answer(5).answer, cascade.answer(4).answer]),
        daemon=True,
    )
    thread.start()
    thread.join(30)
    assert found == ["5", "end"]


@pytest.mark.parametrize("on_failure", ["stop", "skip"])
@pytest.mark.parametrize("failing", range(8))
def test_at_once_gives_the_answer_of_one_after_another(on_failure, failing):
    def stage(at):
        def call(item):
            if failing >> at & 1:
                raise RuntimeError
            return at

        return Stage("abc"[at], call, at)

    found = []
    for at_once in (False, True):
        cascade = Cascade(
            [stage(at) for at in range(3)], "fixed:stage=1", on_failure=on_failure, at_once=at_once
        )
        try:
            answer = cascade.answer(0)
            found.append((answer.answer, answer.stage))
        except ValueError as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_threads_are_used_again_and_end():
    threads = Threads(2)
    names = {
        threads.call(lambda item: threading.get_ident(), 0, LeftRunning("x", 1), 5.0).value
        for _ in range(20)
    }
    assert len(names) < 10  # one that has just answered may not be free yet
    threads.close()


def in_child(cascade, answers):
    answers.put([cascade.answer(1).stage, asyncio.run(cascade.answer_async(1)).stage])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_has_its_own_threads_and_loop():
    async def remote(item):
        return str(item)

    stages = [Stage("a", str, timeout=5), Stage("b", remote, 1)]
    cascade = Cascade(stages, "fixed")
    assert cascade.answer(1).stage == "b"  # threads and loop have begun
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=in_child, args=(cascade, answers))
    child.start()
    assert answers.get(timeout=20) == ["b", "b"]
    child.join(20)
    assert child.exitcode == 0


def take(lock, taken):
    with lock.lock:
        taken.put(True)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_lock_that_another_thread_held_at_the_fork_is_free_in_the_child():
    lock, holds, release = ForkSafeLock(), threading.Event(), threading.Event()

    def hold():
        with lock.lock:
            holds.set()
            release.wait(30)

    threading.Thread(target=hold, daemon=True).start()
    holds.wait(10)
    context = multiprocessing.get_context("fork")
    taken = context.Queue()
    child = context.Process(target=take, args=(lock, taken))
    child.start()
    try:
        assert taken.get(timeout=20)
    finally:
        release.set()
        child.join(20)


@pytest.mark.parametrize("kind", ["breaker", "left running", "threads", "judge"])
def test_an_interrupt_at_any_moment_leaves_no_lock_taken(kind: str) -> None:
    state, left, threads = BreakerState(Breaker(1)), LeftRunning("a", 5), Threads(2)
    same = judge(lambda one, two: one == two, remember=2)
    texts = iter(range(10**9))

    def work() -> None:
        if kind == "breaker":
            state.note(failed=True)
            state.allows()
        elif kind == "left running":
            left.add(1)
        elif kind == "judge":
            same.agrees(next(texts), next(texts))
        else:
            threads.call(len, "abc", left, 5.0)

    def in_another_thread() -> None:
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(30)
        assert not worker.is_alive()  # locked out

    moment = 0
    while interrupted(work, moment):
        in_another_thread()
        moment += 1
    assert moment >= 3
    if kind == "threads":
        deadline = time.monotonic() + 30
        while threads._working and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threads._working == 0
