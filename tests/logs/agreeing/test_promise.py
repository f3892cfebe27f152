"""A promise of agreement: kept as often as promised, nothing read that was not called."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import stopwise as sw
from stopwise.checks import StopwiseError
from stopwise.logs.agreeing.procedure import keep_promise
from stopwise.logs.agreeing.promise import allowed_differences, check_promise, promise_rows
from stopwise.logs.agreeing.seen import FromRows, Seen
from stopwise.situations.observations import Observations


def made_rows(count, noise=(0.9, 0.5, 0.2), seed=0, sure=True):
    random = np.random.default_rng(seed)
    score = random.normal(size=count)
    heard = score[:, None] + random.normal(size=(count, len(noise))) * np.asarray(noise)
    confidences = 1 - np.exp(-np.abs(heard)) if sure else None
    return Observations(("no", "yes"), (heard > 0).astype(np.int64), confidences)


COSTS = np.array([1.0, 4.0, 20.0])


@pytest.mark.parametrize(("calls", "agree"), [("cascade", 0.97), ("alone", 0.9)])
def test_the_promise_is_broken_no_more_often_than_promised(calls, agree):
    """60 runs: more than binom.ppf(1 - 1e-6) broken at level 0.9 is a false alarm below 1e-6."""
    rows = made_rows(700)
    runs = [promise_rows(rows, COSTS, agree, 0.9, calls=calls, seed=seed) for seed in range(60)]
    broken = sum(not run.kept for run in runs)
    assert broken <= binom.ppf(1 - 1e-6, 60, 0.1)
    assert np.mean([run.cost_avoided for run in runs]) > 0.1


def test_confidences_that_lie_cost_calls_but_not_the_promise():
    """The surest answers are the wrong ones, and only these: the order is as bad as can be."""
    rows = made_rows(500)
    upside_down = Observations(rows.labels, rows.codes, -rows.confidences)
    constant = Observations(rows.labels, rows.codes, np.ones_like(rows.confidences))
    for bad in (upside_down, constant):
        runs = [promise_rows(bad, COSTS, 0.95, 0.9, seed=seed) for seed in range(60)]
        assert sum(not run.kept for run in runs) <= binom.ppf(1 - 1e-6, 60, 0.1)


def test_a_hard_stretch_at_the_end_of_the_order_is_noticed():
    """Half of the items are sure and right, a tenth sure and wrong: half must go on being asked."""
    codes = np.zeros((2000, 2), dtype=np.int64)
    codes[:200, 0] = 1
    rows = Observations(("no", "yes"), codes, np.ones((2000, 2)))
    runs = [promise_rows(rows, COSTS[[0, 2]], 0.99, 0.9, seed=seed) for seed in range(60)]
    assert sum(not run.kept for run in runs) <= binom.ppf(1 - 1e-6, 60, 0.1)


def test_stages_between_and_confidences_make_it_cheaper():
    rows, plain = made_rows(4000), made_rows(4000, sure=False)
    ends = Observations(rows.labels, rows.codes[:, [0, 2]], rows.confidences[:, [0, 2]])

    def avoided(given, costs):
        return np.mean([promise_rows(given, costs, 0.95, seed=s).cost_avoided for s in range(8)])

    total = COSTS.sum()
    with_ends = avoided(ends, COSTS[[0, 2]]) * (COSTS[0] + COSTS[2]) / total
    assert avoided(rows, COSTS) > with_ends + 0.1
    assert avoided(rows, COSTS) > avoided(plain, COSTS) + 0.05


class Counted:
    """A source that remembers what was asked of it."""

    def __init__(self, rows):
        self.inner = FromRows(rows)
        self.asked = np.zeros(rows.codes.shape, dtype=np.int64)

    def __len__(self):
        return len(self.inner)

    def call(self, stage, items):
        self.asked[items, stage] += 1
        return self.inner.call(stage, items)


@pytest.mark.parametrize("calls", ["cascade", "alone"])
def test_no_output_is_read_before_it_is_paid_for(calls):
    rows = made_rows(800)
    source = Counted(rows)
    seen = Seen(source, COSTS, calls)
    outcome = keep_promise(seen, 40, 0.05, np.random.default_rng(1))
    assert source.asked.max() == 1  # nothing is called twice
    assert seen.spent == pytest.approx(source.asked @ COSTS)
    early = outcome.stages < 2
    assert not source.asked[early, 2].any()
    assert source.asked[~early, 2].all()
    assert (source.asked[np.arange(800), outcome.stages] == 1).all()
    if calls == "cascade":
        assert (np.diff(source.asked, axis=1) <= 0).all()


def test_the_last_stage_of_unseen_items_does_not_matter():
    """Turning every last-stage output that was not called leaves the run as it was."""
    rows = made_rows(800)
    first = promise_rows(rows, COSTS, 0.95, seed=3)
    codes = rows.codes.copy()
    unseen = first.answered_by < 2
    codes[unseen, 2] = 1 - codes[unseen, 2]
    again = promise_rows(
        Observations(rows.labels, codes, rows.confidences), COSTS, 0.95, seed=3
    )  # fmt: skip
    assert (again.answered_by == first.answered_by).all()
    assert again.cost == first.cost


@settings(deadline=None, max_examples=40)
@given(
    st.integers(2, 60), st.integers(2, 4), st.sampled_from([0.5, 0.9, 0.99]),
    st.sampled_from(["cascade", "alone"]), st.integers(0, 10**6),
)  # fmt: skip
def test_small_odd_logs_are_answered(count, stages, agree, calls, seed):
    random = np.random.default_rng(seed)
    codes = random.integers(-1, 3, size=(count, stages))
    confidences = np.where(random.random(codes.shape) < 0.3, np.nan, random.random(codes.shape))
    features = {"n": random.random(count), "t": random.choice(["a", "b"], count)}
    rows = Observations(("a", "b", "c"), codes, confidences, features)
    costs = random.integers(0, 4, stages).astype(np.float64)
    found = promise_rows(rows, costs, agree, calls=calls, seed=seed)
    assert found.answered_by.max() < stages
    assert sum(found.stage_shares) == pytest.approx(1)
    json.dumps(found.to_dict(), allow_nan=False)
    if calls == "cascade":
        cumulative = np.cumsum(costs)
        assert found.cost == pytest.approx(float(cumulative[found.answered_by].mean()))


def test_an_abstention_leaves_the_answer_before_it():
    rows = Observations(("a", "b"), np.array([[0, -1], [0, 1], [-1, -1], [-1, 0]]))
    seen = Seen(FromRows(rows), np.ones(2), "cascade")
    seen.reach(np.arange(4), 1)
    assert seen.differs(0, np.arange(4)).tolist() == [0, 1, 0, 1]


def test_shares_are_whole_numbers_of_items():
    assert [allowed_differences(0.9, n) for n in (9, 10, 11, 1000)] == [0, 1, 1, 100]
    assert allowed_differences(0.7, 10) == 3
    with pytest.raises(StopwiseError, match="agree: got 1"):
        check_promise(1, 0.95, 10)
    with pytest.raises(StopwiseError, match=r"level: got 0\.2"):
        check_promise(0.9, 0.2, 10)
    with pytest.raises(StopwiseError, match="calls: got 'both'"):
        promise_rows(made_rows(10), COSTS, calls="both")


def test_a_log_with_confidences_and_one_without():
    polars = pytest.importorskip("polars")
    rows = made_rows(3000)
    columns = {}
    for at, name in enumerate(("small", "middle", "large")):
        columns[name] = rows.codes[:, at]
        columns[f"{name}:confidence"] = rows.confidences[:, at]
    frame = polars.DataFrame(columns)
    options = {"stages": "small,middle,large", "costs": "1,4,20", "level": 0.95}
    with_them = sw.promise(frame, 0.95, **options)
    without = sw.promise(frame.select("small", "middle", "large"), 0.95, **options)
    assert with_them.cost_avoided > without.cost_avoided
    assert "Equal to large on at least 95% of 3,000 items" in str(with_them).replace(" %", "%")
    assert with_them.to_frame().height == 3000
    assert "promise was kept" in with_them.sentences()[-1]
    assert with_them._repr_html_().count("<tr") == 4
