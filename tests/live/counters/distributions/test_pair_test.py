"""The test of one pair, carried along: it stays on SciPy's incomplete beta function."""

from __future__ import annotations

import json
import math
import random

import pytest
from scipy.special import betainc, betaincc

from stopwise.live.counters.distributions.fast_ts import FastTs
from stopwise.live.counters.distributions.pair_test import NEGLIGIBLE, PairTest
from stopwise.live.pairs import Added, added_by
from stopwise.policies import UssTs


@pytest.mark.parametrize("x", [0.0, -0.2, 1.0, 1.5])
def test_thresholds_beyond_probabilities_never_move(x: float) -> None:
    test = PairTest(1.0, 1.0, min(max(x, 0.0), 1.0))
    assert (test.low, test.high) == ((0.0, 1.0) if x <= 0 else (1.0, 0.0))
    assert test.w == 0.0
    assert test.until == math.inf
    assert test.settled(10**9)


@pytest.mark.parametrize(("a", "b", "x"), [(1.0, 1.0, 0.3), (5.0, 90.0, 0.02), (300.0, 2.0, 0.9)])
def test_it_starts_from_the_exact_tails(a: float, b: float, x: float) -> None:
    test = PairTest(a, b, x)
    assert test.low == betainc(a, b, x)
    assert test.high == betaincc(a, b, x)
    beta = math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
    assert test.w == pytest.approx(x**a * (1 - x) ** b / beta, rel=1e-6)


def test_settled_says_that_nothing_can_turn_it() -> None:
    sure = PairTest(500.0, 2.0, 0.05)
    assert sure.settled(10)
    assert betainc(500.0, 12.0, 0.05) <= NEGLIGIBLE
    unsure = PairTest(3.0, 40.0, 0.1)
    assert not unsure.settled(1)


def test_it_is_written_and_read_back_to_the_last_bit() -> None:
    for test in (PairTest(3.0, 7.0, 0.2), PairTest(1.0, 1.0, 0.0)):
        again = PairTest.from_form(json.loads(json.dumps(test.to_form())))
        assert again.to_form() == test.to_form()
        assert again.belongs_to(test)
    assert not PairTest(3.0, 7.0, 0.2).belongs_to(PairTest(4.0, 7.0, 0.2))
    for wrong in ([1.0] * 10, ["x"] * 11, 7):
        with pytest.raises((ValueError, TypeError)):
            PairTest.from_form(wrong)


@pytest.mark.parametrize("wrong", [25.0, -25.0, math.nan, math.inf, None, 10**400])
def test_forged_numbers_are_not_carried_on(wrong: float | None) -> None:
    def after_restoring(**changes: object) -> list[float]:
        carried = FastTs(UssTs(), [[0.0, 0.2], [0.0, 0.0]])
        carried.restore({**form, **changes}, [8], [2])
        for _ in range(50):
            carried.move(Added(0, ((0, True),)))
        return carried.distribution(1)

    usual = PairTest(3.0, 7.0, 0.2).to_form()
    form: dict[str, object] = {"pairs": [usual], "still": 0, "noted": []}
    expected = after_restoring()
    assert after_restoring(still=wrong) == expected
    for at in range(11):
        forged = [*usual[:at], wrong, *usual[at + 1 :]]
        assert after_restoring(pairs=[forged]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.7])
def test_carried_along_thousands_of_rounds_it_stays_exact(rate: float) -> None:
    """Probabilities of depths against SciPy's, after each of 3,000 observations of one pair."""
    carried = FastTs(UssTs(), [[0.0, 0.1], [0.0, 0.0]])
    carried.anchor([0], [0])
    random_numbers = random.Random(1)
    seen = disagreed = 0
    for at in range(3_000):
        differs = random_numbers.random() < rate
        carried.move(added_by(0b11, int(differs)))
        seen, disagreed = seen + 1, disagreed + differs
        if at % 97 == 0:
            exact = betainc(1 + disagreed, 1 + seen - disagreed, 0.1)
            found = carried.distribution(seen + 1)
            assert found[0] == pytest.approx(exact, rel=1e-9, abs=1e-15)
            assert sum(found) == pytest.approx(1, abs=1e-12)
