"""The list of runs: complete, with the margins it says, held against the right points."""

import pytest

from stopwise import StopwiseError
from stopwise.paper.experiments import list_runs, load_figures, margin_environment


def test_every_figure_has_its_runs():
    runs = list_runs()
    counts = {id: sum(run.figure == id for run in runs) for id in load_figures()}
    assert counts == {"1a": 10, "1b": 10, "1c": 10, "2a": 6, "2b": 6, "2c": counts["2c"]}
    assert [run.figure for run in list_runs(["2b", "1c"])] == ["1c"] * 10 + ["2b"] * 6


def test_comparisons_are_instance_3_with_the_papers_settings():
    policies = {"uss-ts", "uss-ucb:alpha=0.5", "hanawal-2:alpha=1.5"}
    for figure in ("2a", "2b"):
        for source in ("retrained", "calibrated"):
            runs = [run for run in list_runs([figure]) if run.source == source]
            assert {run.policy for run in runs} == policies
            assert {run.instance for run in runs} == {"3"}


def test_sweep_has_the_margin_and_the_optimal_arm_it_says():
    figure = load_figures()["2c"]
    runs = list_runs(["2c"])
    for run in runs:
        problem = run.environment.problem
        assert problem.margin == pytest.approx(run.x, abs=1e-9)
        assert problem.optimal_stage + 1 == figure.margin_curves[run.instance].optimal_arm
        assert problem.weak_dominance == (run.x > 0)
    for name, curve in figure.margin_curves.items():
        found = {run.x for run in runs if run.instance == name}
        # A margin is left out only where the optimal arm would have to change.
        best = curve.optimal_arm - 1
        problem = runs[0].environment.problem
        gap = problem.error_rates[best] - problem.error_rates[best + 1]
        lowest = gap - problem.disagreements[best, best + 1]
        assert found == {x for x in figure.margins if x > lowest}


def test_a_margin_that_cannot_be_is_none():
    figure = load_figures()["2c"]
    curve = figure.margin_curves["optimal-arm-1"]
    assert margin_environment(figure, curve, -0.2) is None
    assert margin_environment(figure, curve, -0.03) is not None


def test_published_points_only_where_they_can_be_compared():
    first = list_runs(["1a"])[0]
    assert len(first.published(10_000)) == 10
    assert list(first.published(2500)) == [1000.0, 2000.0]
    margin = list_runs(["2c"])[0]
    assert len(margin.published(10_000)) == 9
    assert margin.published(5000) == {}
    unnamed = list_runs(["2a"])[0]
    assert unnamed.published(10_000)[10_000.0] == 142.5


def test_unknown_figure_is_refused():
    with pytest.raises(StopwiseError, match="only: got '3a', but need '1a', '1b'"):
        list_runs(["3a"])
