"""What `on_drift` may do while a store is in use: everything."""

import threading

import pytest

from stopwise.live import Drift, Learner, RoundLog
from stopwise.live.watching.drift import DriftAlarm


def run_round(learner, output):
    with learner.begin() as round:
        round.observe("x")
        round.observe(output)


def alarmed(folder, listen, durability="round"):
    """A learner whose second stage changes its mind, run in a thread that must not hang."""
    learner = Learner(
        [0, 1], "fixed", drift=Drift(window=20), on_drift=listen,
        store=RoundLog(folder / "rounds.jsonl", durability=durability),
    )  # fmt: skip

    def run():
        for at in range(700):
            try:
                run_round(learner, "x" if at < 600 else "y")
            except Exception:  # noqa: BLE001  # the listener has closed it
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    return learner


@pytest.mark.parametrize("durability", ["round", "behind"])
def test_a_listener_may_begin_rounds(tmp_path, durability):
    heard = threading.Event()
    learners: list[Learner] = []

    def listen(alarm):
        while not learners:
            heard.wait(0.01)
        run_round(learners[0], "y")
        learners[0].flush()
        heard.set()

    learner = alarmed(tmp_path, listen, durability)
    learners.append(learner)
    assert heard.wait(30)
    learner.close()
    assert learner.rounds == 700 + len(learner.alarms)


def test_what_a_store_heard_is_never_told_in_the_thread_of_a_round(tmp_path, monkeypatch):
    threads: list[str] = []
    started = threading.Thread.start

    def start_late(thread):
        # As where the thread of `on_drift` is slow to begin and a round ends before it.
        if thread.name == "stopwise on_drift":
            run_round(learner, "y")
        started(thread)

    learner = Learner(
        [0, 1], "fixed", on_drift=lambda alarm: threads.append(threading.current_thread().name)
    )
    monkeypatch.setattr(threading.Thread, "start", start_late)
    learner._books.ledger.listeners.hear([DriftAlarm("", (0, 1), 100, 0.1, 0.4)])
    learner._books.ledger.listeners.wait(30)
    assert threads == ["stopwise on_drift"]


def test_a_listener_may_close_the_learner(tmp_path):
    learners: list[Learner] = []
    closed = threading.Event()

    def listen(alarm):
        while not learners:
            closed.wait(0.01)
        learners[0].close()
        closed.set()

    learner = alarmed(tmp_path, listen)
    learners.append(learner)
    assert closed.wait(30)
    learner.close()
    assert learner.store_status.queued == 0


@pytest.mark.filterwarnings("ignore:on_drift raised")
@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), RuntimeError()])
def test_whatever_a_listener_raises_rounds_are_written(tmp_path, error):
    heard = threading.Event()

    def listen(alarm):
        heard.set()
        raise error

    learner = alarmed(tmp_path, listen)
    assert heard.wait(30)
    assert learner.store_status.kept == 700
    run_round(learner, "y")
    learner.close()
    assert learner.store_status.kept == 701


def test_a_listener_that_never_returns_stops_nobody(tmp_path):
    never = threading.Event()
    learner = alarmed(tmp_path, lambda alarm: never.wait(30))
    assert learner.store_status.kept == 700
    never.set()
    learner.close()
