from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import polars as pl
import pytest

from stopwise import Costs, Problem
from stopwise.logs import analyze, example_log, example_settings
from stopwise.logs.judging.what_if import what_ifs

GIVEN = {"stages": ["small", "medium", "large"], "costs": [0.01, 0.1, 0.3], "mistake_cost": 1}
KEYS = {
    "stages", "costs", "mistake_cost", "rows", "recommended_stage", "probability_by_stage",
    "pairs", "worst_case_regret", "minimax_stage", "savings_vs_last", "answers_changed_at_most",
    "warnings", "sweep",
}  # fmt: skip


def codes_of(analysis):
    return {warning.code for warning in analysis.warnings}


def stages(rng, rows, errors, labels=2, truth=None):
    truth = rng.integers(0, labels, rows) if truth is None else truth
    return {
        f"s{at}": np.where(rng.random(rows) < error, (truth + 1) % labels, truth)
        for at, error in enumerate(errors)
    }


def test_json_has_what_is_promised(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    answer = cli("analyze", tmp_path / "log.csv", "--stages", "small,medium,large", "--costs",
                 "0.01,0.1,0.3", "--mistake-cost", 1, "--truth", "truth", "--json")  # fmt: skip
    form = json.loads(answer.out)
    assert form.keys() >= KEYS
    assert form["pairs"][0].keys() >= {
        "shallow", "deep", "seen", "disagreement", "low", "high", "threshold", "verdict"
    }  # fmt: skip
    assert form["sweep"][0].keys() >= {"from", "to", "stage", "certain"}
    assert form["sweep"][-1]["to"] is None
    assert form["truth"].keys() >= {
        "error_rates", "optimal_stage", "weak_dominance", "regret_of_recommended"
    }  # fmt: skip
    assert sum(form["probability_by_stage"]) == pytest.approx(1)
    share = float((log["small"] != log["medium"]).mean())
    assert form["pairs"][0]["disagreement"] == pytest.approx(share)
    assert form["savings_vs_last"] == pytest.approx(
        0.41 - form["cumulative_costs"][form["stages"].index(form["recommended_stage"])]
    )


def test_costs_are_the_same_bits_from_a_log_and_from_numbers():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(stages(rng, 50, [0.3, 0.2, 0.1, 0.1]))
    own = [0.02, 25.0, 41.0, 60.0]
    found = analyze(frame, stages=frame.columns, costs=own, mistake_cost=3).to_dict()
    assert found["cumulative_costs"] == list(Costs.from_stages(own).cumulative)


def test_truth_never_reaches_the_verdict(log):
    """Whatever the column of truths holds, all but the score is the same."""
    plain = analyze(log, **GIVEN).to_dict()
    rng = np.random.default_rng(0)
    for _ in range(3):
        other = log.with_columns(pl.Series("truth", rng.permutation(log["truth"].to_numpy())))
        scored = analyze(other, **GIVEN, truth="truth").to_dict()
        del scored["truth"]
        assert scored == plain


def test_scores_agree_with_the_problem(log):
    costs = Costs.from_stages(GIVEN["costs"])
    predictions = log.select("small", "medium", "large").to_numpy()
    problem = Problem.from_predictions(predictions, log["truth"].to_numpy(), costs)
    truth = analyze(log, **GIVEN, truth="truth").truth
    assert truth is not None
    assert truth.error_rates == pytest.approx(problem.error_rates)
    assert truth.optimal_stage == problem.optimal_stage
    assert truth.weak_dominance == problem.weak_dominance
    assert truth.margin == pytest.approx(problem.margin)
    assert truth.regret_by_stage == pytest.approx(problem.gaps)


def test_a_clean_log_has_no_warnings(log):
    assert codes_of(analyze(log, **GIVEN)) <= {"outlier_stage"}


def test_an_expensive_stage_that_agrees_with_nobody_is_named():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(stages(rng, 2000, [0.05, 0.04, 0.3]))
    analysis = analyze(frame, stages=["s0", "s1", "s2"], costs=[0.01, 0.02, 0.3])
    outliers = [w.message for w in analysis.warnings if w.code == "outlier_stage"]
    assert len(outliers) == 1
    assert outliers[0].startswith("s2 costs more than s1")
    assert "most expensive" in outliers[0]


def test_no_outlier_where_all_are_alike():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(stages(rng, 5000, [0.2, 0.2, 0.2, 0.2]))
    analysis = analyze(frame, stages=[f"s{k}" for k in range(4)], costs=[0.1] * 4, mistake_cost=1)
    assert "outlier_stage" not in codes_of(analysis)


def test_sorted_and_drifting_logs_are_told():
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1], 1500)
    frame = pl.DataFrame(stages(rng, 3000, [0.1, 0.05], truth=truth))
    given = {"stages": ["s0", "s1"], "costs": [0.1, 0.2], "mistake_cost": 1}
    assert "sorted_log" in codes_of(analyze(frame, **given))
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    assert not {"sorted_log", "drift"} & codes_of(analyze(shuffled, **given))
    early, late = stages(rng, 1500, [0.05, 0.05]), stages(rng, 1500, [0.35, 0.05])
    drifting = pl.DataFrame({k: np.concatenate([early[k], late[k]]) for k in early})
    assert "drift" in codes_of(analyze(drifting, **given))
    assert "sorted_log" not in codes_of(analyze(drifting, **given))


