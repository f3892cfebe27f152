from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import stopwise as sw
from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.cli import build_app
from stopwise.costs import Costs
from stopwise.logs import analyze
from stopwise.logs.items import words
from stopwise.logs.items.analysis import analyze_items
from stopwise.logs.items.fitting import fit, write_rule
from stopwise.logs.items.gains import gains_of
from stopwise.logs.items.held_out import hold_out, mean_lower_bound
from stopwise.logs.items.why import reasons
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.settings import LogSettings
from stopwise.policies.per_item.any_rule import read_rule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.observations import Observations

GIVEN = {"stages": ["s", "m", "l"], "costs": [0.1, 1, 4], "mistake_cost": 8, "truth": "truth"}


def log_of(rows: int = 3000, seed: int = 4, labels: int = 3) -> pl.DataFrame:
    data, truth = made_up(rows, (0.2, 1.0, 2.0), seed=seed, labels=labels)
    assert data.confidences is not None
    columns: dict[str, object] = {"id": range(rows)}
    for at, name in enumerate(("s", "m", "l")):
        columns[name] = [data.labels[code] for code in data.codes[:, at]]
        columns[f"{name}:confidence"] = data.confidences[:, at]
    return pl.DataFrame({**columns, "truth": [data.labels[code] for code in truth]})


def found_of(frame: pl.DataFrame, **more: object):
    return analyze_items(read_rows(frame, LogSettings.of(**{**GIVEN, **more})))


def test_everything_that_is_asked_of_the_analysis_is_there() -> None:
    found = found_of(log_of())
    form = json.loads(json.dumps(found.to_dict()))
    assert {way["name"] for way in form["ways"]} >= {"always s", "always m", "always l"}
    assert form["ways"][1]["changed"] == 0
    assert form["calibration_error"] < 0.05
    assert sum(form["per_item"]["stage_share"]) == pytest.approx(1)
    assert form["per_item"]["total"] is not None
    assert all(
        reason["words"].startswith(("stop after", "go on after")) for reason in form["reasons"]
    )
    assert len(form["frontier"]["per_item"]) == len(form["frontier"]["mistake_costs"])
    assert len(words.sentences(found)) >= 5


def test_shares_of_reasons_add_up_to_all_items_after_the_first_stage() -> None:
    rule = fit(log_of(), **GIVEN)
    first = [reason.share for reason in reasons(rule, most=1000) if reason.stage == 0]
    assert sum(first) == pytest.approx(1)


