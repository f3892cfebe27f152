"""USS-TS: by hand, against SciPy and fifty digits, and its literal form."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.stats

from stopwise import Costs, Evidence
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_literal import UssTsLiteral
from stopwise.policies.walks import going_on, step_walk


def random_evidence(rng, count, most):
    seen = rng.integers(0, most + 1, size=(count, count))
    return Evidence.from_counts(seen, rng.integers(0, seen + 1))


def test_uss_ts_by_hand():
    # Beta(1, 1): P(sample < x) = x. Three stages with prices 0.2 and 0.3.
    p = UssTs().probabilities(Evidence(3), 1, Costs.from_cumulative((0.0, 0.2, 0.5)))
    np.testing.assert_allclose(p, [0.1, 0.9 * 0.3, 0.9 * 0.7], rtol=1e-14)
    # One disagreement, Beta(2, 1): x^2; one agreement, Beta(1, 2): 1 - (1 - x)^2.
    evidence = Evidence.from_counts([[0, 1], [0, 0]], [[0, 1], [0, 0]])
    assert UssTs().probabilities(evidence, 2, Costs.from_cumulative((0, 0.3)))[0] == pytest.approx(
        0.09, rel=1e-14
    )
    evidence = Evidence.from_counts([[0, 1], [0, 0]], [[0, 0], [0, 0]])
    assert UssTs().probabilities(evidence, 2, Costs.from_cumulative((0, 0.3)))[0] == pytest.approx(
        0.51, rel=1e-14
    )


def test_thresholds_that_are_never_or_always_passed():
    evidence = Evidence.from_prefixes(3, [[0, 1, 0]] * 5)
    for policy in (UssTs(), UssTsLiteral(), UssTs(1e-3, 1e-3)):
        assert policy.probabilities(evidence, 6, Costs.from_cumulative((0, 0, 0))).tolist() == [
            0,
            0,
            1,
        ]
        assert policy.probabilities(evidence, 6, Costs.from_cumulative((0, 1, 2))).tolist() == [
            1,
            0,
            0,
        ]
    rng = np.random.default_rng(0)
    extreme = UssTsLiteral(1e-3, 1e-3)  # its draws are often rounded to exactly 0 or 1
    for _ in range(200):
        assert extreme.draw(Evidence(3), 1, Costs.from_cumulative((0, 0, 0)), rng) == 2
        assert extreme.draw(Evidence(3), 1, Costs.from_cumulative((0, 1, 2)), rng) == 0


def exact_walk(cdf, count):
    """Independent: the walk of the pseudo-code over a table of passing probabilities."""
    result, arriving = [], 1.0
    for i in range(count - 1):
        stop = math.prod(cdf[i][j] for j in range(i + 1, count))
        result.append(arriving * stop)
        arriving *= 1 - stop
    return [*result, arriving]


def test_exact_probability_against_scipy():
    rng = np.random.default_rng(11)
    for _ in range(300):
        count = int(rng.integers(2, 9))
        evidence = random_evidence(rng, count, int(rng.choice([1, 10, 1000, 10**6])))
        costs = Costs.from_cumulative(
            tuple(np.cumsum(rng.random(count) * rng.choice([0.02, 0.2, 0.6])))
        )
        a0, b0 = (float(value) for value in rng.choice([0.5, 1.0, 4.0], size=2))
        cdf = [
            [
                scipy.stats.beta.cdf(
                    costs.cumulative[j] - costs.cumulative[i],
                    evidence.disagreed[i, j] + a0,
                    evidence.seen[i, j] - evidence.disagreed[i, j] + b0,
                )
                for j in range(count)
            ]
            for i in range(count)
        ]
        p = UssTs(a0, b0).probabilities(evidence, 1, costs)
        np.testing.assert_allclose(p, exact_walk(cdf, count), atol=1e-12, rtol=0)
        passes, fails = UssTs(a0, b0).pair_tests(evidence, costs)
        upper = np.triu_indices(count, 1)
        np.testing.assert_allclose(passes[upper], np.array(cdf)[upper], atol=1e-12, rtol=0)
        np.testing.assert_allclose((passes + fails)[upper], 1, atol=1e-12)


def test_exact_probability_against_fifty_digits():
    rng = np.random.default_rng(12)
    with mpmath.workdps(50):
        for _ in range(60):
            count = int(rng.integers(2, 6))
            evidence = random_evidence(rng, count, 40)
            costs = Costs.from_cumulative(tuple(np.cumsum(rng.random(count) * 0.4)))
            arriving = mpmath.mpf(1)
            p = UssTs().probabilities(evidence, 1, costs)
            for i in range(count):
                stop = mpmath.mpf(1)
                for j in range(i + 1, count):
                    x = min(float(costs.in_mistakes[j] - costs.in_mistakes[i]), 1.0)
                    a = int(evidence.disagreed[i, j]) + 1
                    b = int(evidence.seen[i, j] - evidence.disagreed[i, j]) + 1
                    stop *= mpmath.betainc(a, b, 0, x, regularized=True)
                expected = arriving * stop
                assert abs(p[i] - expected) <= 1e-13
                # Also the tiny ones keep their digits.
                if expected > 1e-250:
                    assert abs(p[i] / expected - 1) <= 1e-9
                arriving *= 1 - stop


def test_rare_looks_deeper_keep_their_digits():
    assert going_on(np.array([1e-30, 3e-30])) == pytest.approx(4e-30, rel=1e-12)
    passes = np.array([[0, 1 - 1e-18, 1.0], [0, 0, 0.5], [0, 0, 0]])
    fails = np.array([[0, 1e-18, 0.0], [0, 0, 0.5], [0, 0, 0]])
    np.testing.assert_allclose(step_walk(passes, fails), [1, 5e-19, 5e-19], rtol=1e-12)


def test_literal_draws_follow_the_exact_probabilities():
    """Chi-square of 2,000 draws in each of 60 random situations; false-alarm rate 1e-6 in all.

    Depths expected fewer than 20 times are pooled, so that the chi-square law is a good one; the
    level of each comparison is 1e-6 / 60.
    """
    rng = np.random.default_rng(13)
    draws, situations = 2000, 60
    compared = 0
    for _ in range(situations):
        count = int(rng.integers(2, 7))
        evidence = random_evidence(rng, count, int(rng.choice([0, 3, 20])))
        costs = Costs.from_cumulative(tuple(np.cumsum(rng.random(count) * rng.choice([0.3, 0.8]))))
        policy = UssTsLiteral(*(float(v) for v in rng.choice([0.5, 1.0, 3.0], size=2)))
        p = policy.probabilities(evidence, 1, costs)
        counts = np.bincount(
            [policy.draw(evidence, 1, costs, rng) for _ in range(draws)], minlength=count
        )
        assert not counts[p == 0].any()
        expected = p * draws
        small = expected < 20
        expected = np.append(expected[~small], expected[small].sum())
        observed = np.append(counts[~small], counts[small].sum())
        if expected[-1] < 20:  # too rare even together: add them to the most frequent
            most = expected[:-1].argmax()
            expected[most] += expected[-1]
            observed[most] += observed[-1]
            expected, observed = expected[:-1], observed[:-1]
        if len(expected) < 2:
            continue
        compared += 1
        statistic = ((observed - expected) ** 2 / expected).sum()
        tail = scipy.stats.chi2.sf(statistic, len(expected) - 1)
        assert tail > 1e-6 / situations, (p, counts)
    assert compared >= 30
