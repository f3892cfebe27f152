"""Deciding per item where stages are called alone: the rule, its file, its figures, its words."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from stopwise import Cascade, Stage
from stopwise.checks import StopwiseError
from stopwise.cli import build_app
from stopwise.logs import analyze
from stopwise.logs.items.alone import analyze_items_alone
from stopwise.logs.items.fitting import fit, write_rule
from stopwise.logs.reading.call_order import in_call_order
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.settings import LogSettings
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.any_rule import read_rule

OWN = (1.0, 3.0, 9.0)


def sharp_log(rows=2000, seed=0):
    """The first stage says how sure it is, and means it; the middle one throws a coin."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    sure = rng.random(rows)
    wrong = [rng.random(rows) < 0.9 * (1 - sure) ** 3, rng.random(rows) < 0.5, rng.random(rows) < 0]
    outputs = [np.where(w, 1 - truth, truth) for w in wrong]
    names = ("a", "b", "c")
    columns = dict(zip(names, outputs, strict=True))
    return pl.DataFrame({**columns, "a:confidence": sure, "truth": truth})


def settings(**more):
    given = {"stages": ("a", "b", "c"), "costs": OWN, "mistake_cost": 30, "calls": "alone"}
    return LogSettings.of(**given | more)


def test_it_jumps_over_a_stage_that_is_worth_nothing():
    rule = fit(sharp_log(), settings())
    assert isinstance(rule, AloneRule)
    assert rule.first == 0
    found = rule.follow(read_rows(sharp_log(seed=1), settings()).observations())
    assert found.called[:, 1].mean() < 0.05
    assert 0.1 < found.called[:, 2].mean() < 0.9
    assert found.spent == pytest.approx(found.called @ np.array(OWN))


def test_the_rule_is_optimal_on_a_table_small_enough_to_enumerate():
    """Two labels, no confidence, 2 stages: every rule is tried, and none costs less on these rows.

    A rule is a first stage and, after stage 0, whether to call stage 1 for either label.
    """
    rng = np.random.default_rng(4)
    mistake = 20.0
    for _ in range(10):
        share = rng.dirichlet(np.ones(4))
        codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], (share * 4000).astype(int) + 1, axis=0)
        own = rng.uniform(0.5, 5, 2).cumsum()
        frame = pl.DataFrame(codes, schema=["a", "b"])
        rule = fit(
            frame, LogSettings(stages=("a", "b"), costs=tuple(own), mistake_cost=mistake,
                               calls="alone"), reference="last", trust=1.0,
        )  # fmt: skip
        differ = codes[:, 0] != codes[:, 1]

        def total(first, goes, codes=codes, own=own, differ=differ):
            if first == 1:
                return own[1]
            on = np.asarray(goes)[codes[:, 0]]
            return own[0] + np.mean(np.where(on, own[1], mistake * differ))

        best = min(
            total(first, goes)
            for first in (0, 1)
            for goes in itertools.product((False, True), repeat=2)
        )
        rows = read_rows(frame, LogSettings(stages=("a", "b"), costs=tuple(own)))
        found = rule.follow(rows.observations())
        cost = found.spent + mistake * (
            codes[np.arange(len(codes)), found.answered_by] != codes[:, 1]
        )
        assert cost.mean() == pytest.approx(best, rel=0.01)


def test_figures_are_those_of_counting(tmp_path):
    frame = sharp_log()
    found = analyze(frame, settings(truth="truth"), per_item=True)
    assert found.per_item is None
    alone = found.per_item_alone
    assert alone.helps
    assert [way.cost for way in alone.ways] == list(OWN)
    assert alone.ways[2].total == pytest.approx(9.0)  # c is never wrong
    assert alone.ways[2].changed == 0
    assert alone.per_item.total < min(way.total or 0.0 for way in alone.ways)
    assert alone.per_item.cost == pytest.approx(np.dot(alone.called, OWN))
    assert alone.certified < 9 - alone.per_item.cost - 30 * alone.per_item.changed
    assert found.to_dict()["per_item_alone"]["first"] == "a"
    assert "less than c alone" in alone.sentences()[1]


def test_both_ways_are_shown_where_nobody_says():
    both = analyze(sharp_log(400), settings(calls=None), per_item=True)
    assert both.per_item is not None
    assert both.per_item_alone is not None
    cascade = analyze(sharp_log(400), settings(calls="cascade"), per_item=True)
    assert cascade.per_item_alone is None


