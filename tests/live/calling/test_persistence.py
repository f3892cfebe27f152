"""Deadlines, retries, breakers, hints, and answers that bookkeeping cannot take away."""

import asyncio
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

from stopwise import StopwiseError
from stopwise.live import (
    Breaker,
    Cascade,
    Learner,
    MisusedComparatorError,
    NoAnswerError,
    Reported,
    Retry,
    RoundLog,
    Stage,
    StageRestingError,
)
from stopwise.live.calling.retrying import BreakerState

SECRET = "sk-12345"


class Flaky:
    """Fails a number of times, then answers."""

    def __init__(self, failures, answer="y"):
        self.failures = failures
        self.answer = answer
        self.calls = 0

    def __call__(self, item):
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError(SECRET)
        return [self.answer] * len(item) if isinstance(item, list) else self.answer


def ask(cascade, way, item=1):
    if way == "async":
        return asyncio.run(cascade.answer_async(item))
    if way == "many":
        return next(iter(cascade.answer_many([item])))
    if way == "many async":
        return asyncio.run(cascade.answer_many_async([item]).collect()).singles(0)
    return cascade.answer(item)


WAYS = pytest.mark.parametrize("way", ["answer", "async", "many", "many async"])


@WAYS
@pytest.mark.parametrize("batch", [False, True])
def test_a_failed_call_is_made_again_and_every_call_costs(way, batch):
    flaky = Flaky(2)
    first = Stage(
        "a", (lambda items: ["x"] * len(items)) if batch else lambda item: "x", batch=batch
    )
    stage = Stage("b", flaky, 3, batch=batch, retry=Retry(2, wait=0.001))
    cascade = Cascade([first, stage], "fixed")
    answer = ask(cascade, way)
    assert (answer.answer, answer.cost, flaky.calls) == ("y", 9.0, 3)
    assert cascade.learner.report().spent == 9.0
    flaky.calls, flaky.failures = 0, 5
    answer = ask(cascade, way)
    assert (answer.stage, answer.cost, flaky.calls) == ("a", 9.0, 3)


def test_only_errors_that_are_worth_it_are_retried():
    flaky = Flaky(9)
    stage = Stage("b", flaky, 1, retry=Retry(3, wait=0, on=TimeoutError))
    Cascade([Stage("a", str), stage], "fixed").answer(1)
    assert flaky.calls == 1
    assert Stage("b", flaky, 1, retry=2).retry == Retry(2)


