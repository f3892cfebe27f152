"""The exact test behind a promise: by hand, against enumeration, and against the worst order."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.logs.agreeing.looks import Design, chance_of_breaking, designs


def chance_by_walking(allowed, found, rate):
    """The chance of more than `allowed` misses before more than `found` finds, step by step."""
    chance = {(0, 0): Fraction(1)}
    broken = Fraction(0)
    while chance:
        following: dict[tuple[int, int], Fraction] = {}
        for (missed, seen), weight in chance.items():
            if missed > allowed:
                broken += weight
                continue
            if seen > found:
                continue
            for key, part in (((missed + 1, seen), 1 - rate), ((missed, seen + 1), rate)):
                following[key] = following.get(key, Fraction(0)) + weight * part
        chance = following
    return broken


@pytest.mark.parametrize(("allowed", "found", "rate"), [(0, 0, 0.5), (1, 0, 0.5), (3, 2, 0.25)])
def test_the_chance_is_that_of_walking_from_difference_to_difference(allowed, found, rate):
    walked = chance_by_walking(allowed, found, Fraction(rate))
    assert chance_of_breaking(allowed, Design(found, rate)) == pytest.approx(float(walked))


def test_by_hand():
    # One difference may be missed, and none found: broken only if two coins in a row show tails.
    assert chance_of_breaking(1, Design(0, 0.5)) == 0.25
    # (d + 1) more chances: at most 1 of 3 coins shows heads.
    assert chance_of_breaking(1, Design(1, 0.5)) == pytest.approx(4 / 8)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2000), st.sampled_from([0.2, 0.1, 0.05, 0.01, 0.001]))
def test_every_design_keeps_the_chance_and_wastes_none(allowed, alpha):
    for design in designs(allowed, alpha):
        assert chance_of_breaking(allowed, design) <= alpha
        if design.rate < 1:
            less = Design(design.found, design.rate * 0.999)
            assert chance_of_breaking(allowed, less) > alpha


def test_the_binomial_is_the_one_of_the_books():
    design = Design(2, 0.125)
    n = 5 + 1 + 2
    exact = sum(comb(n, k) * 0.125**k * 0.875 ** (n - k) for k in range(3))
    assert chance_of_breaking(5, design) == pytest.approx(exact)


def test_where_nothing_may_differ_everything_is_looked_at():
    assert designs(0, 0.01) == (Design(0, 1.0),)
    with pytest.raises(StopwiseError, match="alpha: got 0"):
        designs(3, 0.0)


def test_an_order_that_reacts_to_the_coins_gains_nothing():
    """Whoever chooses the next item by what was found cannot break the promise more often.

    The order here puts differences first after a miss and equal answers first after a find. Over
    20,000 runs the share of broken ones has a standard deviation below 0.0021; more than alpha plus
    five of them happens with a chance below 1e-6.
    """
    alpha, allowed = 0.1, 10
    design = designs(allowed, alpha)[3]
    random = np.random.default_rng(5)
    runs, broken = 20_000, 0
    for _ in range(runs):
        found = missed = 0
        while found <= design.found and missed <= allowed:  # equal answers change nothing
            if random.random() < design.rate:
                found += 1
            else:
                missed += 1
        broken += missed > allowed
    assert broken / runs <= alpha + 5 * 0.0021
    assert broken / runs >= alpha - 5 * 0.0021  # exact: no chance is given away
