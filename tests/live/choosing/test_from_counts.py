"""The distribution from counts is that of the policies, for whatever counts and costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise import Costs, Evidence
from stopwise.live import Learner
from stopwise.live.choosing.from_counts import FromCounts
from stopwise.live.counters.distributions.pair_test import NEGLIGIBLE, far_for, one_tail, tails
from stopwise.live.pairs import pair_list
from stopwise.policies.base import Policy
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump, UssTsTempered

POLICIES = [UssTs(), UssTs(0.3, 2.5), UssTsJump(), UssTsTempered(), UssTsJump(temper=0.5)]


@settings(max_examples=200, deadline=None)
@given(
    policy=st.sampled_from(POLICIES),
    stages=st.lists(st.floats(0, 0.6), min_size=2, max_size=6),
    largest=st.sampled_from([0.0, 3.0, 100.0, 1e5]),
    seed=st.integers(0, 2**32),
)
def test_the_distribution_is_that_of_the_policy(
    policy: UssTs | UssTsJump, stages: list[float], largest: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    costs = Costs.from_stages(stages)
    pairs = pair_list(len(stages))
    seen = (rng.random(len(pairs)) * largest).tolist()
    disagreed = [n * float(rng.random() ** 2) for n in seen]
    shape = (len(stages), len(stages))
    evidence = Evidence(len(stages))
    evidence.seen, evidence.disagreed = np.zeros(shape), np.zeros(shape)
    for at, (i, j) in enumerate(pairs):
        evidence.seen[i, j], evidence.disagreed[i, j] = seen[at], disagreed[at]
    thresholds = [float(np.clip(costs.thresholds[i, j], 0, 1)) for i, j in pairs]
    found = FromCounts(policy, len(stages)).distribution(seen, disagreed, thresholds)
    expected = policy.probabilities(evidence, 1, costs)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


@settings(max_examples=300, deadline=None)
@given(st.floats(0.1, 1e6), st.floats(0.1, 1e6), st.floats(0, 1))
def test_one_tail_is_both_and_the_other_is_one_less_it(a: float, b: float, x: float) -> None:
    low, high = tails(a, b, x)
    found = one_tail(a, b, x)
    assert found == pytest.approx((low, high), rel=1e-12, abs=1e-15)
    for value, one in zip(found, (low, high), strict=True):
        if value == 0.0:
            assert one <= NEGLIGIBLE


@settings(max_examples=300, deadline=None)
@given(st.floats(1, 1e5), st.floats(1, 1e5), st.floats(0, 1), st.floats(-1, 1), st.floats(-1, 1))
def test_a_tail_stays_negligible_for_as_long_as_is_said(
    a: float, b: float, x: float, up: float, down: float
) -> None:
    found, stands = one_tail(a, b, x), far_for(a, b, x)
    if stands > 0.0:
        assert found in ((0.0, 1.0), (1.0, 0.0)) or min(found) <= NEGLIGIBLE
        stands = min(stands, 1e6)
        later = tails(max(a + up * stands, 0.1), max(b + down * stands, 0.1), x)
        assert later == pytest.approx(found, abs=NEGLIGIBLE)


def test_no_tail_is_evaluated_a_few_hundred_rounds_into_a_clear_case() -> None:
    assert far_for(40.0, 360.0, 0.3) > 0.0  # a tenth against three tenths
    assert far_for(40.0, 360.0, 0.11) == 0.0


@pytest.mark.parametrize("policy", ["uss-ts", "uss-ts-jump", "uss-ts-tempered"])
@pytest.mark.parametrize("options", [{"half_life": 50.0}, {"measured": True}, {}], ids=str)
def test_a_learner_whose_counts_change_draws_by_the_policy(
    policy: str, options: dict[str, object]
) -> None:
    learner = Learner([0, 0.1, 0.1], policy, seed=3, **options)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    for turn in range(150):
        with learner.begin("abc"[turn % 3]) as round:
            for _ in range(round.depth + 1):
                round.observe(int(rng.random() < 0.1), 0.1 if options.get("measured") else None)
    counters = learner._books.counters
    for segment in "abc":
        found = learner.probabilities(segment)  # all rounds are counted now
        evidence = counters.evidence_for(counters.peek(segment))
        expected = learner.policy.probabilities(evidence, 1, learner.costs)
        assert found == pytest.approx(expected.tolist(), rel=1e-9)


def test_a_policy_of_its_own_keeps_its_own_law() -> None:
    class Own(UssTsJump):
        def _depth_probabilities(self, *given: object) -> np.ndarray:  # type: ignore[override]
            return np.array([0.0, 1.0])

    own: Policy = Own()
    assert FromCounts.of(own, 2) is None
