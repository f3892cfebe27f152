"""Deciding per item where the log has a bill for every call: figures are of what was billed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from stopwise.logs import LogSettings, promise
from stopwise.logs.items.alone import analyze_items_alone
from stopwise.logs.items.analysis import analyze_items
from stopwise.logs.items.fitting import fit_with_labels
from stopwise.logs.reading.rows import read_rows

BILLED = {"stages": ["a", "b"], "mistake_cost": 300.0, "truth": "truth"}


def _hard_items_cost_more(rows=3000, seed=0):
    """`b` costs 30 on the hard items, which a rule sends on to it, and 0.1 on the others."""
    rng = np.random.default_rng(seed)
    hard = rng.random(rows) < 0.3
    truth = rng.integers(0, 2, rows)
    first = np.where(hard & (rng.random(rows) < 0.5), 1 - truth, truth)
    sure = np.where(hard, 0.4 * rng.random(rows), 0.6 + 0.4 * rng.random(rows))
    return pl.DataFrame(
        {
            "a": first.astype(str), "a:confidence": sure, "a:cost": np.ones(rows),
            "b": truth.astype(str), "b:cost": np.where(hard, 30.0, 0.1), "truth": truth.astype(str),
        }
    )  # fmt: skip


def test_what_is_certified_rests_on_the_bills_of_the_same_items():
    rows = read_rows(_hard_items_cost_more(), LogSettings.of(**BILLED))
    found = analyze_items(rows)
    # Two thirds of the items stop early and save 0.1 each: far from two thirds of the mean bill.
    depths = found.held_out.depths
    saved = rows.bills[:, 1][depths == 0].sum() / len(depths)
    assert found.always_last.cost - found.per_item.cost == pytest.approx(saved)
    assert found.held_out.certified < saved < 0.1
    assert not found.helps
    assert found.gains[0].mean == pytest.approx(saved)
    points = dict(zip(found.stages, found.frontier.stages, strict=True))
    assert points["b"][0] == pytest.approx(rows.spent[:, 1].mean())


def test_stages_called_alone_are_paid_as_billed():
    settings = LogSettings.of(**BILLED, calls="alone")
    rows = read_rows(_hard_items_cost_more(), settings)
    found = analyze_items_alone(rows)
    assert (
        found.per_item.cost > rows.bills[:, 1].mean()
    )  # a is paid for too, and saves next to none
    assert found.certified < 0
    assert not found.helps
    assert found.ways[1].cost == pytest.approx(rows.bills[:, 1].mean())


@pytest.mark.parametrize("calls", ["cascade", "alone"])
def test_what_labels_bought_is_told_from_bills(calls):
    """Only hard items are sent on, at 30 each; the mean bill of `b` is 9."""
    frame = _hard_items_cost_more()
    rule, bought = fit_with_labels(frame, labels=30, **BILLED, calls=calls)
    rows = read_rows(frame, LogSettings.of(**BILLED, calls=calls))
    if calls == "alone":
        called = rule.follow(rows.observations()).called
    else:
        called = rule.depths(rows.observations())[:, None] >= np.arange(2)
    paid = (called * rows.bills).sum(axis=1).mean()
    assert paid < bought.after < 1.3 * paid


def test_a_promise_costs_what_its_calls_were_billed():
    frame = _hard_items_cost_more()
    for calls in ("cascade", "alone"):
        kept = promise(frame, 0.95, stages=["a", "b"], level=0.95, calls=calls)
        called = kept.answered_by == 1
        bills = frame["b:cost"].to_numpy()
        from_a = 1.0 if calls == "cascade" else kept.cost - (called * bills).mean()
        assert 0 < from_a <= 1
        assert kept.cost == pytest.approx((called * bills).mean() + from_a)
        assert kept.cost_of_last == pytest.approx(bills.mean() + (calls == "cascade"))


def test_a_stage_that_goes_on_answers_and_pays_as_elsewhere():
    """`a` gives no answer on a quarter of the items: with "go on" b answers them, and is paid."""
    frame = pl.DataFrame(
        {"a": ["x", "y", "x", None] * 50, "b": ["x", "y", "y", "y"] * 50,
         "truth": ["x", "y", "y", "y"] * 50}
    )  # fmt: skip
    given = {"stages": ["a", "b"], "costs": [1, 4], "mistake_cost": 20, "truth": "truth"}
    goes_on = analyze_items(read_rows(frame, LogSettings.of(**given)))
    always_a = goes_on.ways[2]
    assert (always_a.cost, always_a.error_rate, always_a.changed) == (2.0, 0.25, 0.25)
    mistake = analyze_items(read_rows(frame, LogSettings.of(**given, abstentions="mistake")))
    assert (mistake.ways[2].cost, mistake.ways[2].error_rate) == (1.0, 0.5)
