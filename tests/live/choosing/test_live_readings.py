"""The readings of a live learner are those of `analyze` on the same evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise import Learner, StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live.choosing.readings import READINGS, stage_by
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
    with pytest.raises(StopwiseError, match="reading: got 'sure', but need 'weak-dominance'"):
        Learner({"a": 1, "b": 2}).best_stage(reading="sure")  # type: ignore[arg-type]
