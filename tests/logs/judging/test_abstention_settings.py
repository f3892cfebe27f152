"""One meaning of "no answer" in analyze, its truth, replay and audit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.abstentions import answering_stages, answers, as_abstentions, calling_rates
from stopwise.checks import StopwiseError
from stopwise.logs import analyze

FRAME = pl.DataFrame(
    {
        "a": ["x", None, None, "y"] * 50,
        "b": ["x", "x", None, "x"] * 50,
        "c": ["x", "x", "y", "x"] * 50,
        "truth": ["x", "x", "y", "x"] * 50,
    }
)
GIVEN = {"stages": ["a", "b", "c"], "costs": [1, 2, 4], "mistake_cost": 10, "truth": "truth"}


def test_go_on():
    analysis = analyze(FRAME, abstentions="go on", **GIVEN)
    # a: right, goes on to b, goes on to c, wrong: one of four. Costs 1, 3, 7 and 1.
    assert analysis.truth.error_rates.tolist() == [0.25, 0.0, 0.0]
    assert analysis.verdict.costs.cumulative == pytest.approx((3.0, 4.0, 7.0))
    assert analysis.to_dict()["costs"] == [1, 2, 4]
    assert analysis.verdict.pair(0, 1).disagreement == 0.25
    assert analysis.verdict.pair(1, 2).disagreement == 0.0


def test_mistake():
    analysis = analyze(FRAME, abstentions="mistake", **GIVEN)
    assert analysis.truth.error_rates.tolist() == [0.75, 0.25, 0.0]
    assert analysis.verdict.costs.cumulative == (1, 3, 7)
    # Both silent is no difference, one silent is.
    assert analysis.verdict.pair(0, 1).disagreement == 0.5


def test_leave_out():
    analysis = analyze(FRAME, abstentions="leave out", **GIVEN)
    assert analysis.truth.error_rates.tolist() == [0.5, 0.0, 0.0]
    assert analysis.verdict.pair(0, 1).seen == 100


def test_the_default_is_what_cascades_do():
    assert analyze(FRAME, **GIVEN).truth.error_rates.tolist() == [0.25, 0.0, 0.0]


def test_labelling_functions_with_one_label_each():
    """Each says one label or nothing: a use, not an error."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["spam", "ham"], 400)
    frame = pl.DataFrame(
        {
            "has_link": ["spam" if t == "spam" and rng.random() < 0.6 else None for t in truth],
            "is_reply": ["ham" if t == "ham" and rng.random() < 0.7 else None for t in truth],
            "model": np.where(rng.random(400) < 0.9, truth, "ham"),
        }
    )
    analysis = analyze(
        frame, stages=["has_link", "is_reply", "model"], costs=[0, 0, 0.01], mistake_cost=1
    )
    assert analysis.counts.by_stage()["abstained"][0] > 200
    assert analysis.readings.headline_stage is not None


def test_labelling_functions_that_know_a_few_of_the_labels():
    """Functions for other topics have no label in common; a stage that gives all joins them."""
    rng = np.random.default_rng(1)
    truth = rng.choice(["art", "sport", "trade", "law"], 400)
    frame = pl.DataFrame(
        {
            "words": [t if t in ("art", "law") else None for t in truth],
            "links": [t if t in ("sport", "trade") else None for t in truth],
            "model": np.where(rng.random(400) < 0.9, truth, "law"),
        }
    )
    given = {"costs": [0, 0, 0.01], "mistake_cost": 1, "trailing_blanks": "abstained"}
    analysis = analyze(frame, stages=["words", "links", "model"], **given)
    assert analysis.readings.headline_stage is not None
    # Without a stage that shows that they mean the same, and where they never abstain: refused.
    upper = frame.with_columns(pl.col("model").str.to_uppercase())
    for other in (upper, frame.with_columns(pl.col("words", "links").fill_null("law"))):
        written = other.with_columns(links=pl.col("links").str.reverse())
        with pytest.raises(StopwiseError, match="never give the same label"):
            analyze(written, stages=["words", "links", "model"], **given)


@pytest.mark.parametrize("value", ["skip", None, 3])
def test_refusals(value):
    with pytest.raises(StopwiseError, match="'go on', 'mistake' or 'leave out'"):
        as_abstentions(value)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=4, max_size=4), min_size=1, max_size=8))
def test_going_on_finds_the_next_answer(rows):
    """Against a walk over the stages, item by item."""
    table = np.array(rows)
    who, said = answering_stages(table, "go on"), answers(table, "go on")
    rates = calling_rates(table, np.ones(len(rows)), "go on")
    for row, stages, outputs in zip(rows, who.tolist(), said.tolist(), strict=True):
        for stop in range(4):
            at = stop
            while at < 4 and row[at] == -1:
                at += 1
            expected = -1 if at == 4 else (-2 if row[at] == -2 else at)
            assert stages[stop] == expected
            assert outputs[stop] == (row[expected] if expected >= 0 else expected)
    assert (np.diff(rates, axis=0) >= -1e-12).all() or (table == -2).any()
