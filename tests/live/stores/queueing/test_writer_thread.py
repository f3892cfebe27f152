"""The thread that writes rounds: it reads them beside many writers, and nothing ends it."""

import threading
import time

import pytest

from stopwise.live import Learner, RoundLog, SqliteStore
from stopwise.live.stores.base import StoreError
from stopwise.live.stores.queueing.waiting import Result
from thread_switching import switching_often

STAGES = {"a": 1, "b": 2, "c": 4}


def run_round(learner):
    with learner.begin() as round:
        for stage in range(3):
            round.observe(stage)


@pytest.fixture
def switching():
    """Threads that take turns after every few instructions."""
    with switching_often():
        yield


@pytest.mark.parametrize("durability", ["round", "behind"])
def test_many_threads_lose_and_double_nothing(tmp_path, switching, durability):
    store = SqliteStore(tmp_path / "rounds.db", durability=durability, keep_rounds=True)
    learner = Learner(STAGES, "fixed", seed=1, store=store)
    failed = []

    def run():
        try:
            for _ in range(400):
                with learner.begin() as round:
                    for stage in range(3):
                        round.observe(stage)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failed
    assert not any(thread.is_alive() for thread in threads)
    learner.flush()
    assert learner.store_status.kept == 6400
    assert learner.store_status.failures == 0
    learner.close()
    numbers = [record.sequence for record in store.read_rounds()]
    assert sorted(numbers) == sorted(set(numbers))
    assert len(numbers) == 6400


def test_a_batch_is_read_by_number_and_not_by_place(tmp_path):
    """Another thread may append between any two steps of the one that reads."""
    learner = Learner(STAGES, "fixed", store=SqliteStore(tmp_path / "r.db", durability="behind"))
    queue = learner._books.queue
    rounds = queue.rounds

    class Appended(type(rounds)):
        """A deque to which a round is appended whenever its length has been asked for."""

        def __len__(self):
            length = super().__len__()
            queue.last += 1
            self.append((queue.last, f"round {queue.last}"))
            return length

    queue.kept, queue.last = 1, 2
    queue.rounds = Appended([(1, "round 1"), (2, "round 2")])
    assert queue._next_batch()[0] == "round 2"
    queue.rounds, queue.kept, queue.last = rounds, 0, 0
    learner.close()


@pytest.mark.parametrize("error", [RuntimeError("sudden"), SystemExit(3), KeyboardInterrupt()])
def test_what_nobody_foresaw_is_counted_and_the_thread_goes_on(tmp_path, monkeypatch, error):
    learner = Learner(STAGES, "fixed", store=SqliteStore(tmp_path / "rounds.db"))
    queue = learner._books.queue
    usual = queue._write
    raised: list[bool] = []

    def write():
        if not raised:
            raised.append(True)
            raise error
        usual()

    monkeypatch.setattr(queue, "_write", write)
    with pytest.raises(StoreError, match="tried again"):
        run_round(learner)
    status = learner.store_status
    assert (status.failures, status.kept, status.queued) == (1, 0, 1)
    learner.flush()
    assert learner.store_status.kept == 1
    assert learner.store_status.last_error is None
    learner.close()


def test_a_thread_that_ended_is_started_again(tmp_path):
    learner = Learner(STAGES, "fixed", store=SqliteStore(tmp_path / "rounds.db"))
    queue = learner._books.queue
    queue.stop()
    queue._thread.join(10)
    queue.ended = False
    run_round(learner)
    assert learner.store_status.kept == 1
    learner.close()


def test_a_thread_that_was_wrongly_taken_for_dead_writes_no_more(tmp_path, monkeypatch):
    # As after an interrupt inside `Thread.start`: the thread lives, and does not say so yet.
    store = RoundLog(tmp_path / "rounds", durability="behind", flush_seconds=0.001)
    learner = Learner(STAGES, "fixed", store=store)
    queue = learner._books.queue
    first = queue._thread
    monkeypatch.setattr(first, "is_alive", lambda: False)
    append = store.append

    def append_slowly(number, records):
        time.sleep(0.01)  # long enough for both to want to write the same rounds
        return append(number, records)

    monkeypatch.setattr(store, "append", append_slowly)
    for _ in range(300):
        run_round(learner)
    assert queue._thread is not first
    learner.close()
    monkeypatch.undo()
    first.join(30)
    assert not first.is_alive()
    assert len(list(store.read_rounds())) == 300


@pytest.mark.parametrize("kind", [RoundLog, SqliteStore])
def test_closing_while_others_end_rounds_keeps_what_it_acknowledged(tmp_path, kind):
    """Every round is either kept or refused, and nobody waits for a thread that has ended."""
    for turn in range(4):
        path = tmp_path / f"rounds {turn}"
        learner = Learner(STAGES, "fixed", seed=1, store=kind(path))
        kept: list[int] = []
        refused: list[str] = []

        def run(learner=learner, kept=kept, refused=refused):
            while True:
                try:
                    run_round(learner)
                    kept.append(1)
                except StoreError as error:
                    refused.append(str(error))
                    return

        threads = [threading.Thread(target=run, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        while not kept:
            time.sleep(0.001)
        learner.close()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        assert all("closed" in reason for reason in refused)
        again = Learner(STAGES, "fixed", seed=1, store=kind(path))
        assert again.rounds == len(kept)
        again.close()


def test_what_comes_after_the_last_step_of_the_thread_is_refused(tmp_path):
    learner = Learner(STAGES, "fixed", seed=1, store=RoundLog(tmp_path / "rounds"))
    run_round(learner)
    queue = learner._books.queue
    late = [Result(), Result()]
    refuse_rest = queue.refuse_rest

    def come_late():
        """The thread holds the lock and takes no other step: these came just before."""
        queue._calls.append((int, late[0]))
        queue._waiting.append((queue.last + 1, late[1].set))
        refuse_rest()

    queue.refuse_rest = come_late  # type: ignore[method-assign]
    queue.stop()
    for result in late:
        with pytest.raises(StoreError, match="closed"):
            result.get(60)
    with pytest.raises(StoreError, match="closed"):
        queue.call(int)
    with pytest.raises(StoreError, match="closed"):
        queue.wait(queue.last + 1, 60)