def test_certified_savings_are_not_too_large():
    """20 logs at level 0.9: more than binom.ppf(1 - 1e-6, 20, 0.1) = 10 wrong is a false alarm."""
    large = read_rows(sharp_log(20_000, seed=99), settings())
    wrong = 0
    for seed in range(20):
        rows = read_rows(sharp_log(300, seed=seed), settings())
        found = analyze_items_alone(rows, level=0.9)
        rule = AloneRule.fit(rows.stages, rows.observations(), found.rule.costs)
        ahead = rule.follow(large.observations())
        answers = large.codes[np.arange(20_000), ahead.answered_by]
        truly = 9 - ahead.spent.mean() - 30 * (answers != large.codes[:, 2]).mean()
        wrong += found.certified > truly
    assert wrong <= 10


def test_savings_are_stated_against_the_stage_named_last():
    """c is named last but costs less than b: it is what answers are held against."""
    chosen = settings(costs=(1, 9, 3))
    rows = read_rows(sharp_log(), in_call_order("log", chosen))
    assert rows.stages == ("a", "c", "b")
    assert rows.held_to("auto") == rows.held_to("c") == 1
    found = analyze_items_alone(rows)
    assert found.to_dict()["baseline"] == "c"
    assert found.called[2] == 0.0  # nobody needs b
    assert found.ways[1].changed == 0


def test_a_rule_is_written_read_and_explained(tmp_path):
    rule = fit(sharp_log(), settings())
    path = tmp_path / "rule.json"
    write_rule(rule, path)
    assert read_rule(path) == rule
    assert json.loads(path.read_text())["reads"] == list(rule.reads)
    done = CliRunner().invoke(build_app(), ["explain", str(path)])
    assert done.exit_code == 0
    assert "every item calls a first" in done.output
    assert rule.reads[0] in done.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": 7}, "first: got 7"),
        ({"paths": [{"path": [1, 0], "levels": []}]}, "path: got"),
        ({"paths": [{"path": [1], "levels": [[0, {"0": 0}]]}]}, "levels: got 0"),
        ({"paths": 3}, "rule: got"),
    ],
)
def test_a_spoiled_rule_is_refused(change, message):
    form = fit(sharp_log(200), settings()).to_dict() | change
    with pytest.raises(StopwiseError, match=message):
        AloneRule.from_dict(form)


def test_labels_choose_the_reference_here_too():
    """The last stage is bad: labels say so, and the rule stops calling it."""
    frame = sharp_log().rename({"b": "c", "c": "b"}).select("a", "a:confidence", "b", "c", "truth")
    bad_last = frame.with_columns(c=1 - pl.col("truth"))
    chosen = settings(costs=(1, 3, 9), truth="truth")
    labelled = fit(bad_last, chosen, labels=30)
    rows = read_rows(bad_last, chosen).observations()
    assert labelled.follow(rows).called[:, 2].mean() < 0.05


def test_logistic_rules_are_refused():
    with pytest.raises(StopwiseError, match="policy: got 'per-item-logistic'"):
        fit(sharp_log(200), settings(), policy="per-item-logistic")


def test_a_live_cascade_takes_such_a_rule(tmp_path):
    path = tmp_path / "rule.json"
    write_rule(fit(sharp_log(200), settings()), path)
    stages = [Stage(name, lambda item: 0, cost=1) for name in ("a", "b", "c")]
    assert Cascade(stages, rule=path, mistake_cost=30).learner.settings.calls == "alone"


def test_too_few_rows_are_refused_as_in_a_cascade():
    frame = pl.DataFrame({"small": ["keep"] * 10, "large": ["keep"] * 10})
    settings = LogSettings(stages=("small", "large"), costs=(1, 4), mistake_cost=20, calls="alone")
    with pytest.raises(StopwiseError, match="10 complete rows, but need 40 or more"):
        analyze_items_alone(read_rows(frame, settings))


def test_the_page_says_which_stages_are_called(tmp_path):
    found = analyze(sharp_log(600), settings(), per_item=True)
    found.write_report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Item by item, stages called alone" in page
    assert found.per_item_alone is not None
    rule = found.per_item_alone.rule
    assert f"Fitted on all rows, the rule calls {rule.stages[rule.first]} first:" in page
    assert all(line in page for line in rule.reads)