def test_rows_are_scored_by_a_rule_that_has_not_seen_them() -> None:
    """Confidences that are noise must not look as if they helped."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (600, 2))
    rows = Observations(("a", "b"), codes, rng.random((600, 2)))
    held = hold_out(rows, ("a", "b"), Costs.from_stages([1, 1], 4), trust=1.0)
    changed = (codes[np.arange(600), held.depths] != codes[:, 1]).mean()
    own = 1 + (held.depths == 1).mean() + 4 * changed
    assert own > 1.9  # always last costs 2; nothing per item can be gained here


@pytest.mark.parametrize("seed", range(3))
def test_certified_is_below_what_is_saved_whatever_the_truth(seed: int) -> None:
    data, _ = made_up(4000, (0.2, 1.0, 2.0), seed=seed)
    costs = Costs.from_stages([0.1, 1, 4], 8)
    held = hold_out(data, ("s", "m", "l"), costs)
    answers = data.codes[np.arange(4000), held.depths]
    saved = costs.cumulative[-1] - np.asarray(costs.cumulative)[held.depths]
    assert held.certified < (saved - 8 * (answers != data.codes[:, -1])).mean()


def test_the_lower_bound_is_rarely_wrong() -> None:
    """At a tail of 5 %: 4,000 samples; more than 7 % wrong has a chance below 1e-6."""
    rng = np.random.default_rng(1)
    means = rng.random(4000)
    wrong = sum(
        mean_lower_bound((rng.random(60) < mean).astype(float), 1.0, 0.05) > mean for mean in means
    )
    assert wrong <= 0.07 * 4000


def test_a_gain_and_its_interval_by_hand() -> None:
    """Ten items, a second call for 2, a mistake for 20, trust .7: two items differ."""
    codes = np.array([[0, 0]] * 8 + [[1, 0]] * 2)
    rule = Rule.fit(
        ("s", "l"), Observations(("a", "b"), codes), Costs.from_stages([1, 2], mistake_cost=20)
    )
    depths = np.array([0] * 9 + [1])
    gain = gains_of(rule, depths, codes)[0]
    # Always l costs 3; always s 1 and 14 on two items, 3.8 on average: l is the best.
    saved = np.array([2.0] * 8 + [3 - 15.0, 0.0])
    assert gain.stage == 1
    assert gain.mean == pytest.approx(saved.mean())
    width = 1.96 * saved.std(ddof=1) / np.sqrt(10)
    assert (gain.low, gain.high) == pytest.approx((saved.mean() - width, saved.mean() + width))


def test_where_it_rests_on_who_is_right_it_says_so() -> None:
    """Two good stages against a bad, expensive last one: what helps depends on whom to believe."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, 4000)
    off = rng.random((4000, 4)) < [0.25, 0.1, 0.1, 0.6]
    codes = np.where(off, (truth[:, None] + rng.integers(1, 4, (4000, 4))) % 4, truth[:, None])
    frame = pl.DataFrame({name: codes[:, at] for at, name in enumerate("pqrs")})
    found = analyze_items(
        read_rows(frame, LogSettings.of(stages="p,q,r,s", costs="1,2,4,8", mistake_cost=200))
    )
    assert [gain.reference for gain in found.gains] == ["its own", "last", "consensus"]
    assert found.gains[1].mean < 0 < found.gains[2].high
    assert found.helps == (found.gain > 0.01 and found.gains[0].low > 0)
    if found.helps:
        assert found.depends_on == ("last",)
        assert "may help" in words.headline(found)
        assert "if the last stage is right" in words.headline(found)


def test_it_says_plainly_where_it_does_not_help() -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)})
    found = analyze_items(
        read_rows(frame, LogSettings.of(stages="a,b", costs="1,1", mistake_cost=40))
    )
    assert not found.helps
    assert "does not help here" in words.headline(found)
    assert "NAME:confidence" in (words.hint(found) or "")


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(StopwiseError, match="complete rows"):
        found_of(log_of(30))


def test_analyze_takes_it_into_json_and_page(tmp_path: Path) -> None:
    analysis = analyze(log_of(), per_item=True, **GIVEN)
    assert analysis.to_dict()["per_item"]["helps"] in (True, False)
    analysis.write_report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Item by item" in page
    assert "Cost per item against the share of changed answers" in page
    assert "per_item" not in analyze(log_of(), **GIVEN).to_dict()


def test_a_rule_is_written_read_and_explained(tmp_path: Path) -> None:
    frame = log_of()
    frame.write_csv(tmp_path / "log.csv")
    rule_file = tmp_path / "rule.json"
    options = ["--stages", "s,m,l", "--costs", "0.1,1,4", "--mistake-cost", "8"]
    result = CliRunner().invoke(
        build_app(), ["fit", str(tmp_path / "log.csv"), "--out", str(rule_file), *options]
    )
    assert result.exit_code == 0, result.output
    form = json.loads(rule_file.read_text())
    assert form["reads"][0].split(" after ")[0] in ("stop", "go on")
    rule = read_rule(rule_file)
    rows = read_rows(frame, LogSettings.of(**GIVEN)).observations()
    assert (rule.depths(rows) == fit(frame, **GIVEN).depths(rows)).all()
    told = CliRunner().invoke(build_app(), ["explain", str(rule_file)])
    assert told.exit_code == 0
    assert "stop after" in told.output
    as_json = CliRunner().invoke(build_app(), ["explain", str(rule_file), "--json"])
    assert json.loads(as_json.output)["stages"] == ["s", "m", "l"]


def test_labels_choose_the_reference() -> None:
    rule = fit(log_of(), labels=30, **GIVEN)
    assert sum(rule.counts.labelled.values()) == 30
    assert rule.held.weights is not None
    with pytest.raises(StopwiseError, match="truth"):
        fit(log_of().drop("truth"), labels=5, **{**GIVEN, "truth": None})


