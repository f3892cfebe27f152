"""Situations in which "certain" was once said wrongly."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stopwise.checks import StopwiseError
from stopwise.logs import LogSettings, analyze, audit
from stopwise.logs.judging.verdict import doubt_of
from stopwise.logs.reading.bills import Spread
from stopwise.logs.reading.costs import costs_of, mean_bounds
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.reading.rows import read_rows


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


PAID_FOR_ANSWERS = pl.DataFrame(
    {
        "a": ["x"] * 300 + [None] * 100, "a:cost": [0.1] * 300 + [0.0] * 100,
        "b": ["x"] * 400, "b:cost": [0.1] * 400,
    }
)  # fmt: skip


def test_a_stage_that_is_paid_for_answers_alone_was_called_where_it_gave_none():
    """Blank and billed 0 before an answer: in a cascade it was called, as errors are often free."""
    analysis = analyze(PAID_FOR_ANSWERS, mistake_cost=1, abstentions="mistake")
    assert analysis.counts.by_stage()["abstained"] == [100, 0]
    assert not analysis.verdict.pairs[0].certain
    assert analysis.verdict.cost_bounds.own == pytest.approx((0.075, 0.1))
    rows = read_rows(PAID_FOR_ANSWERS, LogSettings(stages=("a", "b"), mistake_cost=1))
    assert (len(rows.codes), rows.left_out) == (400, 0)


def test_a_bill_that_is_missing_is_no_call_and_nor_is_one_of_0_for_stages_called_alone():
    missing = PAID_FOR_ANSWERS.with_columns(pl.col("a:cost").replace(0.0, None))
    for frame, more in ((missing, {}), (PAID_FOR_ANSWERS, {"calls": "alone"})):
        counts = analyze(frame, mistake_cost=1, **more).counts
        assert counts.by_stage()["not_called"] == [100, 0]


def test_blanks_said_to_be_abstentions_are_whatever_was_billed():
    early = PAID_FOR_ANSWERS.rename({"a": "b", "b": "a", "a:cost": "b:cost", "b:cost": "a:cost"})
    for frame in (early, early.with_columns(pl.col("b:cost").replace(0.0, None))):
        given = {"stages": ["a", "b"], "mistake_cost": 1}
        assert analyze(frame, **given).counts.by_stage()["not_called"] == [0, 100]
        said = analyze(frame, **given, trailing_blanks="abstained")
        assert said.counts.by_stage()["abstained"] == [0, 100]


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


def _silent_where_expensive(rows=2000, seed=7):
    """`b` is costly on just the items on which `a` is silent: stopping at `a` saves little."""
    rng = np.random.default_rng(seed)
    silent = rng.random(rows) < 0.1
    truth = rng.integers(0, 2, rows)
    first = np.where(rng.random(rows) < 0.5, truth, 1 - truth)
    return pl.DataFrame(
        {
            "a": [None if gap else str(said) for gap, said in zip(silent, first, strict=True)],
            "a:cost": np.ones(rows),
            "b": truth.astype(str),
            "b:cost": np.where(silent, 1000.0, 0.01),
        }
    )


@pytest.mark.parametrize("calls", ["cascade", "alone"])
def test_bills_of_items_that_go_on_are_not_those_of_the_others(calls):
    frame = _silent_where_expensive()
    options = {"stages": ["a", "b"], "mistake_cost": 10, "calls": calls}
    analysis = analyze(frame, **options)
    pair = analysis.verdict.pairs[0]
    # b costs 0.01 more where a answers, and is right on half of these items.
    assert pair.verdict == "not knowable"
    rows = read_rows(frame, LogSettings.of(**options))
    assert analysis.verdict.costs.cumulative[0] == pytest.approx(rows.spent[:, 0].mean())
    begun = audit(frame, {}, **options)
    assert not begun.settled


def test_bounds_where_stages_go_on_hold_for_any_bills():
    """60 logs of 150 items, 1 % allowed over all pairs; the limit has a chance below 1e-6."""
    rng = np.random.default_rng(11)
    limit = stats.binom.ppf(1 - 1e-6, 60, 0.01)
    settings = LogSettings(stages=("a", "b"), calls="cascade")
    misses = 0
    for _ in range(60):
        silent = rng.random(150) < 0.2
        bills = np.where(silent, rng.exponential(9.0, 150), rng.exponential(0.5, 150))
        frame = pl.DataFrame(
            {"a": [None if gap else "x" for gap in silent], "b": ["x"] * 150,
             "a:cost": np.full(150, 0.1), "b:cost": bills}
        )  # fmt: skip
        counts = count(open_log(frame, settings))
        misses += costs_of(counts, settings)[1].steps_low()[0, 1] > 0.8 * 0.5
    assert misses <= limit


def test_calls_that_were_not_made_may_have_cost_anything():
    """Only a third of the items went on, and these are the costly ones, as far as is known."""
    rng = np.random.default_rng(8)
    went_on = rng.random(3000) < 0.3
    said = np.where(rng.random(3000) < 0.5, "x", "y")
    frame = pl.DataFrame(
        {"a": said, "a:cost": np.full(3000, 0.001),
         "b": [one if on else None for one, on in zip(said, went_on, strict=True)],
         "b:cost": [10.0 if on else None for on in went_on]}
    )  # fmt: skip
    analysis = analyze(frame, stages=["a", "b"], mistake_cost=5)
    pair = analysis.verdict.pairs[0]
    assert pair.certain
    assert not pair.whatever_missing  # free where it was not called, it would cost 3, not 10
    cheap = analyze(frame, stages=["a", "b"], mistake_cost=0.5).verdict.pairs[0]
    assert cheap.whatever_missing


def test_bills_of_a_selective_log_say_nothing_of_the_other_rows():
    rng = np.random.default_rng(9)
    said = np.where(rng.random(4000) < 0.2, "hard", "easy")
    frame = pl.DataFrame(
        {"a": said, "a:cost": np.full(4000, 0.001),
         "b": [one if one == "hard" else None for one in said],
         "b:cost": [9.0 if one == "hard" else None for one in said]}
    )  # fmt: skip
    analysis = analyze(frame, stages=["a", "b"], mistake_cost=5)
    assert "selective_log" in {warning.code for warning in analysis.warnings}
    pair = analysis.verdict.pairs[0]
    # 9 on a fifth of the items is 1.8, a share of 0.36: the answers may differ on 0.8 of them.
    assert pair.threshold_low < 0.4
    assert (pair.verdict, pair.more_rows_settle) == ("not knowable", None)
