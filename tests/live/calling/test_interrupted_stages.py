"""A signal handler that raises while stages are called: what was called is paid, exactly."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from moments import interrupted
from patience import eventually
from stopwise.live import Cascade, Learner, Retry, RoundLog, SqliteStore, Stage

COSTS = (1.0, 2.0, 4.0)


class SoftLimitError(Exception):
    """As task queues raise it, from a signal handler."""


class Calls:
    """Stages that count how often they are called, before anything else that they do."""

    def __init__(self, work: Callable[[], object] | None = None, **settings: Any) -> None:
        self.numbers = [0, 0, 0]
        self.batches: list[list[list[int]]] = [[], [], []]
        self.settings = settings
        self.work = work

    @property
    def spent(self) -> float:
        sizes = [sum(map(len, batches)) for batches in self.batches]
        return sum(
            (number + size) * cost
            for number, size, cost in zip(self.numbers, sizes, COSTS, strict=True)
        )

    def plain(self, at: int) -> Stage:
        numbers, work = self.numbers, self.work

        def call(item: int) -> int:
            numbers[at] += 1
            if work is not None:
                work()
            return item % (at + 2)

        return Stage(f"s{at}", call, COSTS[at], **self.settings)

    def batch(self, at: int) -> Stage:
        batches, work = self.batches[at], self.work

        def call(items: list[int]) -> list[int]:
            batches.append(items)
            if work is not None:
                work()
            return [item % (at + 2) for item in items]

        return Stage(f"s{at}", call, COSTS[at], batch=True, **self.settings)

    def awaited(self, at: int) -> Stage:
        numbers = self.numbers

        async def call(item: int) -> int:
            numbers[at] += 1
            await asyncio.sleep(0)
            await asyncio.sleep(0.0001)
            return item % (at + 2)

        return Stage(f"s{at}", call, COSTS[at], **self.settings)

    def stages(self, kind: str) -> list[Stage]:
        return [getattr(self, kind)(at) for at in range(3)]


def check(learner: Learner, calls: Calls) -> None:
    """Spent equals what was called, the whole equals its segments, and nothing is held back."""
    report = learner.report()
    assert report.spent == pytest.approx(calls.spent)
    segments = [learner.report(segment) for segment in learner.segments]
    assert report.spent == pytest.approx(sum(one.spent for one in segments))
    assert report.rounds == sum(one.rounds for one in segments)
    assert learner._books.ledger.budgets.held == pytest.approx(0)


def answer_all(cascade: Cascade, way: str) -> None:
    if way == "answer":
        cascade.answer(3, segment="a")
    elif way == "many":
        cascade.answer_many(range(4), segment=["a", "b", "a", "b"], batch_size=4).collect()
    else:
        asyncio.run(answer_some(cascade))


async def answer_some(cascade: Cascade) -> None:
    await asyncio.gather(*(cascade.answer_async(item, segment="a") for item in range(4)))


SETTINGS: list[dict[str, Any]] = [
    {},
    {"run_budget": 1e6},
    {"at_once": True},
    {"policy": "per-item"},
    {"costs": "reported"},
]


CASES = [
    pytest.param(kind, way, settings, id=f"{'-'.join(settings) or 'plain'}-{way}-{kind}")
    for settings in SETTINGS
    for way in ("answer", "many")
    for kind in ("plain", "batch")
    # What stages do not report is paid at a price that moves.
    if not (settings.get("costs") == "reported" and kind == "batch")
]


@pytest.mark.parametrize(("kind", "way", "settings"), CASES)
def test_what_was_called_is_paid_at_every_moment_of_an_answer(
    kind: str, way: str, settings: dict[str, Any]
) -> None:
    calls = Calls()
    cascade = Cascade(calls.stages(kind), mistake_cost=100, seed=2, **settings)
    moment = 0
    while interrupted(lambda: answer_all(cascade, way), moment):
        moment += 1 + moment // 60  # all of the first ones, then fewer
        check(cascade.learner, calls)
    assert moment > 30
    cascade.close()


# ---- by signals ------------------------------------------------------------------------------


@contextmanager
def handler_that_raises(
    error: type[BaseException], *, spare_asyncio: bool = False
) -> Iterator[None]:
    """A handler for alarms.

    Args:
        error: what it raises.
        spare_asyncio: raise only in stages and in what calls them, a moment later if need be: the
            event loop of Python does not survive an error between two tasks.
    """

    def handler(number: int, frame: FrameType | None) -> None:
        if spare_asyncio and (frame is None or not of_stages(frame)):
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
        else:
            raise error

    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def of_stages(frame: FrameType) -> bool:
    """Whether this is code of a stage, or of what calls stages."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    if name in ("settle", "begin_timeout"):
        return False  # called by the event loop itself
    return "stopwise" in file or (file == __file__ and name in ("call", "wait_a_little"))


