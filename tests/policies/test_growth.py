"""How regret grows with the horizon: where USS-TS starves pairs, and where a margin is tiny."""

from __future__ import annotations

import math

import pytest

from stopwise.bench.plan import growth_instances
from stopwise.simulation.run import simulate

pytestmark = pytest.mark.numba

INSTANCES = {instance.name: instance.problem for instance in growth_instances()}


def mean_and_error(name: str, policy: str, horizon: int, replications: int) -> tuple[float, float]:
    result = simulate(
        INSTANCES[name], policy, horizon=horizon, replications=replications, seed=11,
        grid=[horizon], jobs=2,
    )  # fmt: skip
    return result.regret.mean, float(result.finals.std(ddof=1)) / math.sqrt(replications)


# Means are compared with room for five standard errors of each (one-sided normal tail 3e-7; the
# replications are many and bounded), so a policy that keeps the claim fails by chance below 1e-6.
SIGMAS = 5


@pytest.fixture(scope="module")
def starved() -> tuple[float, float]:
    """USS-TS on PIMA 3 at 10^7 rounds; its tail is heavy, so it needs many replications."""
    return mean_and_error("pima 3", "uss-ts", 10_000_000, 3_000)


@pytest.mark.parametrize("policy", ["uss-ts-jump", "uss-voi", "uss-voi-anytime"])
def test_pima_3_grows_like_a_logarithm(policy: str, starved: tuple[float, float]) -> None:
    """At 10^7 rounds at most a twentieth of the regret of USS-TS; and no power of T."""
    first, first_error = mean_and_error("pima 3", policy, 10_000, 400)
    last, last_error = mean_and_error("pima 3", policy, 10_000_000, 400)
    mean, error = starved
    assert last - SIGMAS * last_error < (mean + SIGMAS * error) / 20
    # And in the other direction: a fifteenth even if chance favoured the policy.
    assert last + SIGMAS * last_error < (mean - SIGMAS * error) / 15
    # ln T grows by 7/4 from 10^4 to 10^7; early rounds weigh less later, so up to 4; T^0.25 by 5.6.
    assert last - SIGMAS * last_error < 4 * (first + SIGMAS * first_error)


def test_tiny_margin_grows_slower_than_linearly() -> None:
    """Margin 10^-4, fixed excess: an exponent below 0.8 from 10^4 to 10^6 for USS-VOI."""
    first, first_error = mean_and_error("margin 0.0001", "uss-voi", 10_000, 60)
    last, last_error = mean_and_error("margin 0.0001", "uss-voi", 1_000_000, 60)
    exponent = math.log(last / first) / math.log(100)
    error = math.hypot(first_error / first, last_error / last) / math.log(100)
    assert exponent - SIGMAS * error < 0.8