def test_few_rows_and_units_and_mistake_cost_are_told():
    frame = pl.DataFrame({"a": [0, 1] * 20, "b": [0, 1] * 19 + [1, 1]})
    codes = codes_of(analyze(frame, stages=["a", "b"], costs=[0.0, 0.1]))
    assert {"few_rows", "more_rows_would_tell", "mistake_cost_assumed"} <= codes
    codes = codes_of(analyze(frame, stages=["a", "b"], costs=[0.0, 5], mistake_cost=1))
    assert "costs_more_than_a_mistake" in codes
    assert "mistake_cost_assumed" not in codes


def test_selective_logs_are_told_and_nothing_is_certain_from_them():
    """Production went deeper only where the first two agreed: the seen pairs look too good."""
    rng = np.random.default_rng(4)
    columns = stages(rng, 6000, [0.2, 0.15, 0.1])
    agree = columns["s0"] == columns["s1"]
    deep = [int(v) if keep else None for v, keep in zip(columns["s2"], agree, strict=True)]
    frame = pl.DataFrame({**columns, "s2": deep})
    given = {"stages": ["s0", "s1", "s2"], "costs": [0.01, 0.01, 0.15], "mistake_cost": 1}
    full = analyze(pl.DataFrame(columns), **given)
    analysis = analyze(frame, **given)
    assert "selective_log" in codes_of(analysis)
    pair, true = analysis.verdict.pair(1, 2), full.verdict.pair(1, 2)
    assert pair.high < true.low  # misled by the selection
    assert pair.may_differ_high > true.disagreement  # but not what "certain" rests on
    assert not pair.certain
    # The same gaps at random are harmless.
    at_random = rng.random(6000) < agree.mean()
    deep = [int(v) if keep else None for v, keep in zip(columns["s2"], at_random, strict=True)]
    codes = codes_of(analyze(pl.DataFrame({**columns, "s2": deep}), **given))
    assert "selective_log" not in codes
    assert "partial_log" in codes


def test_what_ifs_equal_an_analysis_of_the_other_cascade(log):
    analysis = analyze(log, **GIVEN)
    for change in what_ifs(analysis.verdict):
        names = [GIVEN["stages"][s] for s in change.stages]
        own = [GIVEN["costs"][s] for s in change.stages]
        other = analyze(log, stages=names, costs=own, mistake_cost=1).verdict
        assert GIVEN["stages"][change.recommended] == names[other.recommended]
        assert change.cost == pytest.approx(other.costs.cumulative[other.recommended])
        worst = other.worst_case_regret[other.recommended]
        assert change.worst_case_regret == pytest.approx(worst)


def test_report_stands_alone(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    answer = cli("analyze", tmp_path / "log.csv", "--stages", "small,medium,large", "--costs",
                 "0.01,0.1,0.3", "--truth", "truth", "--segment", "lang", "--report",
                 tmp_path / "report.html")  # fmt: skip
    assert answer.status == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|src=", page)
    assert str(tmp_path) not in page
    pictures = re.findall(r"<svg.*?</svg>", page, flags=re.S)
    assert len(pictures) == 7  # frontier, strip, two ladders, matrix, two over time
    for picture in pictures:
        ElementTree.fromstring(picture)
        assert not re.search(r"nan|inf", re.sub(r"<title>.*?</title>|>[^<]*<", "", picture))


def test_names_are_escaped(tmp_path):
    frame = pl.DataFrame({"<b>a</b>": [0, 1] * 50, 'x"&': [0, 1] * 49 + [1, 1]})
    analysis = analyze(frame, stages=["<b>a</b>", 'x"&'], costs=[0.1, 0.2], mistake_cost=1)
    analysis.write_report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>a</b>" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page


def test_example_log_is_that_of_scikit_learn(cli):
    from sklearn.datasets import load_digits

    table = pl.read_csv(example_log())
    assert table["truth"].to_list() == load_digits().target.tolist()
    errors = [float((table[s] != table["truth"]).mean()) for s in example_settings()["stages"]]
    assert errors == sorted(errors, reverse=True)
    answer = cli("analyze", "--example", "--truth", "truth")
    assert answer.status == 0
    assert answer.out.startswith("Stop at linear: whatever the truth")


def test_sentence_for_the_last_stage():
    frame = pl.DataFrame({"a": [0, 1] * 50, "b": [1, 1] * 50})
    analysis = analyze(frame, stages=["a", "b"], costs=[0.1, 0.1], mistake_cost=1)
    assert analysis.sentence.startswith("Go on to b")
    assert analysis.verdict.answers_changed_at_most == 0
    assert not analysis.verdict.nothing_deeper_pays
