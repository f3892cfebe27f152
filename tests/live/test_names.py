"""Keywords that are refused, ties that are read alike everywhere, results that show themselves."""

from typing import Any

import matplotlib
import polars
import pytest

from stopwise import Costs, Evidence, StopwiseError
from stopwise.decisions import first_passing_stage
from stopwise.live import (
    Breaker,
    Cascade,
    Drift,
    Learner,
    LiveReport,
    Outcome,
    Report,
    Retry,
    RoundOutcome,
    Stage,
)

matplotlib.use("agg")


def test_a_tie_goes_deeper_live_as_in_an_analysis():
    learner = Learner(Costs.from_cumulative((0.3, 0.4)))
    learner.add_evidence(Evidence.from_counts([[0, 10], [0, 0]], [[0, 1], [0, 0]]))
    assert learner.best_stage() == 1  # 0.1 is not below 0.4 - 0.3
    assert first_passing_stage(learner.costs.thresholds, learner.evidence().disagreement) == 1


@pytest.mark.parametrize("build", [
    lambda **settings: Learner([0, 1], **settings),
    lambda **settings: Cascade([Stage("a", str, 0), Stage("b", str, 1)], **settings),
])  # fmt: skip
@pytest.mark.parametrize(
    ("name", "nearest"),
    [("halflife", "half_life"), ("mistakecost", "mistake_cost"), ("comparater", "comparator")],
)
def test_an_unknown_keyword_is_refused_with_the_nearest_known_one(build, name, nearest):
    with pytest.raises(StopwiseError, match=f"{name}.* did you mean .{nearest}"):
        build(**{name: 1})


@pytest.mark.parametrize(("build", "nearest"), [
    (lambda: Stage("a", str, **{"costs": 1}), "cost"),
    (lambda: Retry(**{"time": 1}), "times"),
    (lambda: Breaker(**{"failure": 1}), "failures"),
    (lambda: Drift(**{"windows": 1}), "window"),
])  # fmt: skip
def test_parts_of_a_cascade_name_the_nearest_known_setting_too(build, nearest):
    with pytest.raises(StopwiseError, match=f"did you mean .{nearest}.[?]"):
        build()


def test_an_unknown_keyword_with_nothing_near_is_told_all_that_there_are():
    with pytest.raises(StopwiseError, match="known are"):
        Learner([0, 1], **{"zzz": 1})


def test_a_report_shows_itself():
    learner = Learner({"<rule>": 0, "model": 1}, "fixed")
    with learner.begin() as round:
        round.observe(None)
        round.observe("yes")
    report = learner.report()
    assert "&lt;rule&gt;" in report._repr_html_()
    frame = report.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame["calls"].to_list() == [1, 1]
    assert frame["abstentions"].to_list() == [1, 0]
    bars: list[Any] = list(report.plot().patches)
    assert [bar.get_width() for bar in bars] == [1, 1, 0, 1]
    assert repr(learner) == "Learner({<rule>: 0, model: 1}, 'fixed', 1 rounds)"


def test_names_of_earlier_releases_are_still_there():
    assert Report is LiveReport
    assert Outcome is RoundOutcome


def test_a_misspelt_policy_is_given_the_right_name():
    stages = [Stage("a", str, 0), Stage("b", str, 1)]
    for make in (lambda **s: Learner([0, 1], **s), lambda **s: Cascade(stages, **s)):
        with pytest.raises(StopwiseError, match="did you mean 'policy'"):
            make(polcy="uss-ts")
