"""A signal handler that raises, at every moment of a round at which one can run."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
import weakref
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from moments import interrupted
from stopwise.checks import StopwiseError
from stopwise.live import Learner, RoundLog, SqliteStore
from stopwise.live.calling.background import _Background
from stopwise.live.interrupts import settling, start_thread
from thread_switching import at_once

STAGES = {"a": 0.0, "b": 1.0, "c": 3.0}


def open_store(kind: str, folder: Path) -> RoundLog | SqliteStore:
    name, durability = kind.split()
    if name == "log":
        return RoundLog(folder / "rounds.jsonl", durability=durability)  # type: ignore[arg-type]
    return SqliteStore(folder / "rounds.db", durability=durability)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["log round", "log behind", "sqlite round", "sqlite behind"])
def test_a_round_interrupted_anywhere_leaves_the_store_usable(kind: str, tmp_path: Path) -> None:
    learner = Learner(STAGES, mistake_cost=10, store=open_store(kind, tmp_path))
    queue = learner._books.queue
    assert queue is not None

    def one_round() -> None:
        with learner.begin("x") as round:
            for stage in range(round.depth + 1):
                round.observe(stage % 2)

    moment = 0
    while interrupted(one_round, moment):
        queue.flush(timeout=10.0)  # raises where the writing thread was locked out
        moment += 1
    assert moment > 30
    report = learner.report()
    assert report.rounds == learner.report("x").rounds
    assert report.spent == learner.report("x").spent
    learner.close()
    with Learner(STAGES, mistake_cost=10, store=open_store(kind, tmp_path)) as again:
        assert (again.rounds, again.report().spent) == (report.rounds, report.spent)


def test_random_numbers_survive_an_interrupt_while_they_are_made() -> None:
    learner = Learner(STAGES, mistake_cost=10, seed=4)
    moment = 0
    while interrupted(lambda: learner.begin().abandon(), moment):
        moment += 1
        learner._books.ledger.chooser.reseed(4)  # its numbers are made again
        interrupted(lambda: learner.begin().abandon(), moment)
        learner.begin().abandon()
    assert moment > 10


def test_a_round_whose_making_was_interrupted_stands_in_nobodys_way() -> None:
    learner = Learner(STAGES, mistake_cost=10)
    ledger = learner._books.ledger
    ledger.round_class.__new__(ledger.round_class)  # dropped before its first line
    assert ledger.dropped
    learner.begin().abandon()
    assert learner.rounds == 1
    assert not ledger.dropped


@pytest.mark.parametrize("budget", [None, 1e6])
def test_what_a_round_pays_and_holds_back_is_counted_once_wherever_it_is_interrupted(
    budget: float | None,
) -> None:
    for told in (None, 0.5):  # with a cost that is reported, rounds go the long way
        learner = Learner(STAGES, mistake_cost=10, run_budget=budget)
        each = [told] * 3 if told is not None else list(STAGES.values())
        seen: dict[str, list[int]] = {}

        def one_round(
            learner: Learner = learner, told: float | None = told, seen: dict[str, list[int]] = seen
        ) -> None:
            round = learner.begin()
            seen["outputs"] = round.outputs
            for stage in range(round.depth + 1):
                round.observe(stage % 2, told)
            round.end()

        spent = 0.0
        moment = 0
        while interrupted(one_round, moment):
            moment += 1
            spent += sum(each[: len(seen.pop("outputs", ()))])
            assert learner.report().spent == pytest.approx(spent)
            assert learner._books.ledger.budgets.held == 0
        assert moment > 15


def test_a_learner_that_dies_takes_the_rounds_that_were_dropped_with_it() -> None:
    learner = Learner(STAGES, mistake_cost=10)
    books = weakref.ref(learner._books)
    learner.begin()
    assert learner._books.ledger.dropped
    other = Learner(STAGES, mistake_cost=10)
    assert not other._books.ledger.dropped
    del learner
    gc.collect()
    assert books() is None


def test_rounds_that_are_dropped_are_counted_when_the_next_begins() -> None:
    learner = Learner(STAGES, mistake_cost=10)
    dropped = learner._books.ledger.dropped
    for at in range(100):
        assert len(dropped) == min(at, 1)
        learner.begin()
    assert learner.rounds == 100
    assert not dropped


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_rounds_that_the_parent_dropped_are_not_the_childs() -> None:
    learner = Learner(STAGES, "fixed", mistake_cost=10, run_budget=100)
    budgets = learner._books.ledger.budgets
    still_open = learner.begin()
    learner.begin().observe(0)
    assert budgets.held > 0
    child = os.fork()
    if child == 0:
        try:
            good = learner.rounds == 0 and budgets.held == 0
            own = learner.begin()
            held = budgets.held
            del still_open  # the parent ends it
            good = good and learner.rounds == 0 and budgets.held == held > 0
            own.abandon()
            good = good and learner.rounds == 1 and budgets.held == 0
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    still_open.abandon()
    assert learner.rounds == 2
    assert budgets.held == 0


def test_a_plain_round_ends_while_another_thread_has_the_lock() -> None:
    learner = Learner(STAGES, "fixed:stage=0", mistake_cost=10)
    for _ in range(2):  # the first one is compared
        round = learner.begin()
        round.observe("yes")
        if learner.rounds == 0:
            round.end()
    with learner._books.ledger.lock:
        thread = threading.Thread(target=round.end)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert learner.rounds == 2


@pytest.mark.parametrize("settings", [{}, {"run_budget": 1e9}, {"half_life": 50}])
def test_a_round_that_many_threads_end_at_once_is_counted_once(settings: dict[str, Any]) -> None:
    learner = Learner(STAGES, "fixed:stage=0", mistake_cost=10, **settings)
    ended: list[Any] = []

    def end(round: Any, ready: threading.Barrier) -> None:
        ready.wait(60)
        with suppress(StopwiseError):  # it has ended already
            ended.append(round.end())

    for _ in range(50):
        round = learner.begin()
        round.observe("yes")
        at_once([partial(end, round, threading.Barrier(4))] * 4)
    assert len(ended) == learner.rounds == 50


@pytest.mark.parametrize("abandoned", [False, True])
def test_a_round_that_ends_without_the_lock_while_another_end_has_it_is_counted_once(
    abandoned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner(STAGES, "fixed:stage=0", mistake_cost=10)
    books = learner._books
    for _ in range(2):  # the first one is compared
        round = learner.begin()
        round.observe("yes")
        if learner.rounds == 0:
            round.end()

    class EndsTheRound(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            round.end()  # as another thread may, whenever a function is called
            return super().get(name, default)

    if abandoned:
        monkeypatch.setattr(
            type(books.ledger.keeper), "refusal", lambda keeper: round.end() and None
        )
    else:
        books.counters.tallies = EndsTheRound(books.counters.tallies)
    with pytest.raises(StopwiseError, match="has ended"):
        books.finish(round, abandoned)
    assert learner.rounds == 2


@pytest.mark.parametrize(
    "settings", [{}, {"run_budget": 1e9}, {"mode": "shadow"}, {"policy": "uss-voi-anytime"}]
)
def test_rounds_of_many_threads_are_counted_exactly_however_often_threads_switch(
    settings: dict[str, Any],
) -> None:
    learner = Learner(STAGES, mistake_cost=10, **settings)
    each, threads = 400, 8
    numbers: list[list[int]] = [[] for _ in range(threads)]
    costs = [0.0] * threads

    def work(at: int) -> None:
        for turn in range(each):
            round = learner.begin("ab"[turn % 2])
            numbers[at].append(round.number)
            for stage in range(round.depth + 1):
                round.observe((turn + stage * at) % 2)
            if turn % 50 == 49:
                costs[at] += sum(list(STAGES.values())[: round.called])
                continue  # nobody ends it
            costs[at] += round.end().cost

    at_once([partial(work, at) for at in range(threads)])
    assert sorted(chain.from_iterable(numbers)) == list(range(1, each * threads + 1))
    report = learner.report()
    assert report.rounds == each * threads
    assert report.spent == pytest.approx(sum(costs))
    assert report.rounds == sum(learner.report(segment).rounds for segment in "ab")
    assert learner._books.ledger.budgets.held == pytest.approx(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_threads_that_fork_at_the_same_time_let_go_of_all_they_held(tmp_path: Path) -> None:
    learner = Learner(STAGES, mistake_cost=10, store=open_store("log behind", tmp_path))
    children: list[int] = []

    def fork() -> None:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0)
            children.append(child)

    threads = [threading.Thread(target=fork) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 20
    ended = threading.Thread(target=lambda: learner.begin().abandon(), daemon=True)
    ended.start()
    ended.join(10)
    assert not ended.is_alive()
    learner.close()


def test_what_is_raised_while_a_thread_starts_is_raised_as_it_is() -> None:
    class Hiding(threading.Thread):
        """As in CPython, where a handler raises in the middle of `start`."""

        def start(self) -> None:
            try:
                raise TimeoutError("a soft limit")
            except TimeoutError:
                raise KeyError(self)  # noqa: B904  # the context is what the test is about

    class Refusing(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with pytest.raises(TimeoutError, match="soft"):
        start_thread(Hiding())
    with pytest.raises(RuntimeError, match="can't start"):
        start_thread(Refusing())


def test_the_background_loop_runs_after_its_making_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted_start(self: threading.Thread) -> None:
        raise KeyboardInterrupt

    background = _Background()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted_start)
        with pytest.raises(KeyboardInterrupt):
            background.loop()
    loop = background.loop()
    assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "done"), loop).result(30) == "done"
    loop.call_soon_threadsafe(loop.stop)
    while loop.is_running():
        time.sleep(0.001)
    loop.close()


def test_what_settles_a_future_lets_no_signal_handler_run():
    """An event loop drops what one raises in a callback: who awaits it would wait for ever."""
    seen = []

    async def settled():
        future = asyncio.get_running_loop().create_future()
        settle = settling(future)
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        try:
            settle()
            settle()
        finally:
            sys.setprofile(None)
        await future

    asyncio.run(settled())
    assert "call" not in seen  # handlers run where functions of Python begin
    assert seen.count("c_call") >= 1
