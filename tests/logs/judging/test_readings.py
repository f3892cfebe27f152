"""Which stage each reading takes, and which reading the headline takes."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from stopwise import Costs, Evidence
from stopwise.estimating import estimate
from stopwise.logs import LogSettings, analyze, analyze_evidence
from stopwise.logs.judging.readings import candidate_stages, labels_to_settle, readings_of
from stopwise.logs.judging.verdict import judge

NAMES = ["first", "second", "third"]


def frame(errors, rows=3000, kinds=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, kinds, rows)
    columns = {"truth": truth}
    for name, error in zip(NAMES, errors, strict=False):
        wrong = (truth + rng.integers(1, kinds, rows)) % kinds
        columns[name] = np.where(rng.random(rows) < error, wrong, truth)
    return pl.DataFrame(columns)


def test_an_expensive_bad_last_stage_is_seen():
    """The rule goes on to the last stage, since it differs much; the estimate does not."""
    log = frame([0.2, 0.08, 0.4])
    analysis = analyze(log, stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1, truth="truth")
    assert analysis.verdict.recommended == 2
    assert analysis.readings.headline_stage == 1
    assert analysis.readings.headline_reading == "estimated"
    assert analysis.truth.optimal_stage == 1
    assert analysis.sentence.startswith("Stop at second (estimated, not certain). Judged by how")
    form = analysis.to_dict()
    assert form["recommended_stage"] == "third"
    assert form["headline_stage"] == form["readings"]["estimated"]["stage"] == "second"
    assert form["readings"]["weak-dominance"]["stage"] == "third"
    low, high = (form["readings"]["estimated"][f"error_rates_{end}"] for end in ("low", "high"))
    rates = form["readings"]["estimated"]["error_rates"]
    assert all(a <= b <= c for a, b, c in zip(low, rates, high, strict=True))
    json.dumps(form, allow_nan=False)


def test_what_is_certain_comes_first():
    log = frame([0.02, 0.02, 0.02])
    analysis = analyze(log, stages=NAMES, costs=[0.1, 0.3, 0.5], mistake_cost=1)
    assert analysis.readings.headline_reading == "certain"
    assert analysis.readings.candidates == (0,)
    assert analysis.readings.labels_to_settle == 0
    assert "whatever the truth" in analysis.sentence


def test_a_stage_ruled_out_for_certain_is_never_the_headline():
    log = frame([0.3, 0.25, 0.01])
    analysis = analyze(log, stages=NAMES, costs=[0.01, 0.02, 0.9], mistake_cost=1)
    assert 2 not in analysis.readings.candidates
    assert analysis.readings.headline_stage in analysis.readings.candidates


@pytest.mark.parametrize("reading", ["weak-dominance", "estimated", "minimax"])
def test_a_reading_can_be_chosen(reading, cli, tmp_path):
    log = frame([0.2, 0.08, 0.4])
    path = tmp_path / "log.csv"
    log.write_csv(path)
    given = ("--stages", ",".join(NAMES), "--costs", "0.01,0.02,0.1", "--mistake-cost", 1)
    form = json.loads(cli("analyze", path, *given, "--json", "--reading", reading).out)
    assert form["headline_reading"] == reading
    assert form["headline_stage"] == form["readings"][reading]["stage"]


def test_certain_alone_may_name_nobody():
    analysis = analyze(
        frame([0.2, 0.08, 0.4]), stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1,
        reading="certain",
    )  # fmt: skip
    assert analysis.readings.headline_stage is None
    assert analysis.to_dict()["headline_stage"] is None
    assert analysis.sentence.startswith("No stage can be named by what is certain")


def test_two_stages_estimate_nothing_and_say_so():
    log = frame([0.3, 0.1]).select("first", "second")
    analysis = analyze(log, stages=NAMES[:2], costs=[0.0, 0.05], mistake_cost=1)
    assert analysis.readings.estimated is None
    assert analysis.readings.headline_reading == "rule-of-thumb"
    assert analysis.readings.headline_stage == 1
    assert "nothing can be estimated" in analysis.sentence


def test_copies_are_named_by_the_check():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 4000)
    shared = np.where(rng.random(4000) < 0.3, 1 - truth, truth)

    def near(column, error):
        return np.where(rng.random(4000) < error, 1 - column, column)

    log = pl.DataFrame(
        {"a": near(shared, 0.1), "b": near(shared, 0.1), "c": near(truth, 0.3),
         "d": near(truth, 0.28), "e": near(truth, 0.25)}
    )  # fmt: skip
    analysis = analyze(log, stages=list("abcde"), costs=[0.01] * 5, mistake_cost=1)
    # Which of the two groups are the copies cannot be seen; that there are groups can.
    assert analysis.readings.dependent_pairs
    assert not analysis.readings.check_passed


def test_from_pair_counters_alone():
    log = frame([0.2, 0.08, 0.4])
    whole = analyze(log, stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1)
    pairs = analyze_evidence(whole.evidence, stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1)
    assert pairs.readings.headline_stage == whole.readings.headline_stage == 1
    # Pair counters have no rows: they are held against what the consensus alone says.
    codes = log.select(NAMES).to_numpy()
    alone = 1 - estimate(codes, bootstraps=0, second_model=False).right.mean(axis=0)
    assert pairs.readings.error_rates == pytest.approx(alone, abs=0.03)


def test_candidates_and_labels_by_hand():
    """Three stages that differ on 10 % of 1,000 items; the last costs 20 % of a mistake."""
    seen = np.triu(np.full((3, 3), 1000), 1)
    evidence = Evidence.from_counts(seen, np.triu(np.full((3, 3), 100), 1))
    verdict = judge(tuple(NAMES), evidence, Costs.from_cumulative((0.0, 0.01, 0.21)))
    assert candidate_stages(verdict) == (0, 1)
    errors = np.array([0.10, 0.05, 0.05])
    # Of 100 differing items the mean of Z is 0.5, to be told from 0.1: gap 0.4, variance 0.75.
    labels = labels_to_settle(verdict, errors, (0, 1), 1)
    assert labels == int(np.ceil(2 * np.log(2 / 0.01) * (0.75 / 0.16 + 1 / 0.4)))
    assert readings_of(verdict, LogSettings()).certain is None


def test_both_savings_are_stated():
    log = frame([0.2, 0.08, 0.4])
    analysis = analyze(log, stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1)
    assert "saves 0.1 per item against going through all stages to third" in analysis.sentence
    assert "or 0.07 against calling it alone" in analysis.sentence


def _total(analysis, stage):
    return float(analysis.truth.expected_total_costs[stage])


@pytest.mark.full_estimate
def test_right_more_often_than_the_rule_on_random_cascades():
    """20 cascades of unlike stages at 3 mistake costs: the headline against the paper's rule."""
    rng = np.random.default_rng(12)
    right, excess, rule = [], [], []
    for at in range(20):
        errors = np.clip(
            np.cumsum([rng.uniform(0.15, 0.4), *rng.normal(-0.05, 0.08, 2)]), 0.02, 0.6
        )
        log = frame(
            errors, rows=int(rng.integers(300, 2000)), kinds=int(rng.integers(2, 6)), seed=at
        )
        own = np.exp(np.cumsum(rng.uniform(0, 1.5, 3)))
        for mistake_cost in np.geomspace(own.sum(), own.sum() * 60, 3):
            analysis = analyze(
                log, stages=NAMES, costs=own, mistake_cost=float(mistake_cost), truth="truth"
            )
            best = float(analysis.truth.expected_total_costs.min())
            found = _total(analysis, analysis.readings.headline_stage)
            right.append(found <= best + 1e-12)
            excess.append(found / best - 1)
            rule.append(_total(analysis, analysis.verdict.recommended) / best - 1)
    assert np.mean(right) >= 0.7
    assert np.mean(excess) <= 0.08
    assert np.mean(excess) < np.mean(rule) / 3


