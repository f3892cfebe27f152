"""Cascades of real functions: laziness, failures, timeouts, async, batches."""

import asyncio
import inspect
import threading
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stopwise import Evidence, StopwiseError
from stopwise.live import (
    BudgetError,
    Cascade,
    Learner,
    NoAnswerError,
    Reported,
    RoundLog,
    Stage,
    majority_vote,
    read_rounds,
    stage,
)


class Spy:
    """A stage function that notes what it was called with."""

    def __init__(self, function):
        self.function = function
        self.calls = []

    def __call__(self, item):
        self.calls.append(item)
        return self.function(item)


def boom(item):
    raise RuntimeError("down")


def three(*functions, costs=(0, 1, 1), **settings):
    names = "abc"
    stages = [
        Stage(name, function, cost)
        for name, function, cost in zip(names, functions, costs, strict=False)
    ]
    return Cascade(stages, settings.pop("policy", "fixed"), **settings)


def test_deeper_stages_are_not_called_unless_needed():
    spies = [Spy(str), Spy(str), Spy(str)]
    answer = three(*spies, policy="fixed:stage=1").answer(5)
    assert (answer.answer, answer.stage, answer.depth, answer.cost) == ("5", "b", "b", 1.0)
    assert [len(spy.calls) for spy in spies] == [1, 1, 0]


def test_the_decorator():
    @stage(cost=1, name="loud")
    def shout(text):
        return text.upper()

    @stage
    def quiet(text):
        return text

    cascade = Cascade([quiet, shout], "fixed")
    assert cascade.answer("a").answer == "A"
    assert cascade.learner.stages == ("quiet", "loud")
    assert shout("b") == "B"


@pytest.mark.parametrize(
    ("stages", "settings", "message"),
    [
        ([str], {}, r"stages\[0\]"),
        ([Stage("a", str), Stage("a", str)], {}, "different name"),
        ([Stage("a", str), Stage("b", str)], {"on_failure": "cry"}, "on_failure"),
        ([Stage("a", str), Stage("b", str)], {"costs": "free"}, "costs"),
        ([Stage("a", str), Stage("b", str)], {"measured": True}, "costs='reported'"),
    ],
)
def test_errors(stages, settings, message):
    with pytest.raises(StopwiseError, match=message):
        Cascade(stages, **settings)


@pytest.mark.parametrize("values", [("", str, 0), ("a", 3, 0), ("a", str, -1)])
def test_stage_errors(values):
    with pytest.raises(StopwiseError, match="stage"):
        Stage(*values)
    with pytest.raises(StopwiseError, match="timeout"):
        Stage("a", str, timeout=0)


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


def test_many_at_once_in_one_loop():
    async def stage_call(item):
        await asyncio.sleep(0)
        return item % 3

    cascade = Cascade(
        [Stage("a", stage_call, 0), Stage("b", stage_call, 0.1), Stage("c", stage_call, 0.1)],
        seed=2,
    )

    async def run():
        return await asyncio.gather(*(cascade.answer_async(item) for item in range(200)))

    answers = asyncio.run(run())
    assert [answer.answer for answer in answers] == [item % 3 for item in range(200)]
    assert cascade.learner.rounds == 200


def test_at_once_calls_stages_together():
    barrier = threading.Barrier(2, timeout=10)

    def wait(item):
        barrier.wait()
        return item

    with Cascade([Stage("a", wait, 0), Stage("b", wait, 1)], "fixed", at_once=True) as cascade:
        assert cascade.answer(3).answer == 3


def test_costs_by_clock_and_by_report():
    def sleepy(item):
        time.sleep(0.01)
        return item

    cascade = Cascade([Stage("a", str, 0), Stage("b", sleepy, 0)], "fixed", costs="clock")
    answer = cascade.answer(1)
    assert answer.cost >= 0.01
    assert cascade.learner.costs.cumulative[1] >= 0.005  # one guess of 0 and one call
    cascade = Cascade(
        [Stage("a", str, 0), Stage("b", lambda item: Reported(item, 4.0), 2)],
        "fixed",
        costs="reported",
        mistake_cost=10,
    )
    assert cascade.answer(1).cost == 4.0
    assert cascade.learner.costs.cumulative == (0.0, 3.0)


