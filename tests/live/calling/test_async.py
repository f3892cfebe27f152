"""Async stages behind sync calls, plain stages behind async ones, and what is refused at once."""

import asyncio
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

from patience import in_some_run
from stopwise import StopwiseError
from stopwise.live import Cascade, MisusedStageError, Reported, Stage


class Client:
    """Belongs to the event loop that it is first used in, as clients of HTTP do."""

    def __init__(self):
        self.loop = None

    async def ask(self, item):
        loop = asyncio.get_running_loop()
        if self.loop is None:
            self.loop = loop
        if self.loop is not loop or self.loop.is_closed():
            raise RuntimeError("Event loop is closed")
        await asyncio.sleep(0)
        return str(item)


def pair(second, **settings):
    return Cascade([Stage("a", str), Stage("b", second, 1)], "fixed", **settings)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_shared_client_lives_through_sync_calls(at_once):
    client = Client()
    cascade = pair(client.ask, at_once=at_once)
    answers = [cascade.answer(item) for item in range(3)]
    answers += cascade.answer_many(range(3))
    assert all(answer.stage == "b" and not answer.failures for answer in answers)


def test_a_shared_client_of_a_batch_stage_lives_through_sync_calls():
    client = Client()

    async def many(items):
        return [await client.ask(item) for item in items]

    stages = [Stage("a", lambda items: list(map(str, items)), batch=True)]
    cascade = Cascade([*stages, Stage("b", many, 1, batch=True)], "fixed")
    batch = cascade.answer_many(range(40), batch_size=10).collect()
    assert list(batch.answers) == [str(item) for item in range(40)]
    assert cascade.learner.report().failures == (0, 0)


def test_threads_share_the_background_loop():
    client = Client()
    cascade = pair(client.ask)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cascade.answer(1).stage)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["b"] * 8


@pytest.mark.parametrize("batch", [False, True])
def test_sync_use_inside_a_running_loop_is_refused_at_once(batch):
    async def many(items):
        return list(items)

    cascade = Cascade([Stage("a", many, batch=batch), Stage("b", many, 1, batch=batch)], "fixed")

    async def run():
        with pytest.raises(StopwiseError, match="answer_many_async"):
            cascade.answer_many([1, 2]).collect()
        with pytest.raises(StopwiseError, match="await answer_async"):
            cascade.answer(1)

    asyncio.run(run())


@pytest.mark.parametrize("batch", [False, True])
def test_answer_many_async(batch):
    client = Client()

    async def one(item):
        return await client.ask(item)

    async def many(items):
        return [await client.ask(item) for item in items]

    def plain(items):
        return [str(item) for item in items]

    stages = [
        Stage("a", plain if batch else str, batch=batch),
        Stage("b", many if batch else one, 1, batch=batch),
    ]
    cascade = Cascade(stages, "fixed")

    async def source():
        for item in range(40):
            yield item

    async def run():
        batch = await cascade.answer_many_async(range(40), batch_size=16).collect()
        streamed = [answer async for answer in cascade.answer_many_async(source())]
        return batch, streamed

    batch, streamed = asyncio.run(run())
    assert (
        list(batch.answers) == [answer.answer for answer in streamed] == list(map(str, range(40)))
    )
    assert cascade.learner.rounds == 80


def test_answer_many_async_is_counted_as_answer_many():
    async def two(item):
        return item % 2

    async def three(item):
        return item % 3

    def build():
        return Cascade(
            [Stage("a", lambda item: 0), Stage("b", two, 0.1), Stage("c", three, 0.1)], seed=4
        )

    sync, asynchronous = build(), build()
    one = sync.answer_many(range(200)).collect()
    two_ = asyncio.run(asynchronous.answer_many_async(range(200)).collect())
    assert one.answers == two_.answers
    assert one.depths.tolist() == two_.depths.tolist()
    assert sync.learner.evidence() == asynchronous.learner.evidence()


def test_cancelling_answer_many_async_counts_what_was_called():
    started = asyncio.Event()

    async def slow(item):
        started.set()
        await asyncio.sleep(60)

    cascade = pair(slow)

    async def run():
        task = asyncio.ensure_future(cascade.answer_many_async(range(5)).collect())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert cascade.learner.report().abandoned == 5


