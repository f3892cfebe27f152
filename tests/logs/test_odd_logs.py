"""Logs and settings that are odd: what every command makes of them, or why it refuses them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stopwise.checks import StopwiseError
from stopwise.logs import analyze, audit, plan_audit, replay
from stopwise.logs.auditing.files import labels_in
from stopwise.logs.items.fitting import fit
from stopwise.logs.items.why import reasons
from stopwise.logs.reading.bills import Spread
from stopwise.logs.reading.costs import mean_bounds

STAGES = ["a", "b", "c"]
SETTINGS = {"stages": STAGES, "costs": [0, 1, 10], "mistake_cost": 20}


def _frame(truth: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "a": ["x", "y", "y", "y"] * 50,
            "b": ["x", "y", "x", "y"] * 50,
            "c": ["x", "y", "x", "y"] * 50,
            "truth": truth * 50,
        }
    )


def test_replay_reads_the_truth_whatever_its_case() -> None:
    same = replay(_frame(["x", "y", "x", "y"]), truth="truth", replications=2, **SETTINGS)
    folded = replay(_frame([" X", "Y", "X", "y"]), truth="truth", replications=2, **SETTINGS)
    assert [one.error_rate for one in folded.outcomes] == [one.error_rate for one in same.outcomes]
    assert folded.outcomes[1].error_rate == pytest.approx(0.25)


def test_a_truth_that_no_stage_ever_gives_is_refused_everywhere() -> None:
    foreign = _frame(["one", "two", "one", "two"])
    with pytest.raises(StopwiseError, match="no stage ever gives a label of the column 'truth'"):
        analyze(foreign, truth="truth", **SETTINGS)
    with pytest.raises(StopwiseError, match="no stage ever gives a label of the column 'truth'"):
        replay(foreign, truth="truth", replications=2, **SETTINGS)
    with pytest.raises(StopwiseError, match="no stage ever gives a label of the column 'truth'"):
        plan_audit(foreign, truth="truth", **SETTINGS)
    with pytest.raises(StopwiseError, match="no stage ever gives a label of the column 'truth'"):
        fit(foreign, truth="truth", labels=10, **SETTINGS)


def test_labels_below_minus_one_are_refused() -> None:
    with pytest.raises(StopwiseError, match="labels: got -3"):
        fit(_frame(["x", "y", "x", "y"]), truth="truth", labels=-3, **SETTINGS)


def test_every_command_knows_stages_called_alone_and_refuses_other_words(tmp_path: Path) -> None:
    frame = _frame(["x", "y", "x", "y"])
    path = tmp_path / "log.csv"
    frame.with_row_index("item").write_csv(path)
    for command in (analyze, replay, fit, audit):
        assert command(path, calls="alone", **SETTINGS) is not None
        with pytest.raises(StopwiseError, match="calls: got 'solo'"):
            command(path, calls="solo", **SETTINGS)
    assert analyze(frame, calls="cascade", **SETTINGS).rows == 200


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_free_abstention_is_a_call_that_cost_nothing(blank: str | None) -> None:
    # b is a cache: mostly it has nothing and is free, sometimes it answers, for 0 or for 10.
    frame = pl.DataFrame(
        {
            "a": ["x", "y"] * 200,
            "a:cost": [1.0] * 400,
            "b": ([blank] * 18 + ["x", "y"]) * 20,
            "b:cost": ([0.0] * 18 + [10.0, 0.0]) * 20,
            "c": ["x", "y"] * 200,
            "c:cost": [5.0] * 400,
        }
    )
    found = analyze(frame, stages=STAGES, mistake_cost=20)
    assert found.to_frame()["cost"].to_list() == pytest.approx([1, 0.5, 5])
    low, high = found.to_dict()["cost_intervals"][1]
    assert low < 0.5 < high < 3
    replayed = replay(frame, stages=STAGES, mistake_cost=20, replications=2)
    always_last = next(one for one in replayed.outcomes if one.name == "always last")
    assert always_last.cost == pytest.approx(6.5)


def test_stages_that_were_not_called_are_still_no_cost() -> None:
    # b is free on some items; blanks at the end with a bill of 0 are stages that were not called.
    frame = pl.DataFrame(
        {
            "a": ["x", "y"] * 200,
            "a:cost": [1.0] * 400,
            "b": ["x", "y", None, None] * 100,
            "b:cost": [4.0, 0.0, 0.0, 0.0] * 100,
            "c": ["x", "y", None, None] * 100,
            "c:cost": [5.0, 5.0, 0.0, 0.0] * 100,
        }
    )
    found = analyze(frame, stages=STAGES, mistake_cost=20)
    assert found.to_frame()["cost"].to_list() == pytest.approx([1, 2, 5])


def test_a_free_blank_of_a_long_log_is_a_call() -> None:
    rows = [
        (item, stage, None if stage == "b" and item % 2 else "xy"[item % 4 // 2], cost)
        for item in range(200)
        for stage, cost in (("a", 1.0), ("b", 0.0 if item % 2 else 4.0), ("c", 5.0))
    ]
    frame = pl.DataFrame(rows, schema=["item", "stage", "output", "cost"], orient="row")
    found = analyze(frame, stages=STAGES, item="item", mistake_cost=20)
    assert found.to_frame()["cost"].to_list() == pytest.approx([1, 2, 5])


@pytest.mark.parametrize("bills", [[1.0, float("inf")], ["1", "inf"], ["1", "-Infinity"]])
def test_infinite_bills_are_refused_by_name(bills: list[object]) -> None:
    frame = pl.DataFrame(
        {"a": ["x", "y"] * 20, "a:cost": bills * 20, "b": ["x", "y"] * 20, "b:cost": [2.0] * 40}
    )
    with pytest.raises(StopwiseError, match="costs of a: not all are numbers"):
        analyze(frame, stages=["a", "b"])


def test_bills_written_nan_are_blank() -> None:
    frame = pl.DataFrame(
        {"a": ["x", "y"] * 20, "a:cost": ["1", "nan"] * 20, "b": ["x"] * 40, "b:cost": [2.0] * 40}
    )
    assert analyze(frame, stages=["a", "b"]).to_frame()["cost"].to_list() == [1, 2]


def test_a_pandas_frame_with_a_column_twice_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["x", "y", "x"]] * 20, columns=["a", "b", "a"])
    with pytest.raises(StopwiseError, match="log: columns: got 'a', but need each name once"):
        analyze(frame, stages=["a", "b"], costs=[0, 1])


def test_the_sentence_on_two_stages_reads_well() -> None:
    frame = pl.DataFrame({"a": ["x", "y", "y", "y"] * 50, "b": ["x", "y", "x", "y"] * 50})
    sentence = analyze(frame, stages=["a", "b"], costs=[0, 1], mistake_cost=20).sentence
    assert "with two stages nothing can be estimated" in sentence


def test_a_rule_says_where_a_stage_gives_no_answer() -> None:
    frame = pl.DataFrame(
        {
            "a": ["x", None, "y", None] * 100,
            "b": ["x", "y", "y", "x"] * 100,
            "c": ["x", "y", "y", "x"] * 100,
        }
    )
    words = [reason.words for reason in reasons(fit(frame, **SETTINGS))]
    assert "go on after a when it gives no answer" in words
    assert "stop after a when it answers" in words
    assert "stop after b when a gave no answer" in words


def test_a_rule_shows_escape_codes_and_does_not_run_them() -> None:
    frame = pl.DataFrame({"small": ["keep", "\x1b[31mred"] * 200, "large": ["keep"] * 400})
    rule = fit(frame, stages=["small", "large"], costs=[1, 4], mistake_cost=20)
    words = [reason.words for reason in reasons(rule)]
    assert "go on after small when it says \\x1b[31mred" in words
    assert not any("\x1b" in word for word in words)


@pytest.mark.parametrize("meaning", ["go on", "mistake", "leave out"])
def test_the_warning_on_abstentions_is_true_whatever_they_mean(meaning: str) -> None:
    frame = pl.DataFrame({"a": ["x", None, "y", "y"] * 50, "b": ["x", "y", "x", "y"] * 50})
    found = analyze(frame, stages=["a", "b"], costs=[0, 1], abstentions=meaning)
    text = next(one.message for one in found.warnings if one.code == "abstentions")
    assert "gave no answer on 50 of 200 items" in text
    assert "--abstentions" in text
    assert "left out of its disagreement" not in text


def test_bills_too_large_for_their_bounds_are_refused() -> None:
    """The sum was a number, but the upper bound of the mean was none, which JSON has not."""
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["x", "x"]}).with_columns(
        pl.Series("a:cost", [1.0, 1.0]), pl.Series("b:cost", [1e300, 1e305])
    )
    with pytest.raises(StopwiseError, match=r"costs of b: .* too large"):
        analyze(frame, stages=["a", "b"])


def test_a_label_that_begins_with_an_apostrophe_is_taken_as_it_is(tmp_path: Path) -> None:
    said = ["'tis", "=1+1"] * 40
    frame = pl.DataFrame({"a": said, "b": said[1:] + said[:1]})
    plan = plan_audit(frame, stages=["a", "b"], costs=[1, 2], mistake_cost=20)
    labels = tmp_path / "labels.csv"
    labels.write_text("item,label\n1,'tis\n2,'=1+1\n")
    assert labels_in(labels, plan.rows) == {"1": "'tis", "2": "=1+1"}


def test_the_smallest_bills_there_are_end_the_search_for_their_bounds() -> None:
    """A millionth of such a number is 0, and halving never came below that."""
    low, high = mean_bounds(Spread(np.array([1e-320]), np.array([60.0])), 0.001)
    assert 0 < low <= 1e-320 <= high