def test_a_stage_that_never_answers_leaves_nothing_to_estimate():
    """Two stages that answer and a silent one are two stages."""
    log = frame([0.3, 0.2, 0.1]).with_columns(second=pl.lit(None, dtype=pl.String))
    log = log.with_columns(pl.col("first", "third").cast(pl.String))
    found = analyze(log, stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1).readings
    assert found.estimated is None
    assert found.headline_reading == "rule-of-thumb"
    assert found.why_not == "fewer than three stages ever answer: nothing can be estimated"
    said = analyze(log, stages=NAMES, costs=[0.01, 0.02, 0.1], mistake_cost=1).sentence
    assert "fewer than three stages ever answer, so nothing can be estimated" in said


def test_weak_dominance_is_named_when_it_was_asked_for():
    for errors, costs in (([0.02] * 3, [0.1, 0.3, 0.5]), ([0.4, 0.2, 0.02], [0.01, 0.02, 0.03])):
        found = analyze(
            frame(errors), stages=NAMES, costs=costs, mistake_cost=1, reading="weak-dominance"
        )
        assert "weak dominance" in found.sentence


def test_two_stages_and_the_estimate_asked_for(tmp_path, cli):
    """Nothing is named, and every form of the answer can say so."""
    log = frame([0.3, 0.1])
    found = analyze(log, stages=NAMES[:2], costs=[0.01, 0.1], mistake_cost=1, reading="estimated")
    assert found.readings.headline_stage is None
    assert "nothing can be estimated without a third" in found.sentence
    assert found.to_dict()["headline_stage"] is None
    found.write_report(tmp_path / "report.html")
    assert "nothing can be estimated" in (tmp_path / "report.html").read_text()
    log.write_csv(tmp_path / "log.csv")
    answer = cli("analyze", tmp_path / "log.csv", "--stages", "first,second", "--costs",
                         "0.01,0.1", "--reading", "estimated")  # fmt: skip
    assert "nothing can be estimated without a" in " ".join((answer.out + answer.err).split())


def test_costs_of_any_size_have_readings():
    """Where b gives no answer, c is called: the costs of both are then as large as can be."""
    outputs = {"a": ["x", None, "y"] * 20, "b": ["x", "y", None] * 20, "c": ["y", "x", "x"] * 20}
    given = {"stages": ["a", "b", "c"], "costs": [1.0, 2.0, 1e300], "mistake_cost": 1}
    analysis = analyze(pl.DataFrame(outputs), calls="alone", **given)
    assert analysis.readings.headline_stage == 0
