"""The walks and the rules: by hand, by enumeration, against other code."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.policies.imed import Imed, bernoulli_kl
from stopwise.policies.registry import make_policy
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump
from stopwise.policies.voi import UssVoi, UssVoiAnytime, value_of_looking
from stopwise.policies.walks import elimination_walk, jump_walk

NAMES = ["uss-ts-jump", "uss-ts-tempered", "uss-ts-jump:temper=1.5", "uss-voi", "uss-voi-anytime"]


def walk_of(tests: np.ndarray) -> int:
    """The jump walk for given outcomes; `tests[i, j]`: the sample of i and j is too large."""
    i, count = 0, len(tests)
    while True:
        deeper = [j for j in range(i + 1, count) if tests[i, j]]
        if not deeper:
            return i
        i = deeper[0]


@given(st.integers(2, 4), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_jump_walk_is_the_sum_over_all_outcomes(count: int, seed: int) -> None:
    passes = np.triu(np.random.default_rng(seed).random((count, count)), 1)
    pairs = list(itertools.combinations(range(count), 2))
    expected = np.zeros(count)
    for outcome in itertools.product([False, True], repeat=len(pairs)):
        tests, p = np.zeros((count, count), dtype=bool), 1.0
        for (i, j), fails in zip(pairs, outcome, strict=True):
            tests[i, j] = fails
            p *= 1 - passes[i, j] if fails else passes[i, j]
        expected[walk_of(tests)] += p
    assert jump_walk(passes, 1 - passes) == pytest.approx(expected, abs=1e-12)


def test_two_stages_have_one_walk() -> None:
    evidence = Evidence.from_counts([[0, 9], [0, 0]], [[0, 4], [0, 0]])
    costs = Costs.from_cumulative((0.0, 0.3))
    assert UssTsJump().probabilities(evidence, 1, costs) == pytest.approx(
        UssTs().probabilities(evidence, 1, costs)
    )


@given(st.integers(2, 7), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_elimination_walk_keeps_the_stages_in_play(count: int, seed: int) -> None:
    """The textbook form, with an explicit set of the stages in play."""
    table = np.random.default_rng(seed).random((count, count)) < 0.6
    i, in_play = 0, set(range(1, count))
    while True:
        in_play = {j for j in in_play if j > i and table[i, j]}
        if not in_play:
            break
        i = min(in_play)
    assert elimination_walk(count, lambda i, j, last: bool(table[i, j])) == i


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.02, 0.98), st.floats(0, 2))
@settings(max_examples=60, deadline=None)
def test_value_of_looking_against_quadrature(
    disagreed: int, agreed: int, c: float, excess: float
) -> None:
    density = stats.beta(disagreed + 1, agreed + 1).pdf
    points = {"epsabs": 1e-13, "epsrel": 1e-11, "limit": 200}
    gain, _ = integrate.quad(lambda p: (p - c) * density(p), c, 1, **points)
    lost, _ = integrate.quad(lambda p: (c - p) * density(p), 0, c, **points)
    under, _ = integrate.quad(lambda p: p * density(p), 0, c, **points)
    got = value_of_looking(disagreed + agreed, disagreed, c, excess)
    assert got[0] == pytest.approx(gain, rel=1e-6, abs=1e-11)
    assert got[1] == pytest.approx(lost + excess * under, rel=1e-6, abs=1e-11)


def test_looks_by_hand() -> None:
    # One half against 0.25: 2 N kl = 2 * 8 * 0.1438 = 2.3015 looks' worth; but only below it.
    assert value_of_looking(8, 4, 0.25, 0.0)[2] == 9
    share = 2 * 8 * bernoulli_kl(0.125, 0.5)
    assert value_of_looking(8, 1, 0.5, 0.0)[2] == pytest.approx(9 / share)
    assert value_of_looking(8, 1, 0.5, 0.0, stake=0.9)[0] == pytest.approx(
        0.9 * stats.beta(2, 8).sf(0.5)
    )


def test_what_is_at_stake_keeps_a_refused_stage_in_play() -> None:
    """Stage 3 is refused by the first stage, narrowly, but far better than the second."""
    seen = np.full((3, 3), 60)
    disagreed = np.array([[0, 20, 12], [0, 0, 30], [0, 0, 0]])
    evidence = Evidence.from_counts(np.triu(seen, 1), disagreed)
    costs = Costs.from_cumulative((0.0, 0.2, 0.36))
    policy = UssVoi(horizon=2_000)
    worth = policy._worth(evidence, 2_000, costs)
    assert worth(0, 1, 0)
    assert worth(1, 2, 1)
    assert not worth(0, 2, 0)
    assert worth(0, 2, 1)
    assert policy.probabilities(evidence, 1, costs)[2] == 1


def test_second_switches_make_looks_more_expensive() -> None:
    evidence = Evidence.from_prefixes(3, [[0, 1, 0]] * 3 + [[0, 1, 1]])
    assert UssVoi().excess(evidence) == pytest.approx(0.05 + 3 / 6)


def test_the_horizon_is_needed_and_taken() -> None:
    for name in ("uss-voi", "imed"):
        policy = make_policy(name)
        with pytest.raises(StopwiseError, match="needs the horizon"):
            policy.probabilities(Evidence(2), 1, Costs.from_cumulative((0.0, 0.5)))
        ready = policy.for_horizon(100)
        assert ready.settings()["horizon"] == 100
        assert ready.for_horizon(7) is ready


def test_imed_by_hand() -> None:
    evidence = Evidence.from_counts([[0, 10], [0, 0]], [[0, 1], [0, 0]])
    index = 10 * bernoulli_kl(0.1, 0.4) + math.log(10)
    horizon = math.exp(index + 2)
    costs = Costs.from_cumulative((0.0, 0.4))
    assert Imed(math.floor(horizon)).probabilities(evidence, 11, costs)[0] == 1
    assert Imed(math.ceil(horizon)).probabilities(evidence, 11, costs)[0] == 0


@pytest.mark.parametrize("policy", [UssVoi(horizon=50), UssVoiAnytime(), Imed(50), UssTsJump()])
def test_thresholds_beyond_probabilities(policy) -> None:
    """A price of 1 or more is never worth it, a free stage always is."""
    evidence = Evidence.from_counts([[0, 9], [0, 0]], [[0, 9], [0, 0]])
    assert policy.probabilities(evidence, 1, Costs.from_cumulative((0.0, 1.0)))[0] == 1
    assert policy.probabilities(Evidence(2), 1, Costs.from_cumulative((0.2, 0.2)))[1] == 1


def test_bad_settings_are_named() -> None:
    for text in ("uss-voi:kappa=0", "uss-voi:rho0=-1", "uss-ts-jump:temper=0", "imed:horizon=0"):
        with pytest.raises(StopwiseError, match=r"kappa|rho0|temper|horizon"):
            make_policy(text)
