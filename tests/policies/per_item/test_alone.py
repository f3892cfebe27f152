"""The per-item rule for stages called alone: by hand, in bulk, and beside the other rules."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.policies.per_item.alone.paths import paths
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import Binning
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations
from stopwise.situations.references import hold_against
from stopwise.situations.sureness import last_is_surer
from stopwise.situations.transitions import Transitions
from stopwise.situations.whole_rows import WholeRows, path_keys, whole_key

NAMES = ("small", "middle", "large")


def made_rows(count, noise, seed=0):
    random = np.random.default_rng(seed)
    score = random.normal(size=count)
    heard = score[:, None] + random.normal(size=(count, len(noise))) * np.asarray(noise)
    rows = Observations(
        ("no", "yes"), (heard > 0).astype(np.int64), 1 - np.exp(-np.abs(heard))
    )  # fmt: skip
    return rows, (score > 0).astype(np.int64)


def total(rows, truth, answered_by, spent, mistake_cost):
    wrong = rows.codes[np.arange(len(rows)), answered_by] != truth
    return float(np.mean(spent) + mistake_cost * wrong.mean())


def test_by_hand_a_useless_middle_stage_is_jumped_over():
    # The first stage is right when it says "no". The middle one always says "yes": worth nothing.
    codes = np.array([[0, 1, 0]] * 500 + [[1, 1, 0]] * 250 + [[1, 1, 1]] * 250)
    rows = Observations(("no", "yes"), codes)
    rule = AloneRule.fit(NAMES, rows, Costs.from_stages([1, 2, 3], 50), reference="last", trust=1)
    followed = rule.follow(rows)
    assert rule.first == 0
    assert followed.called.mean(axis=0).tolist() == [1, 0, 0.5]
    assert followed.answered_by.tolist() == [0] * 500 + [2] * 500
    assert followed.cost == pytest.approx(1 + 3 / 2)


def test_by_hand_a_first_stage_that_tells_nothing_is_not_called():
    random = np.random.default_rng(0)
    last = random.integers(0, 2, 1000)
    codes = np.stack([random.integers(0, 2, 1000), last, last], axis=1)
    costs = Costs.from_stages([1, 4, 20], mistake_cost=100)
    rule = AloneRule.fit(NAMES, Observations(("no", "yes"), codes), costs, reference="last")
    followed = rule.follow(Observations(("no", "yes"), codes))
    assert rule.first == 1
    assert followed.cost == 4
    cascade = Rule.fit(NAMES, Observations(("no", "yes"), codes), costs, reference="last")
    assert cascade.depths(Observations(("no", "yes"), codes)).min() == 1  # and pays 1 + 4


def test_paths_hold_every_choice_once():
    assert sorted(paths(4)) == [(0,), (0, 1), (0, 1, 2), (0, 2), (1,), (1, 2), (2,)]
    assert max(len(path) for path in paths(10)) == 3


def test_the_path_through_all_stages_is_the_cascade():
    rows, _ = made_rows(300, (0.9, 0.6, 0.3))
    binning = Binning.fit(rows)
    keys = situations(rows, binning)
    whole = WholeRows.of(rows, binning)
    assert (path_keys(whole, (0,)) == keys[:, 0]).all()
    assert (path_keys(whole, (0, 1)) == keys[:, 1]).all()


def test_its_own_measure_is_no_worse_than_any_stage_alone():
    """On its own rows, up to leaning on coarser keys; the reference is the last stage."""
    rows, _ = made_rows(6000, (0.9, 0.6, 0.3))
    own = np.array([1.0, 4.0, 20.0])
    differs = rows.codes != rows.codes[:, [-1]]
    for mistake_cost in (5.0, 40.0, 300.0):
        costs = Costs.from_stages(own, mistake_cost)
        rule = AloneRule.fit(NAMES, rows, costs, reference="last", trust=1)
        followed = rule.follow(rows)
        lost = differs[np.arange(len(rows)), followed.answered_by].mean()
        fixed = own + mistake_cost * differs.mean(axis=0)
        assert followed.cost + mistake_cost * lost <= fixed.min() * 1.01


def test_held_out_it_beats_the_best_stage_called_alone():
    """Judged by the truth, which the rule never sees, on rows it was not made from."""
    rows, truth = made_rows(8000, (0.9, 0.5, 0.2))
    half = np.arange(8000) < 4000
    own = np.array([1.0, 4.0, 20.0])
    ratios = []
    for mistake_cost in (30.0, 100.0, 300.0):
        rule = AloneRule.fit(NAMES, rows.where(half), Costs.from_stages(own, mistake_cost))
        other = rows.where(~half)
        followed = rule.follow(other)
        ours = total(other, truth[~half], followed.answered_by, followed.spent, mistake_cost)
        best = min(
            total(other, truth[~half], np.full(4000, at), own[at], mistake_cost) for at in range(3)
        )
        ratios.append(ours / best)
    assert np.exp(np.log(ratios).mean()) < 0.95


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 5), st.integers(4, 80), st.integers(0, 10**6))
def test_decisions_one_by_one_are_those_in_bulk_and_survive_json(stages, count, seed):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, size=(count, stages))
    rows = Observations(("a", "b", "c"), codes, random.random(codes.shape))
    names = tuple(f"s{at}" for at in range(stages))
    rule = AloneRule.fit(names, rows, Costs.from_stages(random.random(stages) + 0.1, 2.0))
    again = AloneRule.from_json(json.dumps(rule.to_dict()))
    assert again == rule
    followed = again.follow(rows)
    for at in range(count):
        path: tuple[int, ...] = (rule.first,)
        while len(path) < stages and path[-1] < stages - 1:
            key = int(path_keys(WholeRows.of(rows.where(np.array([at])), rule.binning), path)[0])
            to = rule.next_stage(path, key)
            if to == path[-1]:
                break
            path = (*path, to)
        assert followed.answered_by[at] == path[-1]
        assert followed.spent[at] == pytest.approx(rule.costs.per_stage[list(path)].sum())


def test_what_it_cannot_take_is_refused():
    rows = Observations(("a", "b"), np.array([[0, -2], [0, 1]]))
    costs = Costs.from_stages([1, 2])
    with pytest.raises(StopwiseError, match="every stage was called"):
        AloneRule.fit(("a", "b"), rows, costs)
    whole = Observations(("a", "b"), np.array([[0, 1], [0, 1]]))
    with pytest.raises(StopwiseError, match="first: got 2"):
        AloneRule.fit(("a", "b"), whole, costs, first=2)
    with pytest.raises(StopwiseError, match="2 names and costs"):
        AloneRule.fit(("a", "b", "c"), whole, costs)
    with pytest.raises(StopwiseError, match="'per-item-alone'"):
        AloneRule.from_dict({"version": 1, "rule": "per-item"})


@pytest.mark.parametrize("unsure", [slice(0, 2), slice(2, 3)])
def test_confidences_are_heard_as_where_stages_need_those_before(unsure):
    """Where the others outvote the last stage, its confidence says which side is the unsure one."""
    codes = np.array([[0, 0, 0]] * 300 + [[1, 1, 0]] * 100)
    sure = np.full(codes.shape, 0.8) + 0.001 * np.arange(400)[:, None] % 0.1
    sure[300:, unsure] -= 0.5
    rows = Observations(("no", "yes"), codes, sure)
    counts = Transitions.of(rows, Binning.fit(rows))
    whole = Transitions.of(rows, Binning.fit(rows, whole=True))
    surer = last_is_surer_in(WholeRows.of_counts(whole.moves[0], 3), 1)
    assert surer == pytest.approx(last_is_surer(counts, 1))
    assert abs(surer) > 0.9
    alone = AloneRule.fit(NAMES, rows, Costs.from_stages([1, 2, 4], 50)).held
    assert alone.doubt == pytest.approx(hold_against(counts).doubt)


def last_is_surer_in(whole, stage):
    ends = Transitions(Binning(edges=((),) * 3, labels=((),) * 3))
    ends.full, ends.ends = whole.ends(), whole.moves_to_end()
    return last_is_surer(ends, stage)


def test_rows_that_were_counted_without_the_last_confidence_are_read_as_without():
    key = whole_key([0, 0, 1], [2, 3, 15], [1, 1], 0)
    assert key == (whole_key([0, 0, 1], [2, 3, 4], [1, 1], 0)[0], 2 << 5)  # as older files have it
    assert WholeRows.of_counts({key: 1}, 3).confidence.tolist() == [[2, 3, 15]]
