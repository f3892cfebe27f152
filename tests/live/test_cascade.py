"""Cascades of real functions: laziness, failures, timeouts, async, batches."""

import asyncio
import inspect
import threading
import time

import pytest

from cascade_stages import Spy, three
from stopwise import StopwiseError
from stopwise.live import (
    BudgetError,
    Cascade,
    Learner,
    Reported,
    RoundLog,
    Stage,
    read_rounds,
    stage,
)


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


def test_advise_returns_the_advice_beside_the_answer():
    stages = [Stage("a", lambda x: 1), Stage("b", lambda x: 2, 3)]
    advised = Cascade(stages, "fixed:stage=0", mode="advise").answer(0)
    assert (advised.answer, advised.cost) == (2, 3.0)
    assert advised.advice == (0, 1.0, 1, 0.0)
    assert Cascade(stages, "fixed:stage=0", mode="shadow").answer(0).advice is None


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
