"""Rounds: what they are told, how they end, what is counted."""

import gc
import threading
from typing import Any

import pytest

from stopwise import Evidence, StopwiseError
from stopwise.live import (
    BudgetError,
    Drift,
    Learner,
    folded,
    json_fields,
    letter,
    majority_vote,
    number,
)


def play(learner, outputs, segment="", **kinds):
    round = learner.begin(segment)
    for output in outputs[: round.depth + 1]:
        round.observe(output)
    return round, round.end()


def always_last(stages=(0, 1, 2), **settings):
    return Learner(list(stages), "fixed", **settings)


def test_a_round_ends_with_answer_stage_and_cost():
    learner = always_last()
    _, outcome = play(learner, ["a", "b", "b"])
    assert outcome == ("b", 2, 3.0)
    assert learner.evidence() == Evidence.from_prefixes(3, [["a", "b", "b"]])
    assert learner.report().calls == (1, 1, 1)


def test_actual_costs_are_what_a_round_cost():
    round = always_last().begin()
    round.observe("a")
    round.observe("a", cost=7)
    round.observe("a")
    assert round.end().cost == 0 + 7 + 2


def test_abstention_falls_back_and_is_no_agreement():
    learner = always_last()
    _, outcome = play(learner, ["a", "b", None])
    assert outcome == ("b", 1, 3.0)
    assert learner.evidence().seen.sum() == 1
    _, outcome = play(learner, [None, None, None])
    assert outcome == (None, None, 3.0)


def test_failures_are_recorded_and_never_agree():
    learner = always_last()
    round = learner.begin()
    round.observe("a")
    round.fail(RuntimeError("down"))
    round.observe("a")
    round.end()
    assert learner.report().failures == (0, 1, 0)
    assert learner.evidence() == Evidence.from_prefixes(3, [["a", None, "a"]])


@pytest.mark.parametrize("how", ["abandon", "end", "with", "error", "forgotten"])
def test_an_abandoned_round_counts_what_it_saw(how):
    learner = always_last()
    if how in ("with", "error"):
        try:
            with learner.begin() as round:
                round.observe("a")
                round.observe("b")
                if how == "error":
                    raise KeyError
        except KeyError:
            pass
    else:
        round = learner.begin()
        round.observe("a")
        round.observe("b")
        if how != "forgotten":
            assert getattr(round, how)().answer == "b"
    del round
    gc.collect()
    assert learner.evidence() == Evidence.from_prefixes(3, [["a", "b"]])
    assert learner.report().abandoned == learner.rounds == 1


def test_what_a_round_refuses():
    learner = always_last()
    round = learner.begin()
    for _ in range(3):
        round.observe("a")
    with pytest.raises(StopwiseError, match="stops at stage 2, whose output is there already"):
        round.observe("a")
    round.end()
    with pytest.raises(StopwiseError, match="has ended"):
        round.observe("a")
    with pytest.raises(StopwiseError, match="has ended already"):
        round.end()
    with pytest.raises(StopwiseError, match="cost: got -1"):
        learner.begin().observe("a", cost=-1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"mistake_cost": 0}, "mistake_cost"),
        ({"half_life": 0}, "half_life"),
        ({"full_run_rate": 2}, "full_run_rate"),
        ({"mode": "silent"}, "mode"),
        ({"run_to": "d"}, "run_to"),
        ({"run_to": 3}, "run_to"),
        ({"item_budget": -1}, "item_budget"),
        ({"comparator": 3}, "comparator"),
        ({"policy": "best"}, "policy"),
        ({"segment_strength": -1}, "segment_strength"),
    ],
)
def test_errors_name_the_setting(settings, message):
    with pytest.raises(StopwiseError, match=message):
        Learner({"a": 0, "b": 1, "c": 1}, **settings)


def test_votes_are_what_is_compared():
    learner = always_last(combine=majority_vote)
    round, outcome = play(learner, ["a", "b", "a"])
    # the answers after one, two, three outputs are a, b (the later of two), a
    assert outcome.answer == "a"
    assert learner.evidence() == Evidence.from_prefixes(3, [["a", "b", "a"]])
    learner = always_last((0, 1, 1, 1), combine=majority_vote)
    play(learner, ["a", "a", "b", "a"])  # answers a a a a
    assert learner.evidence().disagreed.sum() == 0
    # a stage that says nothing leaves the vote as it was, and that is no agreement
    play(learner, ["a", None, "b", "b"])
    assert learner.evidence().seen[0, 1] == 1
    assert round.answer_after(0) == "a"


