"""Results show themselves in a notebook: a table, a frame, axes."""

from __future__ import annotations

import re

import matplotlib as mpl
import pytest
from matplotlib import pyplot

import stopwise as sw
from stopwise.checks import StopwiseError
from stopwise.display import html_table

mpl.use("agg")


@pytest.fixture(scope="module")
def problem():
    return sw.Problem.from_rates(
        [0.3, 0.1],
        [[0, 0.25], [0.25, 0]],
        sw.Costs.from_stages((0.0, 0.1)),
        stages=["<small>", "large"],
    )


@pytest.fixture(scope="module")
def result(problem):
    return sw.simulate(
        problem, "uss-ts", horizon=300, replications=30, seed=1, jobs=1, engine="reference"
    )


def cells(html):
    return re.findall(r"<td>(.*?)</td>", html)


def test_a_problem_shows_its_stages(problem):
    html = problem._repr_html_()
    assert "The best stage is large; weak dominance holds" in html
    assert cells(html)[:5] == ["&lt;small&gt;", "0", "0.3", "0.3", "0.1"]
    assert cells(html)[5:] == ["large", "0.1", "0.1", "0.2", "0"]
    table = problem.to_frame()
    assert table["stage"].to_list() == ["<small>", "large"]
    assert table["gap"].to_list() == pytest.approx([0.1, 0])


def test_a_simulation_shows_its_regret(result):
    html = result._repr_html_()
    assert "uss-ts: mean regret" in html
    assert "after 300 rounds" in html
    assert cells(html)[::2] == ["&lt;small&gt;", "large"]
    assert sum(map(float, cells(html)[1::2])) == pytest.approx(1, abs=1e-3)
    curve = result.to_frame()
    assert curve["round"].to_list() == [point.round for point in result.curve]
    assert curve["mean"][-1] == result.regret.mean
    assert repr(result) == f"<Simulation of {result}>"


def test_curves_share_axes(problem, result):
    axes = result.plot()
    other = sw.simulate(
        problem, "uss-ucb", horizon=300, replications=3, seed=1, jobs=1, engine="reference"
    )
    assert other.plot(axes) is axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["uss-ts", "uss-ucb"]
    assert axes.lines[0].get_ydata()[-1] == result.regret.mean
    pyplot.close(axes.figure)


def test_one_replication_has_no_interval_and_still_shows(problem):
    alone = sw.simulate(
        problem, "uss-ts", horizon=20, replications=1, seed=1, jobs=1, engine="reference"
    )
    assert alone.to_frame()["ci_low"].to_list()[-1] is None
    assert "nan" not in alone._repr_html_()


def test_tables_escape_what_they_show():
    assert "<script>" not in html_table(["<script>"], [["<script>"]], title="<script>", note="<b>")


def test_what_is_no_axes_is_refused_by_name(problem, result):
    for thing in (problem, result):
        with pytest.raises(StopwiseError, match="ax: got 3, but need matplotlib axes"):
            thing.plot(3)
        with pytest.raises(StopwiseError, match="unknown setting 'axs'; did you mean 'ax'"):
            thing.plot(**{"axs": None})
