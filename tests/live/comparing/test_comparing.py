"""When two answers agree: what is read, what is an abstention, what is refused."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from stopwise import StopwiseError
from stopwise.live import (
    Cascade,
    Learner,
    MisusedComparatorError,
    Reported,
    RoundLog,
    Stage,
    by,
    by_key,
    judge,
    majority_vote,
    read_rounds,
)


def two_outputs(comparator, one="x", two="y", way="sync", **settings):
    cascade = Cascade(
        [Stage("a", lambda item: one), Stage("b", lambda item: two, 1)],
        "fixed",
        comparator=comparator,
        **settings,
    )
    if way == "sync":
        answer = cascade.answer(0)
    elif way == "async":
        answer = asyncio.run(cascade.answer_async(0))
    elif way == "many":
        answer = next(iter(cascade.answer_many([0])))
    else:
        answer = asyncio.run(cascade.answer_many_async([0]).collect()).singles(0)
    evidence = cascade.learner.evidence()
    return answer, int(evidence.seen[0, 1]), int(evidence.disagreed[0, 1])


WAYS = pytest.mark.parametrize("way", ["sync", "async", "many", "many async"])


@WAYS
def test_async_comparators_are_awaited(way):
    async def same_letter(one, two):
        await asyncio.sleep(0)
        return one.lower() == two.lower()

    async def first_letter(text):
        await asyncio.sleep(0)
        return text[0]

    assert two_outputs(same_letter, "x", "X", way)[1:] == (1, 0)
    assert two_outputs(same_letter, "x", "y", way)[1:] == (1, 1)
    assert two_outputs(lambda one, two: same_letter(one, two), "x", "y", way)[1:] == (1, 1)
    assert two_outputs(by_key(first_letter), "xa", "xb", way)[1:] == (1, 0)
    assert two_outputs(by_key(first_letter), "xa", "yb", way)[1:] == (1, 1)


def test_an_async_comparator_in_a_loop_of_ones_own():
    async def same(one, two):
        return one == two

    learner = Learner([0, 1], "fixed", comparator=same)

    async def run():
        round = learner.begin()
        round.observe("x")
        round.observe("y")
        return await round.end_async()

    assert asyncio.run(run()) == ("y", 1, 1.0)
    assert learner.evidence().disagreed[0, 1] == 1
    with learner.begin() as round:
        round.observe("x")
        round.observe("x")
    assert learner.evidence().seen[0, 1] == 2


@WAYS
def test_a_judge_may_cost_and_may_not_know(way):
    costly = judge(lambda one, two: Reported(one == two, cost=0.25))
    answer, seen, disagreed = two_outputs(costly, way=way)
    assert (answer.cost, seen, disagreed) == (1.25, 1, 1)
    answer, seen, disagreed = two_outputs(costly, way=way)  # it remembers: nothing is paid again
    assert (answer.cost, seen, disagreed) == (1.0, 1, 1)
    answer, seen, disagreed = two_outputs(judge(lambda one, two: None), way=way)
    assert (answer.answer, answer.recorded, seen, disagreed) == ("y", True, 0, 0)


def test_pairs_that_a_judge_cannot_decide_are_not_counted(tmp_path):
    def compare(one, two):
        return None if {one, two} == {"x", "z"} else one == two

    def build():
        return Learner(
            [0, 1, 1], "fixed", comparator=judge(compare, "j"), store=RoundLog(tmp_path / "rounds")
        )

    learner = build()
    with learner.begin() as round:
        for output in ("x", "y", "z"):
            round.observe(output)
    seen = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert learner.evidence().seen.tolist() == seen
    learner.close()
    again = build()  # as read back from the log
    assert again.evidence().seen.tolist() == seen
    assert again.evidence().disagreed.tolist() == seen
    again.close()
    (record,) = read_rounds(tmp_path / "rounds")
    assert record.to_form()["undecided"] == [[0, 2]]


def test_a_policy_that_counts_in_its_own_way_is_not_told_undecided_answers():
    learner = Learner([0, 0.1], "hanawal-2", comparator=judge(lambda one, two: None))
    for _ in range(30):
        with learner.begin() as round:
            for _ in range(round.depth + 1):
                round.observe("x")
    assert learner.evidence().seen[0, 1] == 0


def test_a_judge_is_asked_once_about_a_pair_in_either_order():
    asked = []

    def ask(one, two):
        asked.append((one, two))
        return True

    same = judge(ask, remember=2)
    assert same.agrees("a", "b")
    assert same.agrees("b", "a")
    assert asked == [("a", "b")]
    assert same.agrees(1, True)  # other types are other answers
    assert same.agrees("c", "d")
    assert same.agrees("a", "b")  # forgotten meanwhile
    assert len(asked) == 4
    assert same.agrees(["x"], ["x"])  # cannot be hashed
    with pytest.raises(StopwiseError, match="remember"):
        judge(ask, remember=-1)


def test_what_a_comparator_may_say():
    by_any: Any = by  # what is said here is not always a bool
    assert by_any(lambda one, two: np.bool_(True)).agrees(1, 2) is True
    assert by_any(lambda one, two: 0).agrees(1, 2) is False
    for said in (None, 0.5, "yes", [True], object()):
        with pytest.raises(MisusedComparatorError, match=r"need True or False \(judge"):
            by_any(lambda one, two, said=said: said).agrees(1, 2)
    with pytest.raises(MisusedComparatorError, match="its key is a map"):
        by_key(lambda text: map(str, text)).agrees("a", "b")
    assert by_key(lambda text: None).agrees("a", "b") is None


def test_votes_are_compared_by_async_comparators_too():
    async def same(one, two):
        return one == two

    outputs = iter(["x", "y", "x"])
    stages = [Stage(name, lambda item: next(outputs), 1) for name in "abc"]
    cascade = Cascade(stages, "fixed", comparator=same, combine=majority_vote)
    answer = asyncio.run(cascade.answer_async(0))
    assert answer.answer == "x"
    assert cascade.learner.evidence().disagreed.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_a_comparator_may_use_the_learner_from_another_thread():
    def compare(one, two):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(learner.rounds))
        thread.start()
        thread.join(5)
        return bool(seen)

    learner = Learner([0, 1], "fixed", comparator=compare)
    with learner.begin() as round:
        round.observe("x")
        round.observe("y")
    assert learner.evidence().disagreed[0, 1] == 0
