"""Fewer labels than the confidence sequence, and still right in more than 99 %."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stopwise.checks import StopwiseError
from stopwise.logs import audit, plan_audit, simulate_audit
from stopwise.logs.auditing.files import inert
from stopwise.logs.auditing.settling import first_settled

STAGES = ["a", "b", "c"]
FLAGS = ["--stages", "a,b,c", "--costs", "0,0.01,0.02", "--mistake-cost", "1"]


def cascade(seed, errors=(0.3, 0.2, 0.12), rows=1500, kinds=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, kinds, rows)
    columns = {"item": [f"i{at}" for at in range(rows)]}
    for name, error in zip(STAGES, errors, strict=True):
        wrong = (truth + rng.integers(1, kinds, rows)) % kinds
        codes = np.where(rng.random(rows) < error, wrong, truth)
        columns[name] = [f"label {code}" for code in codes]
    columns["truth"] = [f"label {code}" for code in truth]
    return pl.DataFrame(columns)


def plan(seed, **more):
    errors = np.random.default_rng(seed).uniform(0.05, 0.4, 3)
    return plan_audit(
        cascade(seed, errors), stages=STAGES, costs=[0.0, 0.02, 0.04], mistake_cost=1,
        truth="truth", **more,
    )  # fmt: skip


def test_fewer_labels_and_still_right():
    """10 cascades, 40 audits each: far fewer labels, less than 1 % wrong; the seeds are fixed."""
    wrong, ratios = 0, []
    for seed in range(10):
        quick = simulate_audit(plan(seed), replications=40)
        strict = simulate_audit(plan(seed, strict=True), replications=8)
        wrong += round((1 - quick.right) * 40)
        ratios.append((np.median(quick.audit_labels) + 1) / (np.median(strict.audit_labels) + 1))
        assert strict.right == 1.0
    assert wrong <= 4
    assert np.exp(np.mean(np.log(ratios))) < 0.75
    assert np.median(ratios) < 0.75


def test_posterior_by_hand():
    """Ten labels, all +1, nothing predicted: Student's t with 14 degrees of freedom."""
    n, size = 10, 10_000
    spread = (n * 0 + 4 * 0.8) / (n + 4)
    error = np.sqrt(spread / n * (1 - n / size))
    claim = 1 - stats.t.isf(0.01 / 3, 14) * error
    assert first_settled([1] * 10, [0] * 10, size, claim - 1e-6, -2, 0.01) == (10, 1)
    assert first_settled([1] * 10, [0] * 10, size, claim + 1e-6, -2, 0.01) is None


def test_a_good_prediction_saves_labels():
    rng = np.random.default_rng(0)
    values = rng.choice([-1.0, 1.0], 2000, p=[0.4, 0.6])
    plain = first_settled(values, np.zeros(2000), 2000, 0.0, 0.0, 0.01)
    knowing = first_settled(values, 0.9 * (values - values.mean()), 2000, 0.0, 0.0, 0.01)
    assert knowing[1] == plain[1] == 1
    assert knowing[0] < plain[0] / 2


def test_best_guess_at_any_number_of_labels():
    log = cascade(1)
    given = {"stages": STAGES, "costs": [0.0, 0.02, 0.04], "mistake_cost": 1}
    found = audit(log.drop("truth"), {}, **given)
    assert found.best is None
    assert found.stages[found.guess] == "c"
    excess = simulate_audit(plan(3), replications=50).guess_excess
    assert excess[2] <= 0.05
    assert excess[3] <= 0.025


