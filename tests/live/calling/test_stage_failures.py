"""Stages that raise, hang or come too late: what it means for the round, and what it costs."""

import asyncio
import threading

import pytest

from cascade_stages import boom, three
from stopwise import Evidence, StopwiseError
from stopwise.live import (
    Cascade,
    NoAnswerError,
    RoundLog,
    Stage,
)


@pytest.mark.parametrize("way", ["answer", "async", "many", "at once", "async at once"])
@pytest.mark.parametrize("on_failure", ["stop", "skip", "raise"])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_failures(way, on_failure, failing):
    functions = [lambda item: "x", lambda item: "x", lambda item: "y"]
    functions[failing] = boom
    cascade = three(*functions, on_failure=on_failure, at_once="at once" in way)

    def run():
        if "async" in way:
            return asyncio.run(cascade.answer_async(1))
        if way == "many":
            (answer,) = cascade.answer_many([1])
            if answer.error is not None:
                raise answer.error
            return answer
        return cascade.answer(1)

    outputs: list[str | None] = ["x", "x", "y"]
    outputs[failing] = None
    if on_failure == "raise":
        with pytest.raises(RuntimeError, match="down"):
            run()
        seen = outputs if "at once" in way else outputs[: failing + 1]
    elif on_failure == "stop" and failing == 0:
        with pytest.raises(NoAnswerError, match="a failed last") as caught:
            run()
        assert isinstance(caught.value.__cause__, RuntimeError)
        seen = outputs if "at once" in way else [None]
    else:
        answer = run()
        seen = outputs if on_failure == "skip" or "at once" in way else outputs[: failing + 1]
        used = outputs if on_failure == "skip" else outputs[:failing]
        given = [(name, one) for name, one in zip("abc", used, strict=False) if one is not None]
        assert (answer.stage, answer.answer) == given[-1]
        assert answer.failures[0][0] == "abc"[failing]
    learner = cascade.learner
    assert learner.evidence() == Evidence.from_prefixes(3, [seen])
    assert learner.report().failures[failing] == 1
    assert learner.rounds == 1
    cascade.close()


def test_skip_goes_beyond_the_depth_but_the_record_keeps_what_was_drawn(tmp_path):
    cascade = three(
        str, boom, str, policy="fixed:stage=1", on_failure="skip", store=RoundLog(tmp_path / "r")
    )
    answer = cascade.answer(1)
    assert (answer.stage, answer.depth, answer.cost) == ("c", "b", 2.0)
    cascade.close()
    assert '"depth": 1' in (tmp_path / "r").read_text()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_timeouts(asynchronous):
    async def slow_async(item):
        await asyncio.sleep(5)

    release = threading.Event()

    def slow(item):
        release.wait(5)

    stages = [
        Stage("fast", str, 0),
        Stage("slow", slow_async if asynchronous else slow, 1, timeout=0.05),
    ]
    with Cascade(stages, "fixed") as cascade:
        answer = cascade.answer(1)
        release.set()
    assert (answer.answer, answer.stage) == ("1", "fast")
    assert isinstance(answer.failures[0][1], TimeoutError)


def test_a_call_that_never_returns_holds_up_nothing():
    """Ten calls hang in a cascade with one worker; all are given up in time, at once or not."""
    release = threading.Event()
    stages = [
        Stage("fast", str, 0),
        Stage("hangs", lambda item: release.wait(60), 1, timeout=0.02),
    ]
    for at_once in (False, True):
        with Cascade(stages, "fixed", at_once=at_once, workers=1) as cascade:
            answers = [cascade.answer(item).answer for item in range(5)]
            waiting = asyncio.run(cascade.answer_async(9))
        assert answers == ["0", "1", "2", "3", "4"]
        assert waiting.answer == "9"
        assert "0.02 s" in str(cascade._caller.call(1, 0).error)
    release.set()


def test_skipping_keeps_the_budget_of_the_run():
    cascade = three(
        boom, str, str, costs=(1, 1, 1), policy="fixed:stage=0", on_failure="skip", run_budget=3
    )
    assert cascade.answer(1).cost == 2.0
    with pytest.raises(NoAnswerError):
        cascade.answer(2)  # one unit is left: the first stage fails, the second cannot be paid
    assert cascade.learner.report().spent == 3.0


def test_async_stages_and_cancellation():
    started = asyncio.Event()

    async def deep(item):
        started.set()
        await asyncio.sleep(60)

    cascade = Cascade([Stage("a", str, 0), Stage("b", deep, 1)], "fixed")

    async def run():
        with pytest.raises(StopwiseError, match="await answer_async"):
            cascade.answer(1)
        task = asyncio.create_task(cascade.answer_async(1))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert cascade.learner.report().abandoned == 1
    assert cascade.learner.report().calls == (1, 1)  # it had begun, so it is paid


def test_a_store_that_fails_costs_no_answer(tmp_path):
    cascade = three(str, str, str, store=RoundLog(tmp_path / "r"))
    cascade.learner._books.queue.store.close()
    with pytest.warns(RuntimeWarning, match="could not be counted"):
        answer = cascade.answer(4)
    assert (answer.answer, answer.recorded) == ("4", False)


def test_a_comparator_that_raises_costs_no_answer():
    def compare(one, two):
        raise KeyError

    cascade = three(str, str, str, comparator=compare)
    with pytest.warns(RuntimeWarning, match="could not be counted"):
        assert cascade.answer(4).answer == "4"
