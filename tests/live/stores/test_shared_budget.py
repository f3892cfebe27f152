"""A budget that processes share: no more than it is spent, and what the dead held comes back."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from stopwise.live import BudgetError, Cascade, Learner, RoundLog, SqliteStore, Stage
from stopwise.live.stores.databases.budget import SharedBudget

HOLDER = """
import sys, time
from stopwise.live import Learner, SqliteStore
class Store(SqliteStore):
    lease_seconds = 3.0
learner = Learner([1.0, 1.0], "fixed", run_budget=64.0, store=Store(sys.argv[1]))
rounds = [learner.begin() for _ in range(30)]      # they hold 60 of 64
print("holds", flush=True)
time.sleep(60)
"""


class ShortLease(SqliteStore):
    lease_seconds = 3.0


def test_what_a_killed_process_held_is_free_again(tmp_path):
    path = tmp_path / "rounds.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "holds\n"
            learner = Learner([1.0, 1.0], "fixed", run_budget=64.0, store=ShortLease(path))
            time.sleep(4)  # alive, it renews its lease: nothing is free but 4
            with pytest.raises(BudgetError):
                [learner.begin() for _ in range(5)]
        finally:
            os.kill(child.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while True:
        try:
            rounds = [learner.begin() for _ in range(28)]
            break
        except BudgetError:
            assert time.monotonic() < until, "what the dead process held is not given back"
            time.sleep(0.2)
    assert len(rounds) == 28
    for round in rounds:
        round.observe("a")
        round.observe("b")
        round.end()
    learner.close()


def test_a_lease_that_could_not_be_renewed_is_not_spent(tmp_path):
    now = [100.0]
    path = tmp_path / "rounds.db"
    one, two = (
        Learner([1.0, 1.0], "fixed", run_budget=1000.0, store=SqliteStore(path)) for _ in range(2)
    )
    round = one.begin()
    round.observe("a")
    round.observe("a")
    round.end()
    store = one._books.queue.store
    budget = store._budget
    assert isinstance(budget, SharedBudget)
    now[0] = budget._renewed + store.lease_seconds + 1
    budget._clock = lambda: now[0]
    assert store.grant_expired()
    assert one._books.ledger.budgets.granted > 0
    one.begin()  # asks again, as if it held nothing
    assert not store.grant_expired()
    one.close()
    two.close()


def test_a_new_process_of_the_same_name_holds_nothing(shared):
    one = shared.learner(writer="web", learner={"run_budget": 8.0})
    one.begin()
    connection = one._books.queue.store._connection
    query = "SELECT held FROM stopwise_writers WHERE name = 'web'"
    assert one._books.queue.call(lambda: connection.query(query))[0][0] > 0
    one._books.queue.call(one._books.queue.store.close)  # as if it had died
    again = shared.learner(writer="web", learner={"run_budget": 8.0})
    store = again._books.queue.store
    assert again._books.queue.call(lambda: store._connection.query(query))[0][0] == 0
    again.close()


def test_asking_for_more_of_a_budget_stops_neither_loop_nor_threads(tmp_path):
    path = tmp_path / "rounds.db"
    stages = [Stage("a", str, 1.0), Stage("b", str, 1.0)]
    store = SqliteStore(path, durability="behind")
    cascade = Cascade(stages, "fixed", mistake_cost=9, run_budget=1000.0, store=store)
    cascade.answer("x")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    open_round = cascade.learner.begin()

    async def work():
        answers = asyncio.gather(*(cascade.answer_async(str(at)) for at in range(60)))
        for _ in range(40):  # a loop that waits for the store would not come back to let it go
            await asyncio.sleep(0.005)
        open_round.abandon(wait=False)  # the lock is free while the store is asked
        assert not answers.done()
        other.execute("ROLLBACK")
        return await answers

    assert len(asyncio.run(work())) == 60
    other.close()
    cascade.close()


def test_no_more_than_the_budget_is_spent_by_many(tmp_path):
    path = Path(tmp_path / "rounds.db")
    learners = [
        Learner([1.0, 1.0], "fixed", run_budget=50.0, store=SqliteStore(path)) for _ in range(3)
    ]

    def work(learner):
        for _ in range(40):
            try:
                round = learner.begin()
            except BudgetError:
                return
            round.observe("a")
            if round.depth:
                round.observe("b")
            round.end()

    threads = [threading.Thread(target=work, args=(one,)) for one in learners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for learner in learners:
        learner.refresh()
    assert 47.0 <= learners[0].report().spent <= 50.0
    for learner in learners:
        learner.close()


def test_a_part_is_not_lost_where_asking_for_it_is_interrupted(shared):
    learner = shared.learner(learner={"run_budget": 64.0})
    queue = learner._books.queue
    call = queue.call

    def interrupted(function):
        call(function)
        raise KeyboardInterrupt

    queue.call = interrupted
    for _ in range(40):  # each asks for a 32nd, if it has not got one
        with suppress(KeyboardInterrupt):
            learner.begin().abandon()
    queue.call = call
    assert 0 < learner._books.ledger.budgets.granted <= 4
    learner.close()


def test_a_part_is_not_lost_where_its_commit_is(shared):
    learner = shared.learner(writer="web", learner={"run_budget": 64.0})
    store = learner._books.queue.store
    broken, store.broken = store.broken, lambda error: True

    def lose_answer():
        transaction = store._connection.transaction

        @contextmanager
        def committed(**settings):
            with transaction(**settings):
                yield
            raise ConnectionError("lost")

        store._connection.transaction = committed

    for _ in range(40):
        learner._books.queue.call(lose_answer)
        with pytest.raises(ConnectionError):
            learner.begin()
        learner._books.queue.call(store._connected)
    store.broken = broken
    learner.begin().abandon()
    learner.close()


@pytest.mark.parametrize("store", [SqliteStore, RoundLog])
def test_a_budget_of_many_more_calls_than_a_billion_can_be_spent(tmp_path, store):
    stages = {"a": 1e-4, "b": 1e-3}
    with Learner(stages, "fixed", run_budget=1e9, store=store(tmp_path / "rounds")) as learner:
        for _ in range(3):
            with learner.begin() as round:
                assert round.depth == 1
                round.observe("x")
                round.observe("x")


def test_a_refusal_says_what_is_left_and_not_more(tmp_path):
    learner = Learner([2.0, 1.0], "fixed", run_budget=2.0, store=RoundLog(tmp_path / "rounds"))
    with learner.begin() as round:
        round.observe("x")
    with pytest.raises(BudgetError, match="budget: 0 is left"):
        learner.begin()
