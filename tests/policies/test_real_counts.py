"""Counts may be real numbers (`half_life`): no rule may round them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from stopwise import Costs, Evidence, StopwiseError
from stopwise.policies.imed import Imed
from stopwise.policies.uss_ucb import UssUcb
from stopwise.policies.voi import UssVoiAnytime


def real_evidence(seen, disagreed):
    """Evidence of two stages with counts that need not be whole."""
    evidence = Evidence(2)
    evidence.seen = np.array([[0.0, seen], [0.0, 0.0]])
    evidence.disagreed = np.array([[0.0, disagreed], [0.0, 0.0]])
    return evidence


def voi_goes_on(seen, disagreed, c, policy, round):
    """USS-VOI for one pair by numerical integration: nothing is shared with the policy."""
    density = beta(disagreed + 1, seen - disagreed + 1).pdf
    gain = quad(lambda p: (p - c) * density(p), c, 1, epsabs=1e-13)[0]
    lost = quad(lambda p: (c - p) * density(p), 0, c, epsabs=1e-13)[0]
    under = quad(lambda p: p * density(p), 0, c, epsabs=1e-13)[0]
    loss = lost + policy.rho0 * under
    looks = seen + 1
    share = disagreed / seen
    if share < c:
        kl = (1 - share) * math.log((1 - share) / (1 - c))
        kl += share * math.log(share / c) if share > 0 else 0
        looks /= max(1, 2 * seen * kl)
    m = round + policy.head_start
    rounds = max(m, 8 * math.sqrt(m * seen))
    return gain >= loss or rounds * gain >= policy.kappa * loss * looks


def imed_goes_on(seen, disagreed, c, horizon):
    """IMED for one pair, from its formula."""
    share = disagreed / seen
    if share >= c:
        return True
    kl = (1 - share) * math.log((1 - share) / (1 - c))
    kl += share * math.log(share / c) if share > 0 else 0
    return seen * kl + math.log(seen) <= math.log(horizon) - 2


CASES = [
    (float(seen), float(seen * share), float(c))
    for seen, share, c in np.random.default_rng(5).random((300, 3)) * [60, 0.5, 0.5]
    + [0.3, 0, 0.02]
]


def test_voi_decides_by_real_counts():
    policy = UssVoiAnytime()
    rounded = 0
    for seen, disagreed, c in CASES:
        costs = Costs.from_cumulative((0.0, c))
        p = policy.probabilities(real_evidence(seen, disagreed), 100, costs)
        assert (p[1] == 1) == voi_goes_on(seen, disagreed, c, policy, 100), (seen, disagreed, c)
        whole = Evidence.from_counts(*[[[0, int(n)], [0, 0]] for n in (seen, disagreed)])
        rounded += not np.array_equal(p, policy.probabilities(whole, 100, costs))
    assert rounded >= 3  # so the test tells rounding from not rounding


def test_imed_decides_by_real_counts():
    policy = Imed(horizon=10_000)
    rounded = 0
    for seen, disagreed, c in CASES:
        costs = Costs.from_cumulative((0.0, c))
        p = policy.probabilities(real_evidence(seen, disagreed), 100, costs)
        assert (p[1] == 1) == imed_goes_on(seen, disagreed, c, 10_000), (seen, disagreed, c)
        whole = Evidence.from_counts(*[[[0, int(n)], [0, 0]] for n in (seen, disagreed)])
        rounded += not np.array_equal(p, policy.probabilities(whole, 100, costs))
    assert rounded >= 3


def test_bounds_of_less_than_one_look():
    # D/N + sqrt(alpha ln t / N) with N = 1/2, D = 1/8, t = 1: the share itself.
    costs = Costs.from_cumulative((0.0, 0.2))
    assert UssUcb().probabilities(real_evidence(0.5, 0.125), 1, costs)[1] == 1
    costs = Costs.from_cumulative((0.0, 0.3))
    assert UssUcb().probabilities(real_evidence(0.5, 0.125), 1, costs)[0] == 1


def test_real_evidence_can_be_copied_and_added_but_not_written():
    evidence = real_evidence(0.5, 0.125)
    assert evidence.disagreement[0, 1] == 0.25
    assert evidence.copy() == evidence
    assert (evidence + Evidence.from_codes([[0, 1]])).counts(0, 1) == (1.5, 1.125)
    with pytest.raises(StopwiseError, match="whole counts"):
        evidence.to_json()
