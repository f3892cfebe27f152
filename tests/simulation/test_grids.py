"""The rounds at which a curve is reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise import StopwiseError
from stopwise.simulation.grids import LONGEST, POINTS, make_grid


@given(st.sampled_from(["linear", "log"]), st.integers(1, LONGEST))
def test_named_grids_rise_to_the_horizon(name, horizon):
    grid = make_grid(name, horizon)
    assert grid[-1] == horizon
    assert grid[0] >= 1
    assert (np.diff(grid) > 0).all()
    assert len(grid) <= POINTS


@given(st.lists(st.integers(1, 1000), max_size=20))
def test_given_rounds_are_kept_once_and_in_order(rounds):
    assert make_grid(rounds, 1000).tolist() == sorted({*rounds, 1000})


def test_a_linear_grid_has_equal_steps():
    assert set(np.diff(make_grid("linear", 1000)).tolist()) == {10}


@pytest.mark.parametrize(
    ("grid", "horizon", "message"),
    [
        ("square", 10, "grid: got 'square'.*'linear', 'log' or a list of rounds"),
        ([1, 11], 10, "grid: .*at most the horizon, 10"),
        ([0], 10, r"grid\[0\]: got 0"),
        ([1, 2.5], 10, r"grid\[1\]: got 2.5"),
        ("log", LONGEST + 1, "horizon: got .* at most"),
    ],
)
def test_refused_grids(grid, horizon, message):
    with pytest.raises(StopwiseError, match=message):
        make_grid(grid, horizon)