def interrupt_often(
    work: Callable[[], None], error: type[BaseException], times: int, *, spare_asyncio: bool = False
) -> int:
    """Do the work again and again, with an alarm at a random moment of it; how many were raised.

    What an interrupt leaves behind, such as tasks of a loop that has ended, is collected before the
    next: a second one in the middle of cleaning up after the first is not what is promised.
    """
    rng = random.Random(1)
    start = time.perf_counter()
    work()
    longest = 1.2 * (time.perf_counter() - start) + 1e-4
    raised = 0
    gc.collect()
    gc.freeze()  # so that collecting after every interrupt is quick
    with handler_that_raises(error, spare_asyncio=spare_asyncio):
        for _ in range(times):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, longest))
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except error:
                raised += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                gc.collect()
    gc.unfreeze()
    return raised


def wait_a_little() -> None:
    until = time.perf_counter() + 2e-5
    while time.perf_counter() < until:
        pass


WAYS: list[tuple[str, str, dict[str, Any]]] = [
    ("plain", "answer", {}),
    ("plain", "answer", {"run_budget": 1e6}),
    ("plain", "answer", {"at_once": True}),
    ("plain", "answer", {"timeout": 5.0, "retry": Retry(2, wait=0.0)}),
    ("plain", "many", {}),
    ("batch", "many", {}),
    ("batch", "many", {"run_budget": 1e6}),
    ("awaited", "answer", {}),
    ("awaited", "answer", {"at_once": True}),
    ("awaited", "answer", {"timeout": 5.0, "retry": Retry(2, wait=0.0)}),
    ("awaited", "many", {}),
    ("awaited", "async", {}),
    ("awaited", "async", {"at_once": True}),
    ("plain", "async", {}),
]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such alarms here")
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SoftLimitError"])
def test_what_was_called_is_paid_whenever_a_signal_handler_raises(error: str) -> None:
    # In a process of its own: Python says a lot about tasks whose start was interrupted.
    found = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, error],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.splitlines() == [f"{at} holds" for at in range(len(WAYS))]


def interrupt_all(error: type[BaseException]) -> None:
    """What the test above runs: a line for each way in which what was called has been paid."""
    for at, (kind, way, settings) in enumerate(WAYS):
        of_stages = {name: settings[name] for name in ("timeout", "retry") if name in settings}
        of_cascade = {name: one for name, one in settings.items() if name not in of_stages}
        calls = Calls(wait_a_little, **of_stages)
        cascade = Cascade(calls.stages(kind), mistake_cost=100, seed=2, **of_cascade)
        interrupt_often(
            lambda cascade=cascade, way=way: answer_all(cascade, way),  # type: ignore[misc]
            error,
            50,
            spare_asyncio=way == "async",
        )
        cascade.close()
        gc.collect()
        # Calls in threads that had begun count when they have ended.
        eventually(lambda learner=cascade.learner, calls=calls: check(learner, calls))  # type: ignore[misc]
        print(at, "holds", flush=True)


@pytest.mark.parametrize("kind", ["plain", "awaited", "batch"])
@pytest.mark.parametrize("settings", [{}, {"at_once": True}, {"retry": 1, "timeout": 5.0}])
def test_what_was_called_is_paid_whenever_answers_are_cancelled(
    kind: str, settings: dict[str, Any]
) -> None:
    at_once = settings.get("at_once", False)
    calls = Calls(None, **{name: one for name, one in settings.items() if name != "at_once"})
    rng = random.Random(2)

    async def cancel_some() -> None:
        for turn in range(60):
            many = cascade.answer_many_async(range(4), segment="b", batch_size=4)
            work = answer_some(cascade) if turn % 2 else many.collect()
            task = asyncio.ensure_future(work)  # type: ignore[arg-type]
            for _ in range(rng.randrange(12)):
                await asyncio.sleep(0)
            if turn % 3 == 0:
                await asyncio.sleep(rng.uniform(0, 1e-3))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    with Cascade(calls.stages(kind), mistake_cost=100, seed=2, at_once=at_once) as cascade:
        asyncio.run(cancel_some())
        eventually(lambda: check(cascade.learner, calls))


