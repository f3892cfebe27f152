"""Seconds as costs: the work of a stage, or all that passes until its result is there."""

import asyncio
import time
from typing import Any

import pytest

from patience import in_some_run
from stopwise.checks import StopwiseError
from stopwise.live import Cascade, Stage
from stopwise.live.calling.clocks import Turns, Waits, Working

CALLS = 200


async def busy(item):
    """Waits 2 ms and computes 2 ms."""
    await asyncio.sleep(0.002)
    until = time.perf_counter() + 0.002
    while time.perf_counter() < until:
        pass
    return item


def mean_cost(costs: str) -> float:
    """What a call of an async stage costs among many that are open at the same time."""

    async def first(item):
        return item

    async def ask():
        await asyncio.gather(*(cascade.answer_async(item) for item in range(CALLS)))

    stages = [Stage("first", first, 0.001), Stage("busy", busy, 0.004)]
    cascade = Cascade(stages, "fixed", mistake_cost=9, costs=costs)
    asyncio.run(ask())
    return cascade.learner.report().spent / CALLS


def test_waiting_for_a_turn_of_the_loop_is_no_work():
    # All compute one after another: a call waits for 100 others on average, 200 ms.
    def check() -> None:
        work, elapsed = mean_cost("clock"), mean_cost("elapsed")
        assert elapsed > 0.1
        assert 0.002 < work < 0.8 * elapsed

    in_some_run(check)


def test_when_a_wait_was_over_by_hand():
    now: list[float] = [0.0]
    used: list[float] = [0.0]
    ends: list[Any] = []
    turns = Turns(clock=lambda: now[0], busy=lambda: used[0])
    turns.worked(0.1)
    now[0] = 5.0  # the loop waited: ready when its turn began
    assert turns.ready_within(0.1, ends.append) == (5.0, 5.0)
    now[0] = 9.0  # another one of the same turn has waited for the first
    assert turns.ready_within(0.2, ends.append) == (5.0, 5.0)
    assert len(ends) == 1
    turns.worked(9.0)
    now[0], used[0] = 9.1, 0.1  # the loop was busy from 5 on: ready at some time of that
    ends.pop()()
    assert turns.ready_within(1.0, ends.append) == (5.0, 9.1)
    assert turns.ready_within(8.0, ends.append) == (8.0, 9.1)
    turns.worked(12.0)
    now[0] = 12.0001  # and once more: it may have been seen a turn before
    ends.pop()()
    assert turns.ready_within(1.0, ends.append) == (5.0, 12.0001)


def test_waits_that_cannot_be_seen_are_taken_to_be_like_those_that_can():
    waits = Waits()
    for seen in (0.004, 0.006):
        assert waits.between(seen, seen) == seen
    assert waits.between(0.0, 3.0) == pytest.approx(0.005)
    assert waits.between(0.01, 3.0) == 0.01  # never less than is certain
    assert waits.between(0.0, 0.002) == pytest.approx(0.002)  # nor more than can be


def test_waits_that_never_could_be_seen_are_neither_nothing_nor_all_that_passed():
    waits = Waits()
    assert waits.between(0.0, 0.025) == pytest.approx(0.005)  # 5 times too long or short at most
    assert waits.between(0.0, 0.1) == pytest.approx(0.01)
    assert waits.between(0.04, 0.09) == pytest.approx(0.06)
    assert waits.between(0.0, 0.0) == 0.0


def test_a_burst_of_short_waits_does_not_cost_next_to_nothing():
    # All begin in one turn of the loop, which takes longer than the wait of the first ones.
    async def short(item):
        await asyncio.sleep(0.005)
        return item

    async def ask():
        await asyncio.gather(*(cascade.answer_async(item) for item in range(800)))

    def check() -> None:
        asyncio.run(ask())
        assert cascade.learner.report().spent / 800 > 0.001

    stages = [Stage("short", short, 0.005), Stage("last", str, 1)]
    cascade = Cascade(stages, "fixed:stage=0", mistake_cost=9, costs="clock")
    in_some_run(check)


def test_giving_way_to_others_is_no_wait():
    async def polite(item):
        for _ in range(10):
            await asyncio.sleep(0)
        return item

    async def ask():
        return await asyncio.gather(*(Working(polite(item), waits) for item in range(300)))

    waits = Waits()
    asyncio.run(ask())
    assert waits.between(0.0, 0.025) == pytest.approx(0.005)  # none was noted


def test_the_clock_of_a_stage_does_not_grow_with_the_calls_that_are_open():
    def seconds(calls: int) -> float:
        async def ask():
            await asyncio.gather(*(cascade.answer_async(item) for item in range(calls)))

        stages = [Stage("busy", busy, 0.004), Stage("last", str, 1)]
        cascade = Cascade(stages, "fixed:stage=0", mistake_cost=9, costs="clock")
        asyncio.run(ask())
        return cascade.learner.report().spent / calls

    def check() -> None:
        # Each waits for the turns of 150 others: 300 ms, of which half was counted.
        assert seconds(150) < 15 * max(seconds(1), 0.004)

    in_some_run(check, 8)


def test_elapsed_counts_the_wait_for_a_thread():
    def slow(item):
        time.sleep(0.02)
        return item

    def spent(costs):
        stages = [Stage("first", str, 0.001), Stage("slow", slow, 0.02)]
        with Cascade(stages, "fixed", mistake_cost=9, costs=costs, workers=1) as cascade:
            asyncio.run(ask(cascade))
            return cascade.learner.report().spent / 10

    async def ask(cascade):
        await asyncio.gather(*(cascade.answer_async(item) for item in range(10)))

    def check() -> None:
        assert spent("elapsed") > 2 * spent("clock")

    in_some_run(check)


def test_an_async_stage_that_waits_is_measured():
    async def waits(item):
        await asyncio.sleep(0.05)
        return item

    stages = [Stage("first", str, 0.001), Stage("waits", waits, 0.05)]
    for costs in ("clock", "elapsed"):
        cascade = Cascade(stages, "fixed", mistake_cost=9, costs=costs)
        assert asyncio.run(cascade.answer_async(1)).cost >= 0.049


def test_what_is_raised_or_cancelled_inside_is_told_to_both_sides():
    told = []

    async def fails():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    async def outside():
        working = Working(fails())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await working
        return working.seconds

    assert 0 < asyncio.run(outside()) < 20
    assert told == ["cancelled"]


def test_futures_and_tasks_can_be_timed():
    async def outside():
        task = asyncio.ensure_future(asyncio.sleep(0, "task"))
        return await Working(task)

    assert asyncio.run(outside()) == "task"


def test_other_words_are_refused():
    stages = [Stage("a", str, 0), Stage("b", str, 1)]
    with pytest.raises(StopwiseError, match="'known', 'reported', 'clock' or 'elapsed'"):
        Cascade(stages, costs="cpu", mistake_cost=9)
