"""The readings of a live learner are those of `analyze` on the same evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise import Learner, StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live.choosing.readings import ALL_READINGS, READINGS, certain_stage, stage_by
from stopwise.logs import analyze_evidence


@given(
    st.lists(st.integers(0, 400), min_size=3, max_size=3),
    st.floats(0.5, 200, allow_nan=False),
)
def test_rule_and_minimax_are_those_of_analyze(differ: list[int], mistake_cost: float) -> None:
    seen, disagreed = np.full((3, 3), 400), np.zeros((3, 3), dtype=int)
    disagreed[np.triu_indices(3, 1)] = differ
    evidence = Evidence.from_counts(seen, disagreed)
    costs = Costs.from_stages([1, 3, 10], mistake_cost)
    verdict = analyze_evidence(evidence, costs=[1, 3, 10], mistake_cost=mistake_cost).verdict
    assert stage_by("weak-dominance", evidence, costs) == verdict.recommended
    assert stage_by("minimax", evidence, costs) == verdict.minimax_stage


def test_an_expensive_last_stage_that_is_alone_is_not_estimated_to_be_the_best() -> None:
    learner = Learner({"a": 1, "b": 2, "c": 4}, "fixed", mistake_cost=20)
    for at in range(200):
        with learner.begin() as round:
            for output in ("yes", "yes" if at % 10 else "no", f"other {at}"):
                round.observe(output)
    assert learner.best_stage() == 2
    assert learner.best_stage(reading="estimated") == 0


def test_a_learner_that_knows_nothing_says_the_last_stage_by_every_reading() -> None:
    learner = Learner({"a": 1, "b": 2, "c": 4}, mistake_cost=20)
    assert {learner.best_stage(reading=reading) for reading in READINGS} == {2}


def test_an_unknown_reading_is_refused() -> None:
    with pytest.raises(StopwiseError, match="reading: got 'sure', but need 'certain'"):
        Learner({"a": 1, "b": 2}).best_stage(reading="sure")  # type: ignore[call-overload]


@given(
    st.lists(st.integers(0, 400), min_size=3, max_size=3),
    st.floats(0.5, 200, allow_nan=False),
)
def test_what_is_certain_is_what_analyze_calls_certain(
    differ: list[int], mistake_cost: float
) -> None:
    seen, disagreed = np.full((3, 3), 400), np.zeros((3, 3), dtype=int)
    disagreed[np.triu_indices(3, 1)] = differ
    evidence = Evidence.from_counts(seen, disagreed)
    readings = analyze_evidence(evidence, costs=[1, 3, 10], mistake_cost=mistake_cost).readings
    costs = Costs.from_stages([1, 3, 10], mistake_cost)
    assert certain_stage(evidence, costs) == readings.certain


def test_the_report_has_every_reading_and_best_stage_each_of_them() -> None:
    learner = Learner({"a": 1, "b": 2, "c": 4}, "fixed", mistake_cost=20)
    assert learner.best_stage(reading="certain") is None
    for at in range(200):
        with learner.begin() as round:
            for output in ("yes", "yes" if at % 10 else "no", f"other {at}"):
                round.observe(output)
    report = learner.report()
    assert report.readings == {"certain": None, "weak-dominance": 2, "estimated": 0, "minimax": 0}
    assert report.to_dict()["readings"] == {
        "certain": None, "weak-dominance": "c", "estimated": "a", "minimax": "a"
    }  # fmt: skip
    for reading in ALL_READINGS:
        assert learner.best_stage(reading=reading) == report.readings[reading]
    cheap = Learner({"a": 1, "b": 2, "c": 4}, "fixed", mistake_cost=1.5)
    for _ in range(9):
        with cheap.begin() as round:
            for output in ("yes", "no", "no"):
                round.observe(output)
    assert cheap.best_stage(reading="certain") == cheap.report().readings["certain"] == 0
