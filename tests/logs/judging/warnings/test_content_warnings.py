"""Warnings about what is written in a log, and about stages that are worse than cheaper ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from stopwise.logs import analyze
from stopwise.logs.judging.warnings.all_warnings import outlier_stages

GIVEN = {"stages": ["a", "b"], "costs": [1, 2], "mistake_cost": 10}


def codes(analysis):
    return {warning.code: warning.message for warning in analysis.warnings}


def test_answers_that_look_like_none():
    frame = pl.DataFrame({"a": ["x", "None", "x", "y"] * 20, "b": ["x", "y", "N/A", "y"] * 20})
    found = codes(analyze(frame, **GIVEN))
    assert "20 items" in found["suspicious_answers"]
    plain = pl.DataFrame(
        {"a": ["x", "north", "x", "y"] * 20, "b": ["x", "y", "error-free", "y"] * 20}
    )
    assert "suspicious_answers" not in codes(analyze(plain.with_columns(b=pl.col("a")), **GIVEN))


@pytest.mark.parametrize(
    ("label", "odd"),
    [("#N/A", True), ("<NA>", True), ("n.a.", True), ("[none]", True), ("No answer", True),
     ("ERROR_429", True), ("RateLimitError: wait", True), ("timed out after 30 s", True),
     ("#VALUE!", True), ("---", True), ("terror", False), ("natural", False), ("Errors", False),
     ("nob", False), ("refuse-bin", True), ("errorless", False), ("Nairobi", False)],
)  # fmt: skip
def test_which_answers_look_like_none(label, odd):
    frame = pl.DataFrame({"a": ["x", label, "x", "y"] * 20, "b": ["x", "y", label, "y"] * 20})
    assert ("suspicious_answers" in codes(analyze(frame, **GIVEN))) == odd


def test_answers_without_a_bill_are_counted():
    frame = pl.DataFrame(
        {
            "a": ["x"] * 300, "a:cost": [1.0] * 300,
            "b": ["x", "y", None] * 100, "b:cost": [2.0, None, None] * 100,
        }
    )  # fmt: skip
    found = analyze(frame, stages=["a", "b"], mistake_cost=20)
    (warning,) = [one for one in found.warnings if one.code == "missing_bills"]
    assert "b has no cost on 100 of the 200 items that it answered" in warning.message
    free = frame.with_columns(
        pl.when(pl.col("b") == "y").then(0.0).otherwise("b:cost").alias("b:cost")
    )
    found = analyze(free, stages=["a", "b"], mistake_cost=20)
    assert "missing_bills" not in {one.code for one in found.warnings}


def test_falling_costs():
    frame = pl.DataFrame({"a": ["x", "y"] * 40, "b": ["x", "y"] * 40})
    found = codes(analyze(frame, stages=["a", "b"], costs=[2, 1]))
    assert "b costs less than a" in found["costs_fall"]


def test_repeated_items_and_conflicting_truths():
    frame = pl.DataFrame(
        {"item": ["i1", "i1", "i2"] * 20, "a": ["x", "y", "x"] * 20, "b": ["x", "y", "x"] * 20,
         "truth": ["x", "y", "x"] * 20}
    )  # fmt: skip
    found = codes(analyze(frame, truth="truth", **GIVEN))
    assert "58 rows repeat an item" in found["repeated_items"]
    assert "1 item has more than one truth" in found["conflicting_truths"]


def test_conflicting_truths_of_a_long_log():
    frame = pl.DataFrame(
        {"item": ["i1", "i1", "i2", "i2"], "stage": ["a", "b"] * 2, "output": ["x", "x", "x", "y"],
         "truth": ["x", "y", "x", "x"]}
    )  # fmt: skip
    found = codes(analyze(frame, truth="truth", **GIVEN))
    assert "1 item has more than one truth" in found["conflicting_truths"]
    agreed = frame.with_columns(truth=pl.lit("x"))
    assert "conflicting_truths" not in codes(analyze(agreed, truth="truth", **GIVEN))


def test_repeated_columns(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a,b,b\n" + "x,x,y\ny,y,x\n" * 20)
    assert "more than once" in codes(analyze(path, **GIVEN))["repeated_columns"]
    path.write_text("a,b,a:cost,b:cost,a:cost,t,t,note,note\n" + "x,x,1,2,9,x,y,n,m\n" * 40)
    found = codes(analyze(path, stages=["a", "b"], truth="t"))
    assert "the header has a:cost, t more than once" in found["repeated_columns"]
    path.write_text("item,stage,output,output\n" + "".join(f"{n},a,x,y\n{n},b,x,y\n" for n in "12"))
    assert "output more than once" in codes(analyze(path, **GIVEN))["repeated_columns"]


def test_truth_in_another_case_is_folded_and_said():
    frame = pl.DataFrame(
        {"a": ["positive", "negative"] * 30, "b": ["positive", "positive"] * 30,
         "truth": ["Positive", "NEGATIVE "] * 29 + ["neutral", "Positive"]}
    )  # fmt: skip
    analysis = analyze(frame, truth="truth", **GIVEN)
    assert analysis.truth.error_rates[0] == 2 / 60
    found = codes(analysis)
    assert "'Positive' as 'positive'" in found["truth_labels_folded"]
    assert "'neutral'" in found["truth_labels_unknown"]


def test_control_characters_are_shown_not_run(tmp_path, cli):
    path = tmp_path / "log.csv"
    path.write_text("\x1b[2Ja,b\n" + "x\x1b[31m,y\nNone,y\n" * 30 + "y,x\x1b[31m\n" * 5)
    answer = cli("analyze", path, "--stages", "\x1b[2Ja,b", "--costs", "1,2")
    assert answer.status == 0, answer.err
    assert "\x1b[2J" not in answer.out
    assert "\x1b[31m" not in answer.out
    assert "\\x1b[2Ja" in answer.out


@pytest.mark.full_estimate
def test_stages_worse_than_a_cheaper_one_are_named():
    """40 cascades of four stages with hard items: most that are clearly worse are named.

    Clearly: by 2 points and 3 standard errors. Of the warnings, at most one in ten names a stage
    that is no worse at all.
    """
    rng = np.random.default_rng(4)
    hits = misses = false = warned = 0
    names = ["a", "b", "c", "d"]
    for _ in range(40):
        rows, kinds = 1500, int(rng.integers(2, 5))
        truth = rng.integers(0, kinds, rows)
        hard = rng.random(rows) < 0.15
        errors = np.clip(np.cumsum([0.25, *rng.normal(-0.03, 0.08, 3)]), 0.03, 0.5)
        columns = {}
        for name, error in zip(names, errors, strict=True):
            chance = np.where(hard, np.minimum(2 * error, 0.6), error)
            wrong = (truth + rng.integers(1, kinds, rows)) % kinds
            columns[name] = np.where(rng.random(rows) < chance, wrong, truth)
        analysis = analyze(pl.DataFrame(columns), stages=names, costs=[1, 2, 4, 8], mistake_cost=50)
        named = {w.stage for w in analysis.warnings if w.code == "outlier_stage"}
        mistakes = {name: (columns[name] != truth).astype(float) for name in names}
        for j in range(1, 4):
            gaps = [mistakes[names[j]] - mistakes[names[i]] for i in range(j)]
            clearly = any(g.mean() > max(0.02, 3 * g.std() / np.sqrt(rows)) for g in gaps)
            warned += j in named
            hits += clearly and j in named
            misses += clearly and j not in named
            false += j in named and all(gap.mean() <= 0 for gap in gaps)
    assert hits / (hits + misses) >= 0.8
    assert false <= 0.1 * warned


@pytest.mark.full_estimate
def test_where_a_stage_is_suspected_deeper_ones_are_believed_less():
    rng, names, rows = np.random.default_rng(0), ["a", "b", "c", "d"], 1500
    truth = rng.integers(0, 3, rows)
    columns = {
        name: np.where(rng.random(rows) < error, (truth + rng.integers(1, 3, rows)) % 3, truth)
        for name, error in zip(names, (0.2, 0.08, 0.12, 0.12), strict=True)
    }
    analysis = analyze(pl.DataFrame(columns), stages=names, costs=[1, 2, 4, 8], mistake_cost=50)
    # By the estimate alone the gap is smaller than chance, though d errs 4 points more than b.
    rates, suspected = analysis.readings.error_rates, analysis.readings.suspected_error_rates
    assert rates[3] - rates[1] < 0.01 < suspected[3] - suspected[1]
    assert {w.stage for w in analysis.warnings if w.code == "outlier_stage"} >= {2, 3}


def test_a_suspicion_that_the_estimate_does_not_share_states_no_figures_beside_it():
    rng, names = np.random.default_rng(1), ["a", "b", "c"]
    outputs = {name: rng.integers(0, 2, 400) for name in names}
    analysis = analyze(pl.DataFrame(outputs), stages=names, costs=[1, 2, 4], mistake_cost=50)
    equal, suspected = np.full(3, 0.2), np.array([0.2, 0.2, 0.4])
    for estimated, figures in ((equal, False), (np.array([0.2, 0.2, 0.3]), True)):
        readings = replace(
            analysis.readings, error_rates=estimated, suspected_error_rates=suspected, why_not=None
        )
        (warning,) = outlier_stages(analysis.verdict, readings)
        assert warning.stage == 2
        assert ("%" in warning.message) == figures
        assert ("30.0 % of items against 20.0 %" in warning.message) == figures
