"""Interrupts, forks, files that are moved or come from elsewhere: nothing is lost or destroyed."""

import json
import os
import random
import signal
import sys
import threading
import time

import pytest

from stopwise import Evidence
from stopwise.live import Learner


class Interrupt(Exception):  # noqa: N818  # as a task's soft time limit
    pass


def interrupted(work, moments, seed):
    """Call `work` again and again, raising from a signal handler at random moments."""
    rng = random.Random(seed)

    def strike(number, frame):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, strike)
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    struck = 0
    try:
        while struck < moments:
            try:
                # Again and again: what strikes in a finaliser is swallowed by Python.
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 0.003), 0.003)
                while True:
                    work()
            except Interrupt:
                struck += 1
            finally:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Interrupt:
                    struck += 1
    finally:
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def test_an_interrupt_at_any_moment_leaves_the_store_usable(kind):
    learner = kind.learner("fixed", keep_outputs=True, patience=5.0) if kind.shared else (
        kind.learner("fixed", keep_outputs=True)
    )  # fmt: skip
    ended = []

    def work():
        round = learner.begin()
        for output in ("x", "y", "x"):
            round.observe(output)
        round.end()
        ended.append(round.sequence)

    interrupted(work, 150, seed=1)
    learner.flush()
    if kind.shared:
        other = kind.learner("fixed", keep_outputs=True)  # nobody is locked out
        with other.begin() as round:
            for _ in range(3):
                round.observe("x")
        other.close()
    learner.refresh()
    evidence, rounds = learner.evidence(), learner.rounds
    spent = learner.report().spent
    learner.close()
    records = list(kind.store().read_rounds())
    assert len({(r.writer, r.sequence) for r in records}) == len(records) == rounds
    assert set(ended) <= {r.sequence for r in records}
    assert Evidence.from_prefixes(3, [r.outputs for r in records]) == evidence
    assert spent == pytest.approx(sum(r.cost for r in records))


@pytest.mark.parametrize("segments", [("",), ("", "s", "t")])
def test_an_interrupt_in_memory_leaves_the_sum_of_the_segments(segments):
    learner = Learner([1, 1, 1], seed=2)
    told = dict.fromkeys(segments, 0)
    at = 0

    def work():
        nonlocal at
        at += 1
        segment = segments[at % len(segments)]
        with learner.begin(segment) as round:
            for stage in range(round.depth + 1):
                round.observe((at * (stage + 1)) % 3)
        told[segment] += 1
        if at % 50 == 0:
            assert learner.rounds >= sum(told.values())

    interrupted(work, 300, seed=3)
    parts = [learner.report(segment) for segment in segments]
    whole = learner.report()
    assert whole.rounds == sum(part.rounds for part in parts)
    assert whole.calls == tuple(map(sum, zip(*(part.calls for part in parts), strict=True)))
    assert whole.spent == pytest.approx(sum(whole.calls))  # what was called is what was paid
    for segment in segments:
        assert learner.report(segment).rounds >= told[segment]
        probabilities = learner.probabilities(segment)
        learner._books.counters.peek(segment).renew_fast()
        assert probabilities == pytest.approx(learner.probabilities(segment), abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_go_on_as_writers_of_their_own(kind, play):
    half = {"learner": {"full_run_rate": 0.5}}
    learner = kind.learner("fixed:stage=0", keep_rounds=True, **half)
    play(learner, 5)
    pipes, children = [], []
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(read)
                depths = play(learner, 40)
                learner.close()
                os.write(write, json.dumps(depths).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        pipes.append(read)
        children.append(child)
    mine = play(learner, 40)
    drawn = []
    for read, child in zip(pipes, children, strict=True):
        with os.fdopen(read) as file:
            drawn.append(json.load(file))
        assert os.waitpid(child, 0)[1] == 0
    play(learner, 1)
    evidence = learner.evidence()
    learner.close()
    records = list(kind.store().read_rounds())
    assert len({(r.writer, r.sequence) for r in records}) == len(records) == 166
    assert len({r.writer for r in records}) == 4
    assert len({tuple(depths) for depths in [mine, *drawn]}) == 4  # each drew its own
    again = kind.learner("fixed:stage=0", **half)
    assert again.rounds == 166
    if kind.shared:
        assert again.evidence() == evidence
    again.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_holds_the_lock_does_not_hang(kind, play):
    learner = kind.learner()
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            play(learner, 1)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                try:
                    play(learner, 2)
                    os._exit(0)
                finally:
                    os._exit(1)
            deadline = time.monotonic() + 30
            while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    pytest.fail("the child hangs")
                time.sleep(0.005)
            assert found[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    learner.close()
