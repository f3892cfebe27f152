"""Verdicts and claims on results made up by hand."""

import math

import pytest

from stopwise.paper.comparison import check_claims, compare, growth_exponent
from stopwise.paper.experiments import list_runs
from stopwise.paper.running import RunResult
from stopwise.simulation.results import CurvePoint


def curve(final, exponent=0.5, width=0.01):
    rounds = [1000 * k for k in range(1, 11)]
    means = [final * (t / 10_000) ** exponent for t in rounds]
    return RunResult(
        "made up",
        tuple(
            CurvePoint(t, m, m * (1 - width), m * (1 + width))
            for t, m in zip(rounds, means, strict=True)
        ),
    )


def calibrated(figure):
    return [run for run in list_runs([figure]) if run.source == "calibrated"]


def test_growth_exponent():
    assert growth_exponent(curve(100, 0.7)) == pytest.approx(0.7)
    assert math.isnan(growth_exponent(curve(0)))


@pytest.mark.parametrize(
    ("instance", "mean", "verdict"),
    [
        (3, 124.1 * 1.02, "agrees"),
        (3, 124.1 * 0.9, "near"),
        (3, 124.1 * 1.2, "differs"),
        (4, 0.5, "agrees"),
        (4, 2.0, "differs"),
    ],
)
def test_verdicts(instance, mean, verdict):
    run = calibrated("1b")[instance - 1]
    [row] = compare([(run, curve(mean))])
    assert row.verdict == verdict


def test_growth_claims_can_fail():
    runs = calibrated("1b")
    good = [(run, curve(100, 1.0 if run.instance == "5" else 0.5)) for run in runs]
    assert [claim.holds for claim in check_claims(compare(good))] == [True, True]
    bad = [(run, curve(100, 0.5 if run.instance == "5" else 1.0)) for run in runs]
    claims = check_claims(compare(bad))
    assert [claim.holds for claim in claims] == [False, False]
    assert "pima 1" in claims[0].detail


def test_order_claim_needs_the_order_and_separate_intervals():
    runs = {run.policy_name: run for run in calibrated("2a")}
    finals = {"uss-ts": 100, "uss-ucb": 200, "hanawal-2": 300}

    def holds(width, **changed):
        values = {**finals, **changed}
        pairs = [(run, curve(values[name], width=width)) for name, run in runs.items()]
        [claim] = check_claims(compare(pairs))
        return claim.holds

    assert holds(0.01)
    assert not holds(0.5)
    assert not holds(0.01, **{"uss-ts": 250})


def test_transition_claim():
    runs = [run for run in list_runs(["2c"]) if run.instance == "optimal-arm-2"]

    def claim(after):
        height = {run.x: 1000 if run.x < 0 else 500 if run.x == 0 else after for run in runs}
        [found] = check_claims(compare([(run, curve(height[run.x])) for run in runs]))
        return found.holds

    assert claim(100)
    assert not claim(600)


def test_points_without_a_published_value():
    short = RunResult("made up", (CurvePoint(10, 1, 0, 2), CurvePoint(20, 2, 1, 3)))
    [row] = compare([(calibrated("1a")[0], short)])
    assert (row.published, row.ratio, row.verdict) == (None, None, "not published")
