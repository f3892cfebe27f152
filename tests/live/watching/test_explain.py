"""Why a learner goes so deep: intervals, and how many rounds would turn a pair."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from stopwise import Costs, Evidence
from stopwise.decisions import passes
from stopwise.live.watching.explain import explain, rounds_to_turn, wilson


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_interval_is_that_of_scipy(counts: tuple[int, int]) -> None:
    n, d = counts
    exact = binomtest(d, n).proportion_ci(0.95, method="wilson")
    assert wilson(n, d) == pytest.approx((exact.low, exact.high), abs=1e-7)


def test_nothing_seen_is_anything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.integers(1, 39),
)
def test_the_number_of_rounds_is_the_least_that_turns_it(
    counts: tuple[int, int], fortieths: int
) -> None:
    """Against trying one number after the other."""
    (n, d), threshold = counts, fortieths / 40
    now = passes(threshold, d / n)
    tried = (k for k in range(10_000) if passes(threshold, (d + now * k) / (n + k)) != now)
    assert rounds_to_turn(n, d, threshold) == next(tried)


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.1])
def test_what_no_round_can_turn(threshold: float) -> None:
    assert rounds_to_turn(10, 3, threshold) is None


def test_an_explanation_names_every_pair_and_what_is_not_known() -> None:
    evidence = Evidence(3)
    for second in ("a", "a", "b"):
        evidence.add(["a", second])
    costs = Costs.from_stages((0.0, 1.0, 5.0), mistake_cost=4)
    found = explain("", ("x", "y", "z"), "fixed", [0.0, 0.0, 1.0], 2, evidence, costs)
    assert [pair.stages for pair in found.pairs] == [("x", "y"), ("x", "z"), ("y", "z")]
    seen, unseen, _ = found.pairs
    assert (seen.seen, seen.disagreed, seen.worth, seen.turns_after) == (3, 1, True, 2)
    assert (unseen.disagreement, unseen.worth, unseen.turns_after) == (None, None, None)
    assert "x and z: never seen together" in str(found)
    assert json.loads(found.to_json())["best_stage"] == "z"
    assert "never seen" in found._repr_html_()
    assert len(found.plot().get_yticks()) == 3


def test_a_price_equal_to_the_disagreement_does_not_stop() -> None:
    """The stopping test is strict, here as in policies and analyses."""
    evidence = Evidence.from_counts([[0, 10], [0, 0]], [[0, 1], [0, 0]])
    costs = Costs.from_stages((0.3, 0.1))
    (pair,) = explain("", ("x", "y"), "p", [0, 1], 1, evidence, costs).pairs
    assert pair.worth is True
    assert pair.turns_after == 1