def test_item_budget_stops_when_a_call_was_dearer_than_thought():
    spies = [Spy(lambda item: Reported("x", 5.0)), Spy(str)]
    stages = [Stage("a", spies[0], 1), Stage("b", spies[1], 1)]
    cascade = Cascade(stages, "fixed", costs="reported", item_budget=5.5)
    answer = cascade.answer(1)
    assert (answer.answer, answer.cost, len(spies[1].calls)) == ("x", 5.0, 0)


def test_run_budget_is_never_passed():
    cascade = three(str, str, str, costs=(1, 1, 1), run_budget=10)
    answers = list(cascade.answer_many(range(50), batch_size=7))
    assert len(answers) == 50
    assert cascade.learner.report().spent == sum(answer.cost for answer in answers) == 10
    unpaid = [answer for answer in answers if answer.error is not None]
    assert all(isinstance(answer.error, BudgetError) for answer in unpaid)
    assert [answer.answer for answer in answers if answer.error is None] == ["0", "1", "2", "3"]
    with pytest.raises(BudgetError):
        cascade.answer(51)


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


def test_advise_returns_the_advice_beside_the_answer():
    stages = [Stage("a", lambda x: 1), Stage("b", lambda x: 2, 3)]
    advised = Cascade(stages, "fixed:stage=0", mode="advise").answer(0)
    assert (advised.answer, advised.cost) == (2, 3.0)
    assert advised.advice == (0, 1.0, 1, 0.0)
    assert Cascade(stages, "fixed:stage=0", mode="shadow").answer(0).advice is None


# ---- batches ---------------------------------------------------------------------------------


def tables(kind, size=600):
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, size)
    columns = [np.where(rng.random(size) < p, truth, rng.integers(0, 4, size)) for p in (0.6, 0.8)]
    columns.append(truth)
    if kind == "text":
        return [column.astype(str) for column in columns]
    if kind == "objects":
        return [np.array([None if v == 0 else f"{v}" for v in column]) for column in columns]
    return columns


def table_stages(columns, spies=None, as_list=False):
    def make(at):
        def call(items):
            if spies is not None:
                spies.append((at, len(items)))
            found = columns[at][np.asarray(items)]
            return found.tolist() if as_list else found

        return Stage("abc"[at], call, 0.05 * at, batch=True)

    return [make(at) for at in range(3)]


@pytest.mark.parametrize("kind", ["numbers", "text", "objects"])
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("settings", [{}, {"half_life": 100.0}, {"combine": majority_vote}])
def test_a_batch_is_counted_as_its_rounds(kind, as_list, settings):
    columns = tables(kind)
    spies: list[Any] = []
    cascade = Cascade(table_stages(columns, spies, as_list), seed=3, **settings)
    single = Learner({"a": 0, "b": 0.05, "c": 0.1}, seed=3, **settings)
    items = np.arange(600)
    batch = cascade.answer_many(items, batch_size=200).collect()
    depths = []
    for start in range(0, 600, 200):
        rounds = [single.begin() for _ in range(200)]
        for at, round in enumerate(rounds, start):
            for stage_at in range(round.depth + 1):
                value = columns[stage_at][at]
                round.observe(value.item() if hasattr(value, "item") else value)
            outcome = round.end()
            depths.append(round.depth)
            assert batch.answers[at] == outcome.answer
            assert batch.costs[at] == pytest.approx(outcome.cost)
    assert batch.depths.tolist() == depths
    assert cascade.learner.evidence() == single.evidence()
    assert cascade.learner.report().calls == single.report().calls
    assert [at for at, _ in spies] == sorted([at for at, _ in spies[:3]]) * 3  # once a batch
    assert batch.probabilities == pytest.approx([one.probability for one in batch])
    assert len(list(batch)) == 600


def test_batches_begin_small_and_stream():
    seen = []
    cascade = Cascade(table_stages(tables("numbers")), seed=1)
    answers = iter(cascade.answer_many(iter(range(600)), progress=lambda *done: seen.append(done)))
    assert cascade.learner.rounds == 0
    next(answers)
    assert cascade.learner.rounds == 16
    assert len(list(answers)) == 599
    assert seen == [(16, None), (48, None), (112, None), (240, None), (496, None), (600, None)]