# ---- what stages return ----------------------------------------------------------------------


def generated(item):
    yield item


async def generated_async(item):
    yield item


@pytest.mark.parametrize("way", ["answer", "async", "many", "many async", "at once"])
@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (generated, "generator"),
        (generated_async, "async_generator"),
        (lambda item: iter([item]), "list_iterator"),
        (lambda item: map(str, [item]), "map"),
        (lambda item: Reported(map(str, [item])), "map"),
        (lambda item: Future(), "Future"),
    ],
)
def test_an_iterator_is_no_output_and_is_refused_at_once(way, stage, kind):
    cascade = pair(stage, at_once=way == "at once")
    with pytest.raises(MisusedStageError, match=f"stage b: returned a {kind}.*; return"):
        ask(cascade, way)
    assert cascade.learner.report().abandoned == 1  # what was called is counted


@pytest.mark.parametrize("way", ["answer", "async", "many", "many async", "at once"])
def test_an_awaitable_that_a_plain_stage_returns_is_awaited(way):
    client = Client()
    cascade = pair(lambda item: client.ask(item), at_once=way == "at once")
    assert ask(cascade, way).answer == "7"
    assert ask(cascade, way, fails=True).stage == "b"


def ask(cascade, way, fails=False):
    if way == "many":
        return next(iter(cascade.answer_many([7])))
    if way in ("answer", "at once"):
        return cascade.answer(7)
    if fails:  # a client of another loop
        cascade = pair(lambda item: Client().ask(item))
    if way == "many async":
        return asyncio.run(cascade.answer_many_async([7]).collect()).singles(0)
    return asyncio.run(cascade.answer_async(7))


def test_a_batch_stage_that_yields_is_refused_at_once():
    stages = [Stage("a", generated, batch=True), Stage("b", generated, 1, batch=True)]
    with pytest.raises(MisusedStageError, match="stage a: returned a generator"):
        Cascade(stages, "fixed").answer_many([1, 2]).collect()


async def later(item):
    return item


def whole(make):
    return lambda items: make(items[0])


def each(make):
    return lambda items: [make(item) for item in items]


@pytest.mark.parametrize("way", ["answer", "async", "many", "many async"])
@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (each(later), "coroutine"),
        (each(lambda item: Reported(later(item))), "coroutine"),
        (each(generated), "generator"),
        (each(generated_async), "async_generator"),
        (each(iter_of := lambda item: iter([item])), "list_iterator"),
        (lambda items: np.array([iter_of(item) for item in items] + [None])[:-1], "list_iterator"),
        (lambda items: map(str, items), "map"),
        (whole(generated), "generator"),
    ],
)
def test_a_batch_stage_is_refused_in_the_same_cases_one_by_one_and_many(way, stage, kind):
    stages = [Stage("a", str), Stage("b", stage, 1, batch=True)]
    cascade = Cascade(stages, "fixed", on_failure="skip")
    with pytest.raises(MisusedStageError, match=f"stage b: returned a {kind}"):
        ask(cascade, way)
    assert cascade.learner.report().spent == 1  # it was called


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_plain_stage_that_raises_stop_iteration_has_failed(timeout):
    def ends(item):
        raise StopIteration

    cascade = Cascade([Stage("a", str), Stage("b", ends, 1, timeout=timeout)], "fixed")

    async def run():
        return await asyncio.wait_for(cascade.answer_async(1), 10)

    for answer in (cascade.answer(1), asyncio.run(run()), next(iter(cascade.answer_many([1])))):
        assert answer.stage == "a"
        assert isinstance(answer.failures[0][1], StopIteration)


# ---- the clock -------------------------------------------------------------------------------


def test_the_clock_measures_the_work_and_not_the_queue():
    def slow(item):
        time.sleep(0.005)
        return item

    async def run():
        stages = [Stage("a", slow), Stage("b", slow)]
        with Cascade(stages, "fixed", costs="clock", workers=4) as cascade:
            return await asyncio.gather(*(cascade.answer_async(item) for item in range(200)))

    def check():
        costs = sorted(answer.cost for answer in asyncio.run(run()))
        assert costs[0] >= 0.009
        assert costs[100] < 0.06  # waiting for one of four threads would make it 0.25

    in_some_run(check)
