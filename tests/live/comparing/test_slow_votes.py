"""A vote that takes its time: once for each stage of a round, and not on the event loop."""

import asyncio
import threading

import pytest

from stopwise.live import Cascade, Learner, Reported, Stage
from stopwise.live.comparing import judge


def test_outputs_are_combined_once_for_each_stage():
    calls = []

    def combine(outputs):
        calls.append(len(outputs))
        return outputs[-1]

    stages = [Stage("a", str, 0), Stage("b", str, 1)]
    assert Cascade(stages, "fixed", mistake_cost=9, combine=combine).answer(1).answer == "1"
    assert calls == [1, 2]


@pytest.mark.parametrize("policy", ["fixed:stage=0", "fixed:stage=1"])
def test_a_slow_vote_does_not_stop_the_event_loop(policy):
    voting, turned, seen = threading.Event(), threading.Event(), []

    def combine(outputs):
        voting.set()
        seen.append(turned.wait(10))  # on the event loop it would wait in vain
        return outputs[-1]

    stages = [Stage("a", str, 0), Stage("b", str, 1)]
    cascade = Cascade(stages, policy, mistake_cost=9, combine=combine)

    async def work():
        answers = asyncio.gather(*(cascade.answer_async(at) for at in range(8)))
        while not voting.is_set():
            await asyncio.sleep(0.002)
        turned.set()
        return [answer.answer for answer in await answers]

    assert asyncio.run(work()) == list(map(str, range(8)))
    assert all(seen)


def test_a_judge_that_reports_no_cost_leaves_the_pair_undecided():
    compare = judge(lambda one, two: Reported(True, cost=float("nan")))
    learner = Learner([0, 1], "fixed", comparator=compare)
    round = learner.begin()
    round.observe("a")
    round.observe("b")
    with pytest.warns(RuntimeWarning, match="could not be counted"):
        assert round.end().cost == 1
    assert learner.evidence().seen[0, 1] == 0
