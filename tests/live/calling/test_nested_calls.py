"""Stages that ask a cascade themselves, when no thread is free."""

import asyncio
import threading

import pytest

from stopwise.live import Cascade, Stage


def in_time(work, seconds=20):
    """What some work gives, which must not wait for ever."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it waits for itself"
    return found[0]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_plain_stage_that_runs_a_loop_of_its_own(at_once, workers):
    def ask(item):
        depth, value = item
        if not depth:
            return value
        return asyncio.run(cascade.answer_async((depth - 1, value))).answer

    stages = [Stage("a", ask, 0), Stage("b", ask, 1)]
    cascade = Cascade(stages, "fixed", mistake_cost=9, at_once=at_once, workers=workers)
    assert in_time(lambda: asyncio.run(cascade.answer_async((3, "x")))).answer == "x"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_plain_stage_of_a_cascade_with_async_stages(at_once):
    async def quick(item):
        return item[1]

    def ask(item):
        depth, value = item
        return value if not depth else cascade.answer((depth - 1, value)).answer

    stages = [Stage("quick", quick, 0), Stage("b", ask, 1), Stage("c", ask, 1)]
    cascade = Cascade(stages, "fixed", mistake_cost=9, at_once=at_once, workers=1)
    assert in_time(lambda: cascade.answer((3, "x"))).answer == "x"
