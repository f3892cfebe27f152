"""A `run_budget` over the processes that are forked from one that writes a log."""

import os

import pytest

from stopwise.live import BudgetError, Learner, RoundLog, read_rounds

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def make(path, budget=100):
    return Learner([1, 3], "fixed:stage=0", seed=1, run_budget=budget, store=RoundLog(path))


def spend_all(learner):
    """Run rounds until none can be paid; return how many there were."""
    for at in range(1000):
        try:
            with learner.begin() as round:
                round.observe("x")
        except BudgetError:
            return at
    return 1000


def in_children(number, work):
    children = []
    for _ in range(number):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return children


def wait_for(children):
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("before", [0, 10])
def test_parent_and_children_spend_one_budget(tmp_path, before):
    path = tmp_path / "rounds.jsonl"
    learner = make(path)
    for _ in range(before):
        with learner.begin() as round:
            round.observe("x")

    def work():
        spend_all(learner)
        learner.close()

    children = in_children(4, work)
    spend_all(learner)
    wait_for(children)
    spend_all(learner)  # what the children gave back
    learner.close()
    assert sum(record.cost for record in read_rounds(path)) == 100
    again = make(path)
    assert spend_all(again) == 0
    again.close()


def test_what_killed_children_held_comes_back_on_the_next_opening(tmp_path):
    path = tmp_path / "rounds.jsonl"
    learner = make(path)

    def work():
        with learner.begin() as round:
            round.observe("x")

    wait_for(in_children(3, work))  # they end without `close`
    spend_all(learner)
    learner.close()
    assert sum(record.cost for record in read_rounds(path)) <= 100
    again = make(path)
    spend_all(again)
    again.close()
    assert sum(record.cost for record in read_rounds(path)) == 100


def test_one_process_spends_its_budget_to_the_end(tmp_path):
    learner = make(tmp_path / "rounds.jsonl", 10)
    assert spend_all(learner) == 10
    assert learner.report().spent == 10
    learner.close()