def test_a_stage_may_be_named_as_the_reference() -> None:
    assert fit(log_of(), reference="m", **GIVEN).reference == 1
    with pytest.raises(StopwiseError, match="reference"):
        _ = fit(log_of(), reference="nobody", **GIVEN).risks


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "rule": "per-item"}', "{"])
def test_a_file_that_is_no_rule_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rule.json"
    path.write_text(text)
    with pytest.raises(StopwiseError, match=r"rule|version"):
        read_rule(path)
    with pytest.raises(StopwiseError, match="no such file"):
        read_rule(tmp_path / "none.json")


def test_features_make_situations(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    hard = rng.random(2000) < 0.5
    right = rng.integers(0, 2, 2000)
    small = np.where(hard & (rng.random(2000) < 0.6), 1 - right, right)
    frame = pl.DataFrame({"s": small, "l": right, "kind": np.where(hard, "hard", "easy")})
    given = {"stages": ["s", "l"], "costs": [1, 2], "mistake_cost": 10}
    plain = read_rows(frame, LogSettings.of(**given))
    told = read_rows(frame, LogSettings.of(**given, features="kind"))
    assert (
        analyze_items(told).per_item.expected_total < analyze_items(plain).per_item.expected_total
    )
    rule = fit(frame, features="kind", **given)
    write_rule(rule, tmp_path / "rule.json")
    assert (
        read_rule(tmp_path / "rule.json").depths(told.observations()) == np.where(hard, 1, 0)
    ).all()
    assert math.isfinite(rule.held.trust)


def test_of_equal_single_stages_a_gain_is_against_the_deepest() -> None:
    codes = np.array([[0, 0], [1, 1]] * 100)
    rows = Observations(("no", "yes"), codes)
    rule = Rule.fit(("small", "free"), rows, Costs.from_stages([1, 0], mistake_cost=20))
    assert [gain.stage for gain in gains_of(rule, rule.depths(rows), codes)] == [1, 1, 1]


@pytest.mark.parametrize("calls", ["cascade", "alone", None])
def test_a_report_has_one_estimate_of_how_often_the_last_stage_errs(calls: str | None) -> None:
    """The reference's own errors are those of the stage table, and not left out of any total."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 900)
    wrong = rng.random((900, 3)) < [0.35, 0.25, 0.15]
    codes = np.where(wrong, (truth[:, None] + 1) % 3, truth[:, None])
    frame = pl.DataFrame({name: codes[:, at] for at, name in enumerate("abc")})
    given = {"stages": "a,b,c", "costs": "1,2,6", "mistake_cost": 40, "calls": calls}
    found = analyze(frame, per_item=True, **given)
    errors = found.to_frame()["estimated_error_rate"][-1]
    assert errors > 0.05
    for items, cost in ((found.per_item, 9), (found.per_item_alone, 6)):
        if items is not None:
            assert items.ways[-1].expected_total == pytest.approx(cost + 40 * errors)
            saved = items.best_single.expected_total - items.per_item.expected_total
            assert items.gain == pytest.approx(saved / items.best_single.expected_total)


def test_more_stages_than_fit_are_refused_in_words_of_the_log() -> None:
    names = [f"s{at}" for at in range(12)]
    frame = pl.DataFrame({name: ["a", "b"] * 30 for name in names})
    given = {"stages": names, "costs": list(range(1, 13)), "mistake_cost": 40}
    for ask in (lambda: fit(frame, **given), lambda: sw.promise(frame, 0.9, **given)):
        with pytest.raises(StopwiseError, match=r"stages: 12 stages, but .* at most 10"):
            ask()
    with pytest.raises(StopwiseError, match="12 stages"):
        sw.replay(frame, "per-item", **given)


def test_one_row_is_one_row() -> None:
    frame = pl.DataFrame({"s": ["a"], "m": ["a"], "l": ["b"]})
    given = {"stages": ["s", "m", "l"], "costs": [1, 2, 3], "mistake_cost": 8}
    with pytest.raises(StopwiseError, match="fit: 1 complete row, but need 40"):
        fit(frame, **given)
    with pytest.raises(StopwiseError, match="per item: 1 complete row, but need 40"):
        analyze(frame, per_item=True, **given)
