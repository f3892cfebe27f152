"""Figures from full runs: their intervals hold the truth as often as they say."""

import json

import numpy as np
from scipy.stats import binom

from made_up_cascades import made_up
from stopwise.live import Learner
from stopwise.live.items.figures import NAMES, add_item, figures_of_items
from stopwise.live.items.row import ItemRow


def test_intervals_hold_the_truth_as_often_as_they_say():
    """150 streams of 2,000 rounds; 95 % intervals, judged with a false alarm rate of 1e-6."""
    rng = np.random.default_rng(1)
    streams, rounds, held, errors, held_costs = 150, 2000, 0, [], 0
    t = np.arange(1, rounds + 1)
    chance = np.minimum(1.0, 2.0 / np.sqrt(t))
    for _ in range(streams):
        values = [0.0] * len(NAMES)
        full = rng.random(rounds) < chance
        early = rng.random(rounds) < 0.7
        differs = rng.random(rounds) < np.where(t < 500, 0.2, 0.05)  # the rule grows better
        whole = 5.0 + rng.exponential(2.0, rounds)
        given = np.where(full | ~early, whole, 1.0)
        for at in range(rounds):
            row = ItemRow(rule=0 if early[at] else 1, full=bool(full[at]), chance=chance[at])
            same = (not differs[at]) if full[at] else None
            add_item(values, 0, row, last=1, cost=given[at], same=same)
        found = figures_of_items(values, 0)
        truth = 1 - np.mean(early & ~full & differs)
        low, high = found.agreement_interval
        held += bool(low <= truth <= high)
        errors.append(found.agreement - truth)
        low, high = found.saved_interval
        held_costs += low <= whole.sum() - given.sum() <= high
    assert binom.cdf(held, streams, 0.95) > 1e-6
    assert binom.cdf(held_costs, streams, 0.93) > 1e-6  # a normal interval of skewed costs
    assert abs(np.mean(errors)) < 5 * np.std(errors) / np.sqrt(streams)


def test_a_learner_reports_them_and_known_costs_are_exact(tmp_path):
    rows = made_up(2000, (0.2, 1.0, 2.0), seed=3)[0]
    costs = [0.1, 1.0, 4.0]
    learner = Learner(costs, "per-item", mistake_cost=8.0, seed=1, full_run_rate=0.2)
    agree = []
    for item in range(2000):
        with learner.begin() as round:
            for stage in range(3):
                sure = float(rows.confidences[item, stage])
                round.observe(rows.labels[rows.codes[item, stage]], confidence=sure)
                if learner.stops(round):
                    break
        agree.append(rows.codes[item, len(round.outputs) - 1] == rows.codes[item, 2])
    report = learner.report()
    found = report.items
    assert found.saved_interval[0] == found.saved_interval[1]
    assert abs(found.saved - (2000 * sum(costs) - report.spent)) < 1e-6
    low, high = found.agreement_interval
    assert low <= np.mean(agree) <= high
    assert high - low < 0.2
    assert "have a full run's answer" in str(report)
    learner.save(tmp_path / "snapshot.json")
    other = Learner(costs, "per-item", mistake_cost=8.0, seed=1, full_run_rate=0.2)
    other.load(tmp_path / "snapshot.json")
    assert other.report().items == found
    assert Learner(costs).report().items is None


def test_savings_against_the_last_stage_alone_and_the_report_as_json():
    learner = Learner({"small": 1.0, "large": 5.0}, "fixed:stage=0", mistake_cost=40)
    for _ in range(10):
        with learner.begin() as round:
            round.observe("yes")
    report = learner.report()
    assert report.saved_alone == 10 * 5 - 10 * 1
    form = json.loads(json.dumps(report.to_dict()))
    assert (form["saved_alone"], form["calls"], form["items"]) == (40, [10, 0], None)
    deep = Learner({"small": 1.0, "large": 5.0}, "fixed:stage=1", mistake_cost=40)
    with deep.begin("a") as round:
        round.observe("yes")
        round.observe("no", cost=7.0)
    assert deep.report().saved_alone == 5 - 8
    assert deep.report("a").saved_alone == -3
    assert str(deep.report()).endswith(
        "saved -2 against calling all stages, -3 against large alone"
    )
    items = Learner({"small": 1.0, "large": 5.0}, agree=0.9)
    with items.begin() as round:
        round.observe("yes")
        round.observe("yes")
    form = json.loads(json.dumps(items.report().to_dict()))
    assert form["promise"]["rounds"] == form["items"]["rounds"] == 1
