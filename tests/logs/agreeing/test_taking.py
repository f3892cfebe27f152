"""The ladder of designs behind a promise: by hand, and against whoever chooses at will."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stopwise.logs.agreeing.looks import Design, chance_of_breaking, designs
from stopwise.logs.agreeing.taking import SHARES, Taking, ladder


class Coins:
    """Random numbers that were written down."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self, count):
        drawn, self.numbers = self.numbers[:count], self.numbers[count:]
        return np.array(drawn)


def test_by_hand():
    """Item 1 is found by the first design and ends it; the second looks again at item 2."""
    asked = []

    def look(items):
        asked.append(items.tolist())
        return np.isin(items, [1, 2])

    taking = Taking((Design(0, 0.2), Design(1, 0.5)), look, Coins(0.9, 0.1, 0.4, 0.8, 0.3))
    assert not taking.take(np.array([0, 1, 2, 3]))
    assert asked == [[1]]
    assert (taking.end, taking.found) == (1, 1)
    assert not taking.climb()  # 0.4 < 0.5: item 2 differs too, and one find is allowed
    assert asked == [[1], [2]]
    assert (taking.end, taking.found) == (2, 2)
    assert taking.answered_early().tolist() == [0]  # item 1 was looked at
    assert taking.rung == 1


def test_the_design_that_went_farthest_is_kept():
    """The second design looks at what the first had missed, and ends earlier."""
    taking = Taking(
        (Design(0, 0.2), Design(0, 0.9)), lambda items: items > 0, Coins(0.95, 0.5, 0.95, 0.1)
    )
    assert not taking.take(np.arange(4))
    assert taking.end == 3
    taking.climb()
    assert taking.end == 1
    assert taking.answered_early().tolist() == [0, 2]  # item 1 has been looked at meanwhile
    assert taking.rung == 0


@pytest.mark.parametrize(("allowed", "alpha"), [(3, 0.1), (50, 0.05), (400, 0.01)])
def test_shares_of_the_chance_add_up(allowed, alpha):
    assert sum(SHARES) == pytest.approx(1)
    for first in designs(allowed, SHARES[0] * alpha):
        rungs = ladder(first, allowed, alpha)
        assert sum(chance_of_breaking(allowed, rung) for rung in rungs) <= alpha
        assert all(a.rate <= b.rate and a.found < b.found for a, b in itertools.pairwise(rungs))


@pytest.mark.parametrize("differ", [1.0, 0.3])
def test_climbing_at_will_breaks_no_more_than_promised(differ):
    """Always on to the next design, and end with the one that answers most.

    Over 4,000 runs the share of broken ones has a standard deviation below 0.0048; more than alpha
    plus five of them happens with a chance below 1e-6.
    """
    alpha, allowed = 0.1, 8
    rungs = ladder(designs(allowed, SHARES[0] * alpha)[1], allowed, alpha)
    random = np.random.default_rng(11)
    broken = 0
    for _ in range(4000):
        wrong = random.random(120) < differ
        taking = Taking(rungs, lambda items, wrong=wrong: wrong[items], random)
        for start in range(0, 120, 20):
            goes_on = taking.take(np.arange(start, start + 20))
            while not goes_on and taking.rung + 1 < len(rungs):
                goes_on = taking.climb()
            if not goes_on:
                break
        broken += wrong[taking.answered_early()].sum() > allowed
    assert broken / 4000 <= alpha + 5 * 0.0048
