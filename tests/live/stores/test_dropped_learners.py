"""A learner that is dropped without `close` keeps neither file nor name from the next one."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stopwise.checks import StopwiseError
from stopwise.live import Learner, RoundLog, SqliteStore

OPEN_FILES = Path("/proc/self/fd")
STAGES = {"a": 1, "b": 2}


def run_round(learner):
    with learner.begin() as round:
        for stage in range(round.depth + 1):
            round.observe(stage)


def make(kind, folder, durability="round", policy="fixed"):
    if kind == "log":
        store: RoundLog | SqliteStore = RoundLog(folder / "rounds.jsonl", durability=durability)
    else:
        store = SqliteStore(folder / "rounds.db", writer="web", durability=durability)
    return Learner(STAGES, policy, seed=1, store=store)


@pytest.mark.parametrize("policy", ["fixed", "per-item"])
@pytest.mark.parametrize("durability", ["round", "behind"])
@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_what_was_dropped_is_written_and_let_go(tmp_path, kind, durability, policy):
    for _ in range(4):
        learner = make(kind, tmp_path, durability, policy)
        run_round(learner)
        if durability == "behind":
            learner.flush()  # the next opening would else wait for the flush interval
        del learner
        gc.collect()
    last = make(kind, tmp_path, policy=policy)
    assert last.rounds == 4
    last.close()


def test_rounds_of_a_dropped_learner_are_written_first(tmp_path):
    learner = Learner(
        STAGES, "fixed",
        store=RoundLog(tmp_path / "rounds.jsonl", durability="behind", flush_seconds=0.05),
    )  # fmt: skip
    run_round(learner)
    del learner
    gc.collect()
    for _ in range(50):
        try:
            again = Learner(STAGES, "fixed", store=RoundLog(tmp_path / "rounds.jsonl"))
            break
        except StopwiseError:
            gc.collect()
    assert again.rounds == 1
    again.close()


def test_a_store_that_the_user_still_has_is_closed_with_its_learner(tmp_path):
    store = RoundLog(tmp_path / "rounds.jsonl")
    learner = Learner(STAGES, "fixed", store=store)
    run_round(learner)
    del learner
    gc.collect()
    again = Learner(STAGES, "fixed", store=RoundLog(tmp_path / "rounds.jsonl"))
    assert again.rounds == 1
    again.close()


def test_a_store_that_was_closed_and_is_used_again_stays_open(tmp_path):
    store = RoundLog(tmp_path / "rounds.jsonl")
    first = Learner(STAGES, "fixed", store=store)
    first.close()
    second = Learner(STAGES, "fixed", store=store)
    with pytest.raises(StopwiseError, match="in use by another learner"):
        Learner(STAGES, "fixed", store=store)
    del first
    gc.collect()
    run_round(second)
    assert second.store_status.kept == 1
    second.close()


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc")
def test_no_file_stays_open(tmp_path):
    before = len(list(OPEN_FILES.iterdir()))
    for at in range(5):
        (tmp_path / str(at)).mkdir()
        for kind in ("log", "sqlite"):
            run_round(make(kind, tmp_path / str(at)))
    gc.collect()
    assert len(list(OPEN_FILES.iterdir())) <= before + 1


@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_the_message_says_who_has_it(tmp_path, kind):
    learner = make(kind, tmp_path)
    with pytest.raises(StopwiseError, match="another learner of this process"):
        make(kind, tmp_path)
    program = f"""
from pathlib import Path
from stopwise.live import Learner, RoundLog, SqliteStore
folder = Path({str(tmp_path)!r})
kind = {kind!r}
store = (RoundLog(folder / "rounds.jsonl") if kind == "log"
         else SqliteStore(folder / "rounds.db", writer="web"))
try:
    Learner({STAGES!r}, "fixed", seed=1, store=store)
except Exception as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert b"another process is" in found.stdout
    learner.close()


@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_what_was_dropped_while_its_thread_was_at_work_is_let_go(tmp_path, kind):
    learner = make(kind, tmp_path)
    run_round(learner)
    queue = learner._books.queue
    at_work, go_on = threading.Event(), threading.Event()

    def work():
        at_work.set()
        go_on.wait(30)

    asking = threading.Thread(target=queue.call, args=(work,))
    asking.start()
    at_work.wait(30)
    del learner, queue
    gc.collect()  # too early: the thread has the queue
    go_on.set()
    asking.join()
    del asking
    again = make(kind, tmp_path)
    assert again.rounds == 1
    again.close()
