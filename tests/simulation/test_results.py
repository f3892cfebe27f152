"""Moments that merge, and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stopwise import Costs, Problem, simulate
from stopwise.simulation.results import Chunk, Moments, summarise

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(st.lists(numbers, min_size=1, max_size=5))
def test_merged_moments_are_those_of_all_curves(groups):
    merged = None
    for group in groups:
        part = Moments.of(np.array(group)[:, None])
        merged = part if merged is None else merged.merge(part)
    assert merged is not None
    everything = np.concatenate([np.array(group) for group in groups])
    scale = max(1.0, float(np.abs(everything).max()))
    assert merged.number == len(everything)
    assert merged.mean[0] == pytest.approx(everything.mean(), abs=1e-9 * scale)
    deviations = ((everything - everything.mean()) ** 2).sum()
    assert merged.squares[0] == pytest.approx(deviations, rel=1e-7, abs=1e-7 * scale**2)


def test_the_interval_is_students():
    values = np.array([1.0, 2.0, 4.0, 8.0])
    low, high = scipy.stats.t.interval(0.95, 3, values.mean(), scipy.stats.sem(values))
    half = Moments.of(values[:, None]).half_width()[0]
    assert values.mean() - half == pytest.approx(low)
    assert values.mean() + half == pytest.approx(high)


def test_regret_is_depth_counts_times_gaps():
    depth_counts = np.array([[[1, 0], [1, 3]], [[0, 1], [4, 0]]])
    chunk = Chunk.of(depth_counts, np.array([0.0, 0.5]))
    assert chunk.finals.tolist() == [1.5, 0.0]
    regret, curve, finals, stage_counts = summarise([chunk], np.array([1, 4]))
    assert [point.mean for point in curve] == [0.25, 0.75]
    assert regret.mean == 0.75
    assert regret.q50 == 0.75
    assert finals.tolist() == [1.5, 0.0]
    assert stage_counts.tolist() == [[1, 3], [4, 0]]


def test_one_replication_has_no_interval():
    problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], Costs.from_cumulative((0, 0.1)))
    found = simulate(problem, "uss-ts", horizon=100, replications=1, seed=1)
    assert found.to_dict()["regret"]["ci_low"] is None
    assert "(one replication)" in str(found)
    assert found.to_frame()["ci_low"].null_count() == len(found.curve)
