"""What an analysis and a replay show of themselves in a notebook and on a terminal."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pytest

from stopwise.checks import StopwiseError
from stopwise.logs import analyze, replay
from stopwise.logs.formatting import printable
from stopwise.logs.reporting.plots import ladders
from stopwise.policies.registry import DEFAULT_POLICY

mpl.use("agg")
SETTINGS: dict[str, Any] = {
    "stages": ["small", "medium", "large"],
    "costs": [0, 0.02, 0.1],
    "mistake_cost": 1,
}


def test_analysis_shows_itself(log):
    analysis = analyze(log, truth="truth", **SETTINGS)
    table = analysis.to_frame()
    assert table["stage"].to_list() == ["small", "medium", "large"]
    assert table["error_rate"].to_list() == pytest.approx(analysis.truth.error_rates.tolist())
    assert analysis._repr_html_().count("<tr>") == 4
    assert analysis.sentence in str(analysis)
    assert len(repr(analysis)) < 100
    axes = analysis.plot()
    names = " ".join(text.get_text() for text in axes.texts)
    assert all(stage in names for stage in SETTINGS["stages"])
    assert axes.yaxis.get_major_formatter()(0.1).endswith("%"), "as the texts say it"
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert not any(line.get_clip_on() for line in points), "the last lies on the axis: drawn whole"


def test_the_ladder_says_what_both_of_its_axes_are(log):
    verdict = analyze(log, **SETTINGS).verdict
    for stage, picture in ladders(verdict):
        assert f">answers that differ from {verdict.stages[stage]}</text>" in picture
        assert ">cost per item up to the deeper stage</text>" in picture


def test_replay_shows_itself(log):
    result = replay(log, replications=2, **SETTINGS)
    table = result.to_frame()
    assert table["name"][0] == result.policy
    assert table["cost"].to_list() == [outcome.cost for outcome in result.outcomes]
    html = result._repr_html_()
    assert "<th>no answer</th>" in html  # in words, and shares in percent as above the table
    assert html.count(" %</td>") == len(result.outcomes) * (2 + len(result.stages))
    assert result.policy == DEFAULT_POLICY  # the one that a live learner has
    assert str(result).startswith(f"{DEFAULT_POLICY} over 2,000 items")
    assert len(result.plot().collections) == 3


def test_an_unknown_keyword_names_the_nearest(log):
    functions: tuple[Any, ...] = (analyze, replay)
    for function in functions:
        with pytest.raises(StopwiseError, match=r"setting 'mistake_costs'.*'mistake_cost'\?"):
            function(log, mistake_costs=2)


def test_names_are_shown_not_run():
    assert printable("\x1b[2Jrm") == "\\x1b[2Jrm"
