"""Situations in which "certain" was once said wrongly."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stopwise.checks import StopwiseError
from stopwise.logs import analyze
from stopwise.logs.judging.verdict import doubt_of
from stopwise.logs.reading.bills import Spread
from stopwise.logs.reading.costs import mean_bounds


@pytest.mark.parametrize(
    "text",
    ["note,a,b\nfine,x,x\nwell, well,x,y\n", "item,a,b,note\n1,x,x,fine\n2,x,y,well, well\n"],
)
def test_a_row_with_too_many_values_is_refused_whatever_is_read(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(StopwiseError, match="more values than the header"):
        analyze(path, stages=["a", "b"], costs=[1, 2])


def test_a_free_stage_that_abstains_was_called():
    """Blank and billed 0, but free wherever it answers: it gave no answer, and was called."""
    rows = 400
    frame = pl.DataFrame(
        {
            "free": ["x"] * 300 + [None] * 100, "free:cost": [0.0] * rows,
            "paid": ["x"] * rows, "paid:cost": [0.1] * rows,
        }
    )  # fmt: skip
    analysis = analyze(frame, mistake_cost=1, abstentions="mistake")
    assert analysis.counts.by_stage()["abstained"] == [100, 0]
    # A quarter of the answers is missing: going on costs 0.1 and may be worth it.
    assert not analysis.verdict.pairs[0].certain


def test_a_stage_that_is_billed_is_not_called_where_it_is_not():
    frame = pl.DataFrame(
        {"a": ["x"] * 50, "a:cost": [1.0] * 50, "b": ["x"] * 40 + [None] * 10,
         "b:cost": [2.0] * 40 + [0.0] * 10}
    )  # fmt: skip
    assert analyze(frame).counts.by_stage()["not_called"] == [0, 10]


def test_segments_are_judged_with_their_own_bills():
    """Long texts cost 100 times more: what is certain for one segment is not for the other."""
    rng = np.random.default_rng(0)
    rows = 4000
    long = np.arange(rows) % 2 == 1
    differ = rng.random(rows) < 0.03
    frame = pl.DataFrame(
        {
            "kind": np.where(long, "long", "short"),
            "a": np.zeros(rows, int), "a:cost": np.full(rows, 0.001),
            "b": differ.astype(int), "b:cost": np.where(long, 0.2, 0.002),
        }
    )  # fmt: skip
    analysis = analyze(frame, mistake_cost=1, segment="kind")
    found = {segment.name: segment.verdict for segment in analysis.segments}
    assert found["long"].pairs[0].certain
    assert not found["short"].pairs[0].certain
    assert found["short"].costs.cumulative[1] == pytest.approx(0.003)


def test_rows_that_lack_both_stages_count_in_a_selective_log():
    codes = np.array([[0, 0, 0], [1, -2, -2], [0, -2, -2]])
    number = np.array([50, 30, 20])
    doubt = doubt_of(codes, number, selective=[1, 2])
    assert (doubt.seen[1, 2], doubt.differ[1, 2]) == (100, 50)


def test_certain_on_a_partial_log_says_what_it_rests_on():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a": rng.integers(0, 2, 3000)})
    kept = rng.random(3000) < 0.5
    frame = frame.with_columns(b=pl.when(pl.Series(kept)).then(pl.col("a")))
    analysis = analyze(frame, stages=["a", "b"], costs=[0, 0.1], mistake_cost=1)
    pair = analysis.verdict.pairs[0]
    assert pair.certain
    assert not pair.whatever_missing
    form = analysis.to_dict()["pairs"][0]
    assert form["verdict"] == "certain"
    assert form["certain_whatever_is_missing"] is False
    complete = analyze(frame.filter(pl.Series(kept)), stages=["a", "b"], costs=[0, 0.1])
    assert complete.verdict.pairs[0].whatever_missing


@pytest.mark.parametrize(
    ("name", "draw", "mean"),
    [
        ("cached", lambda rng, n: np.where(rng.random(n) < 0.97, 0.0, 1.0), 0.03),
        ("heavy", lambda rng, n: rng.lognormal(0, 1.5, n), float(np.exp(1.125))),
        ("capped", lambda rng, n: np.minimum(rng.exponential(2, n), 1.0), 2 * (1 - np.exp(-0.5))),
    ],
)
def test_lower_bounds_of_billed_costs_hold(name, draw, mean):
    """300 logs of 100 bills, 1 % allowed; the limit has a chance below 1e-6."""
    rng = np.random.default_rng(2)
    limit = stats.binom.ppf(1 - 1e-6, 300, 0.01)
    misses = 0
    for _ in range(300):
        costs, number = np.unique(draw(rng, 100), return_counts=True)
        low, _ = mean_bounds(Spread(costs, number.astype(float)), 0.01)
        misses += low > mean
    assert misses <= limit, name


def test_equal_bills_have_an_interval_of_some_width():
    low, high = mean_bounds(Spread(np.array([1.0]), np.array([50.0])), 0.0025)
    assert low < 0.95
    assert high > 1.0


def test_three_classes_of_pairs():
    rng = np.random.default_rng(5)
    rows = 300
    base = rng.integers(0, 2, rows)

    def differing(share):
        return np.where(np.arange(rows) < share * rows, 1 - base, base)

    frame = pl.DataFrame(
        {"a": base, "b": differing(0.05), "c": differing(0.05), "d": differing(0.4)}
    )
    analysis = analyze(
        frame, stages=list("abcd"), costs=[0, 0.06, 0.5, 0.1], mistake_cost=1
    )  # fmt: skip
    found = {(p.shallow, p.deep): p for p in analysis.verdict.pairs}
    assert found[0, 2].verdict == "certain"
    assert found[0, 1].verdict == "too few rows"
    assert found[0, 1].more_rows_settle > rows
    two = analyze(frame, stages=["a", "d"], costs=[0, 0.1], mistake_cost=1)
    assert two.verdict.pairs[0].verdict == "not knowable"
    assert two.verdict.pairs[0].more_rows_settle is None


def test_more_rows_are_promised_only_where_they_would_help():
    """Half of the pairs to deeper stages are not knowable: no number of rows would do."""
    rng = np.random.default_rng(6)
    a = rng.integers(0, 2, 200)
    frame = pl.DataFrame({"a": a, "b": np.where(rng.random(200) < 0.05, 1 - a, a)})
    analysis = analyze(
        frame, stages=["a", "b"], costs=[0, 0.07], mistake_cost=1, reading="weak-dominance"
    )
    assert analysis.verdict.pairs[0].verdict == "too few rows"
    assert "more rows would make this certain" in analysis.sentence