@pytest.mark.parametrize(
    ("comparator", "outputs", "same"),
    [
        (folded(), ["New York", "new  york ", "Boston"], ["x", "x", "y"]),
        (folded(), ["a", "  ", "A"], ["x", None, "x"]),
        (letter(), ["A", "The answer is (A).", "b)"], ["x", "x", "y"]),
        (letter(), ["C", "I cannot tell", "Answer: C because B is wrong"], ["x", None, "x"]),
        (json_fields("k"), ['{"k": 1}', {"k": 1, "l": 2}, "no"], ["x", "x", None]),
        (lambda one, two: len(one) == len(two), ["aa", "bb", "c"], ["x", "x", "y"]),
    ],
)
def test_comparators(comparator, outputs, same):
    learner = always_last(comparator=comparator)
    play(learner, outputs)
    assert learner.evidence() == Evidence.from_prefixes(3, [same])


def test_a_tolerance_is_not_transitive():
    learner = always_last(comparator=number(1.0))
    play(learner, [1.0, "2.0", 3.0])
    assert learner.evidence().disagreed.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert learner.evidence().seen.sum() == 3


def test_unhashable_outputs():
    learner = always_last()
    play(learner, [[1], [1], [2]])
    assert learner.evidence().disagreed.sum() == 2


def test_best_stage_reads_the_evidence():
    learner = Learner([0, 1, 1], mistake_cost=10)
    assert learner.best_stage() == 2  # nothing known: nothing ruled out
    learner.add_evidence(
        Evidence.from_counts(
            [[0, 100, 100], [0, 0, 100], [0, 0, 0]], [[0, 5, 25], [0, 0, 4], [0, 0, 0]]
        )
    )
    assert learner.best_stage() == 1  # 0.05 < 0.1 but 0.25 >= 0.2; 0.04 < 0.1
    assert Learner([0, 100], mistake_cost=10).best_stage() == 0  # a threshold above 1 is sure


def test_measured_costs_enter_the_rule():
    learner = Learner({"a": 0, "b": 1}, "fixed", mistake_cost=10, measured=True)
    for cost in (3.0, 5.0):
        round = learner.begin()
        round.observe("x")
        round.observe("x", cost=cost)
        round.end()
    assert learner.costs.cumulative == (0.0, 3.0)  # (1 + 3 + 5) / 3
    assert learner.report().spent == 8.0


def test_item_budget_limits_the_depth_and_keeps_probabilities_exact():
    learner = Learner([1, 1, 5], "fixed", item_budget=2.5)
    assert learner.probabilities() == [0, 1, 0]
    round = learner.begin()
    assert (round.depth, round.probability) == (1, 1.0)
    with pytest.raises(BudgetError, match="first stage costs 1"):
        Learner([1, 1], item_budget=0.5).begin()


def test_run_budget_holds_back_what_open_rounds_may_cost():
    learner = Learner([1, 1], "fixed", run_budget=5)
    rounds = [learner.begin(), learner.begin()]  # 4 of 5 held
    third = learner.begin()
    assert third.depth == 0  # one left: the first stage only
    with pytest.raises(BudgetError):
        learner.begin()
    del third  # forgotten, and nothing was called: what it held is free again
    rounds[0].observe("a")
    rounds[0].abandon()  # cost 1 instead of 2
    assert learner.begin().depth == 1


def test_full_runs_are_in_the_probabilities():
    learner = Learner([0, 1, 1], "fixed:stage=0", full_run_rate=0.25, seed=5)
    assert learner.probabilities() == [0.75, 0, 0.25]
    rounds = [learner.begin() for _ in range(400)]
    assert {(round.depth, round.probability) for round in rounds} == {(0, 0.75), (2, 0.25)}


@pytest.mark.parametrize("mode", ["shadow", "advise"])
def test_shadow_and_advise_run_to_their_stage_and_note_the_advice(mode):
    learner = Learner({"a": 0, "b": 1, "c": 1}, "fixed:stage=1", mode=mode, run_to="c")
    assert learner.probabilities() == [0, 0, 1]
    assert learner.advice() == [0, 1, 0]
    round, outcome = play(learner, ["x", "y", "y"])
    assert outcome == ("y", 2, 2.0)
    assert round.advice == (1, 1.0, "y", 1.0)
    play(learner, ["x", "x", "y"])
    report = learner.report()
    assert (report.advised, report.advised_cost, report.saved) == ((0, 2, 0), 2.0, 2.0)
    assert report.advised_agreement == 0.5


