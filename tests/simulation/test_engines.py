"""Which engine runs a simulation."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from stopwise import Costs, Policy, Problem, StopwiseError, make_policy
from stopwise.simulation.engines import ReferenceEngine, choose_engine

PROBLEM = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], Costs.from_cumulative((0, 0.1)))


class WithoutKernel(Policy):
    """A policy of a user."""

    name = "without-kernel"

    def _depth_probabilities(self, evidence, round, costs):
        return np.full(costs.stage_count, 1 / costs.stage_count)


def test_auto_takes_the_reference_where_there_is_no_kernel():
    assert choose_engine("auto", PROBLEM, WithoutKernel(), "independent").name == "reference"
    with pytest.raises(StopwiseError, match="no kernel for without-kernel; use auto or reference"):
        choose_engine("fast", PROBLEM, WithoutKernel(), "independent")


def test_without_numba_auto_says_so_and_goes_on(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "numba" else find(name)
    )
    assert choose_engine("auto", PROBLEM, make_policy("uss-ts"), "independent").name == "reference"
    assert "slow reference engine" in capsys.readouterr().err
    with pytest.raises(StopwiseError, match="numba"):
        choose_engine("fast", PROBLEM, make_policy("uss-ts"), "independent")


def test_a_replication_does_not_depend_on_its_chunk():
    engine = ReferenceEngine(PROBLEM, make_policy("uss-ts"), "independent")
    grid = np.array([10, 50])
    together = engine.depth_counts(grid, 3, range(4))
    apart = np.concatenate([engine.depth_counts(grid, 3, range(k, k + 1)) for k in range(4)])
    assert (together == apart).all()
    assert (together.sum(axis=2) == grid).all()


def test_refused_engines():
    with pytest.raises(StopwiseError, match=r"engine: got 'gpu'.*'auto', 'fast' or 'reference'"):
        choose_engine("gpu", PROBLEM, make_policy("uss-ts"), "independent")