@pytest.mark.parametrize("on_failure", ["stop", "skip"])
def test_a_batch_stage_that_fails_is_called_once_and_fails_for_all(on_failure):
    columns = tables("numbers")
    calls = []

    def down(items):
        calls.append(len(items))
        raise RuntimeError("down")

    stages = table_stages(columns)
    stages[1] = Stage("b", down, 0.05, batch=True)
    cascade = Cascade(stages, "fixed", on_failure=on_failure)
    batch = cascade.answer_many(np.arange(50), batch_size=50).collect()
    assert calls == [50]
    want = columns[0] if on_failure == "stop" else columns[2]
    assert list(batch.answers) == want[:50].tolist()
    assert cascade.learner.report().failures == (0, 50, 0)


def test_a_batch_stage_with_too_few_outputs_has_failed():
    stages = [
        Stage("a", lambda items: [1] * len(items), 0, batch=True),
        Stage("b", lambda items: [1], 1, batch=True),
    ]
    cascade = Cascade(stages, "fixed")
    answers = list(cascade.answer_many([1, 2, 3], batch_size=3))
    assert [answer.stage for answer in answers] == ["a"] * 3
    assert "need 3 outputs for 3 items, got 1" in str(answers[0].failures[0][1])


def test_frames_async_stages_and_reports_in_batches():
    async def model(row):
        return Reported(int(row > 2), cost=2.0)

    frame = pd.DataFrame({"v": range(6)})
    stages = [
        Stage("rule", lambda part: [int(v > 3) for v in part["v"]], 0, batch=True),
        Stage("rest", lambda part: part["v"].to_numpy() > 2, 1, batch=True),
    ]
    batch = Cascade(stages, "fixed").answer_many(frame, batch_size=6).collect()
    assert list(batch.answers) == [0, 0, 0, 1, 1, 1]
    cascade = Cascade([Stage("a", lambda v: 0, 0), Stage("b", model, 1)], "fixed", costs="reported")
    batch = cascade.answer_many(range(6)).collect()
    assert batch.answers == [0, 0, 0, 1, 1, 1]
    assert batch.costs.tolist() == [2.0] * 6


def test_nothing_to_answer():
    cascade = three(str, str, str)
    assert len(cascade.answer_many([]).collect()) == 0
    assert list(cascade.answer_many([])) == []


@pytest.mark.parametrize("way", ["answer", "async", "many", "at once"])
def test_confidences_that_stages_report_are_in_the_record(way, tmp_path):
    log = RoundLog(tmp_path / "rounds", keep_outputs=True)
    cascade = three(
        str,
        lambda item: Reported("x", confidence=0.25),
        lambda item: Reported("y", cost=2, confidence=7),
        at_once=way == "at once",
        store=log,
    )
    if way == "async":
        asyncio.run(cascade.answer_async(1))
    elif way == "many":
        cascade.answer_many([1]).collect()
    else:
        cascade.answer(1)
    cascade.close()
    (record,) = read_rounds(tmp_path / "rounds")
    assert record.confidences == [None, 0.25, 7.0]
    assert record.outputs == ["1", "x", "y"]
    assert record.costs == [None, None, 2.0]


def test_a_confidence_that_does_not_sort_is_refused():
    with Learner([0, 1], "fixed").begin() as round:
        with pytest.raises(StopwiseError, match="confidence: got nan"):
            round.observe("a", confidence=float("nan"))
        assert round.outputs == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("halflife", "unknown setting 'halflife'; did you mean 'half_life'"),
        ("mistakecost", "did you mean 'mistake_cost'"),
        ("zzz", "unknown setting 'zzz'; known are 'abstentions', 'agree', "),
    ],
)
def test_an_unknown_setting_names_the_nearest_known_one(given, message):
    with pytest.raises(StopwiseError, match=message):
        Cascade([Stage("a", str), Stage("b", str, 1)], **{given: 1})


def test_a_cascade_and_a_learner_take_the_same_keywords():
    for made in (Learner, Cascade):
        keywords = [
            parameter.annotation
            for parameter in inspect.signature(made).parameters.values()
            if parameter.kind is parameter.VAR_KEYWORD
        ]
        assert keywords == ["Unpack[LearnerKeywords]"]