def test_half_life_forgets():
    learner = Learner([0, 0.3], "fixed", half_life=10)
    for _ in range(50):
        play(learner, ["a", "b"])
    assert learner.best_stage() == 1
    for _ in range(40):
        play(learner, ["a", "a"])
    assert learner.best_stage() == 0  # 50 of 90 disagreed, but hardly any of the recent ones
    assert learner.evidence().disagreed[0, 1] == 50  # the exact counts are kept beside
    weights = [0.5 ** (age / 10) for age in range(90)]
    recent = learner._books.counters.peek("").recent_evidence()
    assert recent.seen[0, 1] == pytest.approx(sum(weights))
    assert recent.disagreed[0, 1] == pytest.approx(sum(weights[40:]))


def test_segments_are_apart_but_lend():
    learner = Learner([0, 0.3], segment_strength=20)
    fresh = learner.probabilities("new")
    learner.add_evidence(Evidence.from_counts([[0, 500], [0, 0]], [[0, 5], [0, 0]]), "old")
    assert learner.evidence("new").seen.sum() == 0
    lent = learner.probabilities("new")
    # as if it had seen 20 rounds with the others' rate of 1 in 100
    as_if = Learner([0, 0.3])._books.ledger.chooser.policy
    from stopwise.live.counters.tally import real_evidence

    want = as_if.probabilities(real_evidence(2, [20.0], [0.2], 0, 0), 1, learner.costs)
    assert lent == pytest.approx(want.tolist())
    assert lent[0] > fresh[0]
    alone = Learner([0, 0.3], segment_strength=0)
    alone.add_evidence(Evidence.from_counts([[0, 500], [0, 0]], [[0, 5], [0, 0]]), "old")
    assert alone.probabilities("new") == fresh


def test_drift_raises_an_alarm_and_not_without_cause():
    import numpy as np

    heard: list[Any] = []
    rng = np.random.default_rng(3)
    drift = Drift(window=100, false_alarm=1e-7)
    learner = Learner([0, 1], "fixed", drift=drift, on_drift=heard.append)
    for _ in range(3000):  # false alarms have probability at most 1e-7
        play(learner, [0, int(rng.random() < 0.1)])
    assert not heard
    for _ in range(400):
        play(learner, [0, int(rng.random() < 0.6)])
    assert heard
    assert heard == learner.alarms
    assert heard[0].before < 0.2 < heard[0].after


def test_a_listener_that_raises_costs_no_answer():
    def listener(alarm):
        raise KeyError

    learner = Learner([0, 1], "fixed", drift=Drift(window=20), on_drift=listener)
    for _ in range(200):
        play(learner, [0, 0])
    with pytest.warns(RuntimeWarning, match="on_drift raised"):
        answers = [play(learner, [0, 1])[1].answer for _ in range(40)]
    assert answers == [1] * 40


def test_many_threads():
    learner = Learner([0, 0.1, 0.1], seed=1)
    depths = []

    def work():
        for at in range(300):
            with learner.begin() as round:
                depths.append(round.depth)
                for stage in range(round.depth + 1):
                    round.observe(at % (stage + 1))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learner.rounds == 2400
    assert learner.evidence().seen[0, 2] == sum(depth == 2 for depth in depths)
    assert learner.evidence().seen[0, 1] == sum(depth >= 1 for depth in depths)


@pytest.mark.parametrize("segment", [["x"], {"x": 1}, 5, None, b"x"])
@pytest.mark.parametrize("settings", [{}, {"half_life": 5}, {"item_budget": 9}, {"mode": "shadow"}])
def test_a_segment_that_is_no_text_is_refused_by_name(segment, settings):
    learner = Learner([0, 1], mistake_cost=9, **settings)
    for ask in (learner.begin, learner.evidence, learner.advice, learner.best_stage):
        with pytest.raises(StopwiseError, match=r"segment: got .*, but need text"):
            ask(segment)
    with pytest.raises(StopwiseError, match=r"segment: got .*, but need text"):
        learner.add_evidence(learner.evidence(), segment)
    assert learner.segments == []


def test_a_round_goes_deeper_only_while_there_is_a_stage_it_was_not_to_call():
    """Asked before its outputs are there, it raised an error and kept money of the budget back."""
    learner = Learner([1, 2, 4], "fixed:stage=0", mistake_cost=9, run_budget=100.0)
    round = learner.begin()
    assert [learner.go_deeper(round) for _ in range(4)] == [True, True, False, False]
    assert round.depth == 2
    assert learner._books.ledger.budgets.held == 7.0  # the three calls, each at its own cost
    round.abandon()
    assert learner._books.ledger.budgets.held == 0.0