def test_a_reported_cost_is_added_to_that_of_failed_calls():
    flaky = Flaky(1, Reported("y", cost=5.0))
    stage = Stage("b", flaky, 3, retry=Retry(1, wait=0))
    assert Cascade([Stage("a", str), stage], "fixed").answer(1).cost == 8.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Retry(-1), "retry: times"),
        (lambda: Retry(wait=-1), "retry: wait"),
        (lambda: Retry(on=3), "retry: on"),
        (lambda: Breaker(0), "breaker: failures"),
        (lambda: Breaker(seconds=0), "breaker: seconds"),
        (lambda: Stage("a", str, retry="x"), "retry"),
        (lambda: Stage("a", str, breaker=3), "breaker"),
        (lambda: Stage("a", str, most_left=-1), "most_left"),
        (lambda: Cascade([Stage("a", str), Stage("b", str)], deadline=0), "deadline"),
        (lambda: Cascade([Stage("a", str), Stage("b", str)], workers=0), "workers"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(StopwiseError, match=message):
        make()


@WAYS
def test_a_stage_that_keeps_failing_is_left_alone(way):
    flaky = Flaky(1000)
    stage = Stage("b", flaky, 1, breaker=Breaker(3, seconds=60))
    cascade = Cascade([Stage("a", str), stage], "fixed")
    answers = [ask(cascade, way) for _ in range(10)]
    assert flaky.calls == 3
    assert [answer.cost for answer in answers] == [1.0] * 3 + [0.0] * 7
    assert isinstance(answers[-1].failures[0][1], StageRestingError)
    assert cascade.learner.report().spent == 3.0


def test_after_a_rest_one_call_decides():
    now = [0.0]
    state = BreakerState(Breaker(2, seconds=10), clock=lambda: now[0])
    for _ in range(2):
        assert state.allows()
        state.note(failed=True)
    assert not state.allows()
    now[0] = 10.0
    assert state.allows()
    assert not state.allows()  # the others wait for the one that was let through
    state.note(failed=True)
    now[0] = 19.0
    assert not state.allows()
    now[0] = 20.0
    assert state.allows()
    state.note(failed=False)
    assert state.allows()
    assert state.allows()


@WAYS
def test_the_time_of_an_item_is_over(way):
    release = threading.Event()
    stages = [
        Stage("a", str),
        Stage("b", lambda item: release.wait(20), 1),
        Stage("c", str, 1),
    ]
    cascade = Cascade(stages, "fixed", on_failure="skip", deadline=1.0)
    start = time.monotonic()
    answer = ask(cascade, way)
    assert time.monotonic() - start < 10
    release.set()
    assert (answer.stage, answer.failures[0][0]) == ("a", "b")
    assert isinstance(answer.failures[0][1], TimeoutError)
    assert cascade.learner.report().abandoned == 1


def test_a_deadline_for_one_item_and_retries_within_it():
    flaky = Flaky(1000)
    stage = Stage("b", flaky, 1, retry=Retry(200, wait=0.05))
    cascade = Cascade([Stage("a", str), stage], "fixed")
    assert cascade.answer(1, deadline=1.0).stage == "a"
    assert 1 <= flaky.calls <= 21  # one every 0.05 s, until a second is over
    with pytest.raises(StopwiseError, match="deadline"):
        cascade.answer(1, deadline=-1)


# ---- an answer is never lost for bookkeeping -------------------------------------------------


def raising(*arguments):
    raise OSError(SECRET)


@WAYS
@pytest.mark.parametrize("what", ["combine", "comparator", "store"])
@pytest.mark.parametrize("strict", [False, True])
def test_bookkeeping_costs_no_answer(way, what, strict, tmp_path):
    settings: dict[str, Any] = {}
    if what == "store":
        settings["store"] = RoundLog(tmp_path / "rounds")
    else:
        settings[what] = raising
    cascade = Cascade([Stage("a", str), Stage("b", str, 1)], "fixed", **settings)
    if what == "store":
        settings["store"].close()
    with warnings.catch_warnings(record=not strict) as caught:
        warnings.simplefilter("error" if strict else "always")
        answer = ask(cascade, way)
    assert (answer.answer, answer.stage, answer.recorded) == ("1", "b", False)
    if not strict:
        messages = [str(warning.message) for warning in caught]
        assert messages
        assert not any(SECRET in message for message in messages)
    if what != "store":
        assert cascade.learner.report().spent == 1.0
        assert cascade.learner.evidence().seen.sum() == 0


def test_a_report_that_is_no_number_costs_no_answer():
    for bad in (Reported("y", cost=-1), Reported("y", confidence=float("nan"))):
        cascade = Cascade([Stage("a", str), Stage("b", lambda item, bad=bad: bad, 2)], "fixed")
        with pytest.warns(RuntimeWarning, match="what a stage reported"):
            answer = cascade.answer(1)
        assert (answer.answer, answer.cost) == ("y", 2.0)


def test_of_what_a_stage_reports_one_bad_number_does_not_cost_the_other():
    nothing = float("nan")
    for reported, cost, known in (
        (Reported("y", cost=7.0, confidence=nothing), 7.0, None),
        (Reported("y", cost=-1, confidence=0.5), 2.0, 0.5),
        (Reported("y", cost=-1, confidence=nothing), 2.0, None),
    ):
        sure: list[Any] = []
        cascade = Cascade(
            [Stage("a", str), Stage("b", lambda item, it=reported: it, 2)], "fixed",
            on_round=lambda record, sure=sure: sure.append(record.confidences),
        )  # fmt: skip
        with pytest.warns(RuntimeWarning, match="what a stage reported"):
            assert cascade.answer(1).cost == cost
        assert (sure[0] or (None, None))[-1] == known


def test_what_a_round_refused_leaves_no_trace():
    round = Learner({"a": 1, "b": 2}, "fixed").begin()
    with pytest.raises(StopwiseError):
        round.observe("y", cost=-1, confidence=0.25)
    round.observe("y", cost=1, confidence=0.5)
    assert round.confidences == [0.5]


def test_secrets_in_the_text_of_an_error_do_not_reach_messages():
    cascade = Cascade([Stage("a", raising), Stage("b", raising, 1)], "fixed", on_failure="skip")
    with pytest.raises(NoAnswerError) as caught:
        cascade.answer(1)
    assert SECRET not in str(caught.value)
    assert SECRET in str(caught.value.__cause__)
    (answer,) = cascade.answer_many([1])
    assert SECRET not in repr(answer)
    assert SECRET not in str(answer.error)
    cascade = Cascade([Stage("a", str), Stage("b", raising, 1)], "fixed")
    assert SECRET not in repr(cascade.answer(1))


# ---- every item comes back -------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_every_item_comes_back_with_its_answer_or_its_failure(batch_size):
    def odd(item):
        if item % 2:
            raise RuntimeError
        return item

    stages = [Stage("a", odd), Stage("b", odd, 1)]
    cascade = Cascade(stages, "fixed", on_failure="skip")
    answers = list(cascade.answer_many(range(10), batch_size=batch_size))
    batch = cascade.answer_many(range(10), batch_size=batch_size).collect()
    for found in (answers, list(batch)):
        assert [answer.answer for answer in found[::2]] == [0, 2, 4, 6, 8]
        assert all(answer.error is None for answer in found[::2])
        assert all(isinstance(answer.error, NoAnswerError) for answer in found[1::2])
        assert all(answer.failures[0][0] == "a" for answer in found[1::2])
    assert sorted(batch.errors) == [1, 3, 5, 7, 9]
    assert batch.stages.tolist() == [1, -1] * 5
    assert cascade.learner.rounds == 20


# ---- hints -----------------------------------------------------------------------------------


def test_a_mistake_cost_at_which_nothing_can_pay_is_warned_of():
    stages = [Stage("a", str), Stage("b", str, 10)]
    with pytest.warns(RuntimeWarning, match="mistake_cost is 1 and no stage after a costs less"):
        Cascade(stages)
    Cascade(stages, mistake_cost=50)


def test_falling_costs_are_warned_of():
    stages = [Stage("a", str, 1), Stage("b", str, 10), Stage("c", str, 2)]
    with pytest.warns(RuntimeWarning, match=r"stage c costs 2, less than b before it \(10\)"):
        Cascade(stages, mistake_cost=50)


@pytest.mark.parametrize("output", [np.array([0.1, 0.9]), [0.1, 0.9]])
def test_a_vector_as_an_output_is_warned_of_once(output):
    cascade = Cascade([Stage("a", lambda item: output), Stage("b", str, 1)], "fixed")
    with pytest.warns(RuntimeWarning) as caught:
        cascade.answer_many([1, 1]).collect()
    messages = [str(warning.message) for warning in caught]
    hints = [message for message in messages if "stage a returned" in message]
    assert len(hints) == 1
    assert "batch=True" in hints[0]
    compared = Cascade(
        [Stage("a", lambda item: output), Stage("b", lambda item: output, 1)],
        "fixed",
        comparator=lambda one, two: bool(np.allclose(one, two)),
    )
    assert compared.answer(1).recorded


def test_a_forgotten_batch_true_is_warned_of():
    def predict(items):
        return [len(item) for item in items]

    cascade = Cascade([Stage("a", predict), Stage("b", str, 1)], "fixed", on_failure="skip")
    with pytest.warns(RuntimeWarning, match="failed on all of 3 items .TypeError.; if"):
        cascade.answer_many([1, 2, 3]).collect()
    with pytest.warns(RuntimeWarning, match="a list of 5 values for a text of 5 characters"):
        cascade.answer("hello")


# ---- comparators under the lock --------------------------------------------------------------


def test_slow_comparators_of_many_threads_run_at_the_same_time():
    together = threading.Barrier(16)

    def slow(one, two):
        together.wait(20)  # one after another would wait in vain
        return one == two

    learner = Learner([0, 1], "fixed", comparator=slow)

    def run():
        with learner.begin() as round:
            round.observe("x")
            round.observe("x")

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learner.rounds == 16
    assert learner.evidence().seen[0, 1] == 16


def test_a_slow_comparator_does_not_stop_the_event_loop():
    comparing, turned, seen = threading.Event(), threading.Event(), []

    def slow(one, two):
        comparing.set()
        seen.append(turned.wait(10))  # on the event loop it would wait in vain
        return one == two

    cascade = Cascade([Stage("a", str), Stage("b", str, 1)], "fixed", comparator=slow)

    async def run():
        answers = asyncio.gather(*(cascade.answer_async(1) for _ in range(4)))
        while not comparing.is_set():
            await asyncio.sleep(0.002)
        turned.set()
        await answers

    asyncio.run(run())
    assert all(seen)
    assert cascade.learner.evidence().seen[0, 1] == 4


@WAYS
@pytest.mark.parametrize("said", [None, 0.3, "yes"])
def test_a_comparator_that_says_neither_yes_nor_no_is_refused_at_once(way, said):
    cascade = Cascade(
        [Stage("a", str), Stage("b", str, 1)], "fixed", comparator=lambda one, two: said
    )
    with pytest.raises(MisusedComparatorError, match="need True or False"):
        ask(cascade, way)
    assert cascade.learner.report().spent == 1.0  # what was called is counted
    assert cascade.learner.evidence().seen.sum() == 0