def test_calls_that_had_not_begun_when_a_handler_raised_never_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gather = asyncio.gather

    def interrupted_gather(*works: Any, **settings: Any) -> Any:
        found = gather(*works, **settings)
        if not settings:  # once: what is begun while an error is raised is waited for
            monkeypatch.undo()
            raise SoftLimitError
        return found

    async def answer_and_wait() -> None:
        monkeypatch.setattr(asyncio, "gather", interrupted_gather)
        with pytest.raises(SoftLimitError):
            await cascade.answer_async(1)
        await asyncio.sleep(0.01)

    calls = Calls()
    cascade = Cascade(
        calls.stages("awaited"), mistake_cost=100, policy="fixed:stage=2", at_once=True
    )
    asyncio.run(answer_and_wait())
    assert calls.numbers == [0, 0, 0]
    check(cascade.learner, calls)


def test_calls_that_failed_and_were_made_again_are_paid_when_the_last_is_interrupted() -> None:
    made = [0]

    def fails(item: int) -> int:
        made[0] += 1
        if made[0] == 3:
            raise KeyboardInterrupt
        raise ValueError

    stages = [Stage("a", fails, 1.5, retry=Retry(5, wait=0.0)), Stage("b", abs, 1)]
    cascade = Cascade(stages, mistake_cost=100)
    with pytest.raises(KeyboardInterrupt):
        cascade.answer(1)
    assert made == [3]
    assert cascade.learner.report().spent == 4.5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a finaliser
@pytest.mark.parametrize("kind", ["log", "sqlite"])
def test_memory_equals_the_file_after_interrupts(kind: str, tmp_path: Path) -> None:
    def store() -> RoundLog | SqliteStore:
        name = tmp_path / "rounds"
        return RoundLog(name) if kind == "log" else SqliteStore(name)

    calls = Calls(wait_a_little)
    cascade = Cascade(calls.stages("plain"), mistake_cost=100, store=store())
    interrupt_often(lambda: answer_all(cascade, "answer"), KeyboardInterrupt, 100)
    interrupt_often(lambda: answer_all(cascade, "many"), KeyboardInterrupt, 100)
    check(cascade.learner, calls)
    report = cascade.learner.report()
    cascade.close()
    with Cascade(calls.stages("plain"), mistake_cost=100, store=store()) as again:
        kept = again.learner.report()
    assert kept.rounds == report.rounds
    assert kept.spent == pytest.approx(report.spent)


def test_a_soft_time_limit_is_not_lost_while_forgotten_rounds_are_counted() -> None:
    raised = False

    def compare(one: object, two: object) -> bool:
        nonlocal raised
        if not raised:
            raised = True
            signal.raise_signal(signal.SIGALRM)
        return one == two

    learner = Learner([0, 1], "fixed:stage=1", mistake_cost=10, comparator=compare)
    with handler_that_raises(SoftLimitError):
        round = learner.begin()
        round.observe("a")
        round.observe("b")
        del round
        with pytest.raises(SoftLimitError):
            learner.begin()
    learner.begin().abandon()
    assert learner.rounds == 2
    assert learner.report().spent == 1


def test_a_soft_time_limit_goes_up_where_a_failing_store_or_listener_would_not() -> None:
    def tell(record: object) -> None:
        signal.raise_signal(signal.SIGALRM)

    cascade = Cascade([Stage("a", abs, 0), Stage("b", abs, 1)], mistake_cost=10, on_round=tell)
    with handler_that_raises(SoftLimitError), pytest.raises(SoftLimitError):
        cascade.answer(1)
    assert cascade.learner.rounds == 1


if __name__ == "__main__":
    kinds: dict[str, type[BaseException]] = {
        "KeyboardInterrupt": KeyboardInterrupt,
        "SoftLimitError": SoftLimitError,
    }
    faulthandler.dump_traceback_later(100)
    interrupt_all(kinds[sys.argv[1]])
