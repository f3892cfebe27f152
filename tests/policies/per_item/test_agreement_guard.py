"""The promise for a stream: at every moment, whatever the items do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.policies.per_item.agreeing import _through_the_guard, agree_over
from stopwise.policies.per_item.agreement_guard import AgreementGuard, log_ratio, most_missed
from stopwise.situations.observations import Observations


@pytest.mark.parametrize(("found", "missed", "rate"), [(0, 0, 0.1), (0, 30, 0.1), (7, 90, 0.2)])
def test_the_ratio_is_the_integral_it_is_said_to_be(found, missed, rate):
    law = beta(2, 2 * (1 - rate) / rate)

    def weight(p):
        return law.pdf(p) * (p / rate) ** found * ((1 - p) / (1 - rate)) ** missed

    exact = quad(weight, 0, rate, epsabs=1e-13)[0] / law.cdf(rate)
    assert math.exp(log_ratio(found, missed, rate)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_ratio_is_a_martingale(rate):
    """From any state, the mean over the next coin is the present value: exactly, by hand."""
    for found, missed in ((0, 0), (0, 5), (3, 11), (20, 300)):
        now = math.exp(log_ratio(found, missed, rate))
        after = rate * math.exp(log_ratio(found + 1, missed, rate)) + (1 - rate) * math.exp(
            log_ratio(found, missed + 1, rate)
        )
        assert after == pytest.approx(now, rel=1e-9)


def test_the_bound_holds_at_all_times_at_once():
    """4,000 streams of 2,000 differences; ever above the bound: at most alpha of them.

    More than binom.ppf(1 - 1e-6) is a false alarm with a chance below 1e-6.
    """
    rate, alpha, runs = 0.1, 0.1, 4000
    coins = np.random.default_rng(0).random((runs, 2000)) < rate
    found = np.cumsum(coins, axis=1)
    missed = np.cumsum(~coins, axis=1)
    bound = np.asarray([most_missed(d, rate, alpha) for d in range(int(found.max()) + 1)])
    broken = int((missed > bound[found]).any(axis=1).sum())
    assert broken <= binom.ppf(1 - 1e-6, runs, alpha)
    assert broken > 0.2 * alpha * runs  # and it is not so wide that nothing could break it


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=300),
       st.sampled_from([0.2, 0.5]))  # fmt: skip
def test_rounds_at_once_are_rounds_one_by_one(events, rate):
    wanted, heads, differs = (np.array([e[i] for e in events], dtype=bool) for i in range(3))
    bulk = AgreementGuard(0.6, 0.6, rate)
    opened = _through_the_guard(bulk, wanted, heads, differs)
    single = AgreementGuard(0.6, 0.6, rate)
    for at, (wants, looks, other) in enumerate(events):
        assert opened[at] == single.may_stop
        single.record(looked=single.may_stop and wants and looks, differs=other)
    assert bulk == single


def stream(count, hard_from, seed):
    """Items that suddenly become hard: nothing that was learned holds any more."""
    random = np.random.default_rng(seed)
    last = random.integers(0, 2, count)
    sure = random.random(count)
    chance = np.where(np.arange(count) < hard_from, 0.1 * (1 - sure), 0.5)
    first = np.where(random.random(count) < chance, 1 - last, last)
    confidences = np.stack([sure, np.ones(count)], axis=1)
    return Observations(("a", "b"), np.stack([first, last], axis=1), confidences)


@pytest.mark.parametrize("hard_from", [5000, 2500])
def test_kept_at_every_moment_even_when_the_items_change(hard_from):
    """15 streams at level 0.9: more than binom.ppf(1 - 1e-6) broken is a false alarm < 1e-6."""
    broken, stopped = 0, 0.0
    for seed in range(15):
        rows = stream(5000, hard_from, seed)
        guard = AgreementGuard(agree=0.95, level=0.9, look_rate=0.1)
        rng = np.random.default_rng(seed)
        found = agree_over(("small", "large"), rows, Costs.from_stages([1, 20]), guard, rng)
        differs = rows.codes[np.arange(5000), found.depths] != rows.codes[:, 1]
        missed = np.cumsum(differs)
        broken += bool((missed > 0.05 * np.arange(1, 5001) + 1e-9).any())
        stopped += float((found.depths == 0).mean()) / 15
        assert guard.rounds == 5000
        assert found.looked[found.depths == 0].sum() == 0
    assert broken <= binom.ppf(1 - 1e-6, 15, 0.1)
    assert stopped > 0.15


def test_machines_add_up_and_other_promises_do_not():
    one, two = AgreementGuard(rounds=100, found=1), AgreementGuard(rounds=50, found=2)
    one.merge(two)
    assert (one.rounds, one.found) == (150, 3)
    assert AgreementGuard.from_dict(one.to_dict()) == one
    with pytest.raises(StopwiseError, match="another promise"):
        one.merge(AgreementGuard(agree=0.9))
    with pytest.raises(StopwiseError, match="look_rate: got 0"):
        AgreementGuard(look_rate=0)
    with pytest.raises(StopwiseError, match="unknown field 'share'"):
        AgreementGuard.from_dict({"share": 1})