def two_that_err_alike():
    """A log whose first and last stage share their errors, so that the first looks right."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 2000)
    wrong = (truth + 1) % 3
    shared, own = rng.random(2000) < 0.25, rng.random(2000) < 0.08
    a = np.where(shared, wrong, truth)
    c = np.where(rng.random(2000) < 0.3, (a + 1) % 3, a)
    return pl.DataFrame({"a": a, "b": np.where(own, wrong, truth), "c": c, "truth": truth})


def test_simulated_guesses_choose_among_the_stages_that_are_left():
    """Labels go to the stages still in question, and the guess after the last is what is left."""
    given = {"stages": STAGES, "costs": [0.0, 0.01, 0.02], "mistake_cost": 1}
    settled = simulate_audit(plan_audit(two_that_err_alike(), truth="truth", **given))
    assert settled.right == 1
    assert settled.guess_excess[0] > 0.5  # without a label it is wrong
    done = settled.audit_labels <= 100
    assert done.mean() > 0.9
    assert settled.guess_excess[3] <= settled.guess_excess[0] * (1 - done.mean())


def test_thirty_labels_correct_an_estimate_that_is_wrong():
    given = {"stages": STAGES, "costs": [0.0, 0.01, 0.02], "mistake_cost": 1}
    found = simulate_audit(plan_audit(two_that_err_alike(), truth="truth", **given))
    assert found.guess_excess[2] < found.guess_excess[0] / 5


def test_all_items_count_when_stages_go_on():
    """A stage that is silent on three quarters cannot win by being silent."""
    rng = np.random.default_rng(2)
    log = cascade(2, errors=(0.02, 0.15, 0.1))
    silent = rng.random(log.height) < 0.75
    log = log.with_columns(a=pl.when(pl.Series(silent)).then(None).otherwise(pl.col("a")))
    given = {"stages": STAGES, "costs": [0.01, 0.01, 0.01], "mistake_cost": 1, "truth": "truth"}
    for meaning, counted in (("go on", log.height), ("mistake", log.height), ("leave out", None)):
        made = plan_audit(log, **given, abstentions=meaning)
        expected = int((~silent).sum()) if counted is None else counted
        assert len(made.rows.items) == expected
    mistake = simulate_audit(plan_audit(log, **given, abstentions="mistake"), replications=5)
    assert mistake.optimal_stage == 2


def test_a_tolerance_never_ends_in_a_dead_end():
    """Stages that beat each other by less than the tolerance: any of them will do."""
    log = cascade(3, errors=(0.2, 0.2, 0.2), rows=300)
    truth = dict(zip(log["item"], log["truth"], strict=True))
    given = {"stages": STAGES, "costs": [0.0, 0.001, 0.002], "mistake_cost": 1}
    for strict in (False, True):
        labels: dict[Any, Any] = {}
        for _ in range(60):
            found = audit(
                log.drop("truth"), labels, tolerance=0.05, strict=strict, batch=20, **given
            )
            if found.settled:
                break
            assert found.to_label
            labels.update({item: truth[item] for item in found.to_label})
        assert found.settled


def label(path, truth, change=str):
    rows = pl.read_csv(path, infer_schema=False)
    items = [item.removeprefix("'") for item in rows["item"]]
    rows.with_columns(pl.Series("label", [change(truth[item]) for item in items])).write_csv(path)


def test_a_log_that_has_grown(tmp_path, cli):
    log = cascade(4)
    truth = dict(zip(log["item"], log["truth"], strict=True))
    path = tmp_path / "log.csv"
    log.head(800).drop("truth").write_csv(path)
    assert cli("audit", path, *FLAGS).status == 0
    label(tmp_path / "log.to-label.csv", truth)
    log.drop("truth").write_csv(path)
    answer = cli("audit", path, *FLAGS, "--json")
    assert answer.status == 0, answer.err
    form = json.loads(answer.out)
    assert form["labels"] == 20
    assert "1,500 items" in form["notes"][0]
    changed = log.drop("truth").with_columns(a=pl.lit("label 0"))
    changed.write_csv(path)
    refused = cli("audit", path, *FLAGS)
    assert refused.status == 2
    assert "has other outputs" in refused.err


def test_a_pattern_of_files_does_not_take_in_its_own_labels(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = cascade(5).drop("truth")
    log.head(700).write_csv("one.csv")
    log.tail(800).write_csv("two.csv")
    first = cli("audit", "*.csv", *FLAGS, "--json")
    again = cli("audit", "*.csv", *FLAGS, "--json")
    assert json.loads(first.out)["items"] == json.loads(again.out)["items"] == 1500


def test_labels_in_another_case_are_folded_and_others_refused(tmp_path, cli):
    log = cascade(6)
    truth = dict(zip(log["item"], log["truth"], strict=True))
    path = tmp_path / "log.csv"
    log.drop("truth").write_csv(path)
    cli("audit", path, *FLAGS)
    file = tmp_path / "log.to-label.csv"
    label(file, truth, change=lambda text: f" {text.upper()} ")
    form = json.loads(cli("audit", path, *FLAGS, "--json").out)
    assert form["labels"] == 20
    assert any(note.startswith("read 'LABEL") for note in form["notes"])
    folded = [pair["error_difference_low"] for pair in form["pairs"]]
    exact = audit(log.drop("truth"), {i: truth[i] for i in json.loads(
        (tmp_path / "log.audit.json").read_text())["labels"]}, stages=STAGES,
        costs=[0, 0.01, 0.02], mistake_cost=1)  # fmt: skip
    assert folded == pytest.approx([pair.low for pair in exact.pairs])
    with pytest.raises(StopwiseError, match="no stage ever gives 'good'"):
        audit(log.drop("truth"), dict.fromkeys(exact.to_label[:3], "good"), stages=STAGES,
              costs=[0, 0.01, 0.02])  # fmt: skip


def test_spreadsheets_run_nothing(tmp_path, cli):
    log = cascade(7, rows=400).with_columns(
        item=pl.format("=cmd|{}", pl.col("item")), note=pl.lit("@SUM(1)")
    )
    truth = dict(zip(log["item"], log["truth"], strict=True))
    path = tmp_path / "log.csv"
    log.drop("truth").write_csv(path)
    cli("audit", path, *FLAGS, "--show", "note", "--page")
    file = tmp_path / "log.to-label.csv"
    for line in file.read_text().splitlines()[1:]:
        assert line.startswith("'=cmd|")
        assert ",'@SUM(1)," in line
    label(file, truth)
    assert json.loads(cli("audit", path, *FLAGS, "--show", "note", "--json").out)["labels"] == 20
    assert inert("+1.5") == "+1.5"


def test_the_page_shows_text_and_runs_none_of_it(tmp_path, cli):
    log = cascade(8, rows=400).with_columns(note=pl.lit("</script><script>alert(1)</script>"))
    path = tmp_path / "log.csv"
    log.drop("truth").write_csv(path)
    cli("audit", path, *FLAGS, "--show", "note", "--page")
    page = (tmp_path / "log.to-label.html").read_text()
    assert page.count("<script") == page.count("</script>") == 2
    assert "alert(1)" in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert len(data["items"]) == 20
    assert data["items"][0]["text"] == "</script><script>alert(1)</script>"
    assert data["file"] == "log.to-label.csv"
    assert "http" not in page
